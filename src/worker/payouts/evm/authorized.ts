// Nonces of our addresses on Ethereum's chain that were used without a transaction of theirs (EIP-7702), as nodes show it, and an operator has it booked.
import { evmInput, evmScript } from '../../../core/currencies/evm.ts';
import { ETHER, EVM_CODES, type EvmCode } from '../../../core/currency.ts';
import type { EvmPort, Nonce } from '../../../core/evm/port.ts';
import type { TransactionFacts } from '../../../core/ports.ts';
import { Refusal } from '../../../core/refusal.ts';
import type { Context } from '../../../flow/context.ts';
import { everyHotAddress } from '../../../flow/evm/batches.ts';
import { recoverAuthorized } from '../../../flow/evm/recover-authorized.ts';
import { notShown } from '../../../flow/evm/recover-failed.ts';
import type { Recovered } from '../../../flow/payouts/after-restore/recover.ts';
import { indexOf } from '../../../flow/sweeps/forgotten-moves.ts';
import type { Beside } from '../../../flow/sweeps/sent-beside.ts';
import { isUseKnown, wasFound } from '../../../store/payouts/after-restore/authorized-nonces.ts';
import { portOf } from '../../chain/context.ts';

type Chain = { readonly currency: EvmCode; readonly port: EvmPort };
type Mined = { readonly txid: string; readonly block: { readonly height: number; readonly hash: string } };
/** `facts`: what the address has sent in it; null: too few nodes show that it has used the nonce. */
type Use = { readonly facts: TransactionFacts | null; readonly isDenied: boolean; readonly said: readonly string[] };

/**
 * Whether a transaction in a block has used a nonce of our address by an authorization: as two nodes (the only one, where there is one) show now, or did
 * when it was found. @throws NodeTrouble
 */
export async function useOf(ctx: Context, { currency, port }: Chain, { txid, block }: Mined, signer: Nonce): Promise<Use> {
  const { carried, isUsed, isDenied, said } = await port.authorized(txid, signer);
  const sender = evmInput(signer.address, signer.nonce);
  const isThere = carried?.blockHash === block.hash;
  const isShown = isThere && (isUsed || (!isDenied && (await wasFound(ctx.db, { currency, txid, sender }, block.hash))));
  return { facts: isShown ? carried.facts : null, isDenied, said };
}

/** Those of a transaction's authorizations that addresses of ours have signed, and of which it is not known here what has used their nonces. */
async function signedByOurs(
  ctx: Context,
  txid: string,
): Promise<readonly (Chain & { readonly address: string; readonly nonces: readonly number[] })[]> {
  const [port] = EVM_CODES.flatMap((currency) => (ctx.ports.chains.has(currency) ? [portOf(ctx, currency) as EvmPort] : []));
  const signers = port === undefined ? [] : await port.signersIn(txid);
  const found: (Chain & { address: string; nonces: number[] })[] = [];
  for (const [address, all] of Map.groupBy(signers, (signer) => signer.address)) {
    const currency = await currencyOf(ctx, address);
    if (currency === null) continue;
    const nonces: number[] = [];
    for (const nonce of new Set(all.map((one) => one.nonce)))
      if (!(await isUseKnown(ctx.db, { currency, txid, sender: evmInput(address, nonce) }))) nonces.push(nonce);
    if (nonces.length > 0) found.push({ currency, port: portOf(ctx, currency) as EvmPort, address, nonces });
  }
  return found;
}

/** The currency whose payouts leave from an address, or of whose transaction it is; null: it is none of ours. */
async function currencyOf(ctx: Context, address: string): Promise<EvmCode | null> {
  const script = Buffer.from(evmScript(address), 'hex');
  for (const currency of EVM_CODES.filter((code) => ctx.ports.chains.has(code))) {
    const hots = await everyHotAddress(ctx, ctx.db, currency);
    if (hots.some((hot) => hot.script.equals(script)) || (await indexOf(ctx, ctx.db, hots, script)) !== null) return currency;
  }
  return null;
}

/**
 * Books what a transaction in a final block has used of the nonces of our addresses by authorizations; null: nothing that is not known here.
 * @throws Refusal not_resolvable, with what is missing; NodeTrouble
 */
export async function recoverCarried(
  ctx: Context,
  txid: string,
  { by, acceptsLoss }: { readonly by: string; readonly acceptsLoss: boolean },
): Promise<(Recovered & { readonly currency: EvmCode }) | null> {
  const refused = (why: string): Refusal => new Refusal('not_resolvable', { message: `Transaction ${txid} ${why}.` });
  let done: (Recovered & { readonly currency: EvmCode }) | null = null;
  for (const { currency, port, address, nonces } of await signedByOurs(ctx, txid)) {
    const shown = await port.ended(txid);
    if (shown.ended === null) throw refused(notShown(shown));
    if (!shown.isFinal) throw refused('is in no final block yet: wait for one');
    const block = { height: shown.ended.height, hash: shown.ended.blockHash };
    const used: number[] = [];
    const sent: Beside[] = [];
    for (const nonce of nonces) {
      const signer = { address, nonce };
      const { facts, isDenied, said } = await useOf(ctx, { currency, port }, { txid, block }, signer);
      if (facts === null && isDenied) continue;
      if (facts === null) throw refused(`carries what ${address} has authorized with nonce ${nonce}, and ${usedBy(said)}`);
      if (used.length === 0) sent.push(...(await sentIn(ctx, { txid, block }, signer, refused)));
      used.push(nonce);
    }
    if (used.length === 0) continue;
    const script = Buffer.from(evmScript(address), 'hex');
    const booked = await recoverAuthorized(ctx, { currency, script, nonces: used, txid, block, sent, by, acceptsLoss });
    done = { ...joined(done, booked), currency };
  }
  return done;
}

/** Why it is not booked, or not found, that it has used a nonce. */
export const usedBy = (said: readonly string[]): string =>
  `that it has used that counts once two nodes (the only one, where there is one) show what the address had sent before and after its block (one that keeps older states, where they have forgotten it; one that is away for good, or wrong: take it out of BURSAR_${ETHER}_RPC_URL): ${said.join('; ')}`;

/** What the address has sent in it by its code, in each currency of the chain. */
async function sentIn(
  ctx: Context,
  { txid, block }: Mined,
  signer: Nonce,
  refused: (why: string) => Refusal,
): Promise<readonly Beside[]> {
  const sent: Beside[] = [];
  for (const currency of EVM_CODES.filter((code) => ctx.ports.chains.has(code))) {
    const { carried, said } = await (portOf(ctx, currency) as EvmPort).authorized(txid, signer);
    if (carried?.blockHash !== block.hash) throw refused(`is shown alike by too few nodes: ${said.join('; ')}`);
    sent.push({ currency, facts: carried.facts });
  }
  return sent;
}

/** Both together, of one transaction. */
export function joined(first: Recovered | null, second: Recovered): Recovered {
  if (first === null) return second;
  return {
    ...first,
    payoutIds: [...first.payoutIds, ...second.payoutIds],
    besides: [...(first.besides ?? []), ...(second.besides ?? [])],
    alike: [...(first.alike ?? []), ...(second.alike ?? [])],
  };
}
