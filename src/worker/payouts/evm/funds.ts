// What an address of ours on Ethereum's chain has, and the nonce of the first that leaves from there.
import { evmInput } from '../../../core/currencies/evm.ts';
import { ETHER, type EvmCode } from '../../../core/currency.ts';
import type { EvmPort } from '../../../core/evm/port.ts';
import type { Context } from '../../../flow/context.ts';
import type { Funds } from '../../../flow/evm/batches.ts';
import { nextNonce } from '../../../store/payouts/evm-lane.ts';

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
