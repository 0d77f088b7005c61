// What an address of ours on Ethereum's chain has, and the nonce of the first that leaves from there.
import { evmInput } from '../../../core/currencies/evm.ts';
import { ETHER, type EvmCode } from '../../../core/currency.ts';
import type { EvmPort } from '../../../core/evm/port.ts';
import type { Context } from '../../../flow/context.ts';
import type { Funds } from '../../../flow/evm/batches.ts';
import { nextNonce } from '../../../store/payouts/evm-lane.ts';
import { readMovesOf } from '../../../store/sweeps/forgotten-moves.ts';
import { writeFailedBack } from './forgotten-moves.ts';

/**
 * What the chain shows of an address after a block. That its first nonce is not 0 (its words were used elsewhere, or database and signer were put back)
 * two nodes must say: where it is not so, nothing that leaves from there could ever be mined.
 * @throws NodeTrouble
 */
export async function readFunds(
  ctx: Context,
  { currency, port }: { readonly currency: EvmCode; readonly port: EvmPort },
  address: string,
  height: number,
): Promise<Funds> {
  const account = await port.account(address, height);
  const isFirst = account.nonce > 0 && (await nextNonce(ctx.db, currency, evmInput(address, 0).txid)) === null;
  if (!isFirst) return { ...account, height };
  const { nonce, said } = await port.sentBy(address);
  const unknown = `two nodes must say alike how many transactions ${address} has sent, of which none is known here (one that is away for good, or wrong: take it out of BURSAR_${ETHER}_RPC_URL): ${said.join('; ')}`;
  return { ...account, height, nonce: nonce ?? { unknown } };
}

/**
 * Why no ether is sent to an address of ours: it has code (EIP-7702), which a plain payment of ether runs without gas for it, so that each would fail and
 * cost its gas. Null: it has none. @throws NodeTrouble
 */
export async function whyNoEther({ isContract }: Pick<EvmPort, 'isContract'>, address: string): Promise<string | null> {
  if (!(await isContract(address))) return null;
  return `our address ${address} has code, so plain payments of ether to it fail: its key has authorized a contract elsewhere (EIP-7702). Take that back there (authorize the zero address), and have it booked (bursar payout recover)`;
}

/** How it ends that nodes have more transactions of an address of ours than are known here. @param said what each node says */
export const untilKnown = (said: readonly string[]): string =>
  `shows the others, or no node has them (one that is wrong: take it out of BURSAR_${ETHER}_RPC_URL; what waits behind a gap in the nonces: docs/custody.md): ${said.join('; ')}`;

/**
 * Why nothing may be signed for the address of a transaction yet: it has sent what is not booked, or is in no block that was read. Database and signer,
 * put back together, have forgotten it, and what is signed for its nonce now can never be mined. Null: nothing is known of such.
 * @throws NodeTrouble
 */
export async function whyMovedBefore(
  ctx: Context,
  { currency, port }: { readonly currency: EvmCode; readonly port: EvmPort },
  address: string,
  height: number,
): Promise<string | null> {
  const sender = evmInput(address, 0);
  const [noted] = await readMovesOf(ctx.db, currency, sender, 1);
  if (noted !== undefined)
    return `${noted.txid} has left ${address} for another address of ours, and is booked first, once two nodes (the only one, where there is one) show that its block is final`;
  const { most, said } = await port.sentBy(address);
  // what has failed in a block that was read has moved nothing
  const { nonce } = await port.account(address, height);
  const next = await nextNonce(ctx.db, currency, sender.txid);
  const known = Math.max(nonce, next ?? 0);
  if (most <= known) return writeFailedBack(ctx, { currency, port }, address, { below: nonce, height, toSign: true });
  return `a node knows of ${most} transactions that ${address} has sent, and ${known} of them are known here: it is emptied once a block that was read ${untilKnown(said)}`;
}
