// Transactions that our address on Ethereum's chain has sent and that this database does not know: found by what a node says how many it had sent
// after older blocks, because no node is asked for a sender and a nonce.
import { isDeepStrictEqual } from 'node:util';
import { evmAddressOf, evmInput, evmScript } from '../../../core/currencies/evm.ts';
import { EVM_CODES, type EvmCode, isUtxo } from '../../../core/currency.ts';
import { isOfSender } from '../../../core/evm/outcome.ts';
import type { EvmPort } from '../../../core/evm/port.ts';
import type { Outpoint, TransactionFacts } from '../../../core/ports.ts';
import { Refusal } from '../../../core/refusal.ts';
import type { Context } from '../../../flow/context.ts';
import { everyHotAddress, hotAddress } from '../../../flow/evm/batches.ts';
import { askedOf, recoverOnEvm } from '../../../flow/evm/recover.ts';
import { notShown, recoverFailedOnEvm } from '../../../flow/evm/recover-failed.ts';
import type { Recovered } from '../../../flow/payouts/after-restore/recover.ts';
import { recordUnknown } from '../../../flow/payouts/after-restore/unknown-movements.ts';
import { indexOf } from '../../../flow/sweeps/forgotten-moves.ts';
import type { Beside } from '../../../flow/sweeps/sent-beside.ts';
import { recoverFromAddress } from '../../../flow/sweeps/sent-elsewhere.ts';
import type { Batch } from '../../../store/payouts/batch-rows.ts';
import { readBlockHash } from '../../../store/payouts/evm-lane.ts';
import { batchOfTransaction } from '../../../store/payouts/taken-back.ts';
import {
  paysPayout,
  signedHere,
  type UnknownMovement,
  type UnsignedPayout,
  unsignedPayouts,
} from '../../../store/payouts/unknown-movements.ts';
import { isNoted } from '../../../store/sweeps/forgotten-moves.ts';
import { portOf } from '../../chain/context.ts';
import { troubleOf } from '../../chain/pass-result.ts';
import { createOutpointSet, watchOnly } from '../../chain/watch-list.ts';
import { joined, recoverCarried, usedBy, useOf } from './authorized.ts';

export type SentTransaction = {
  readonly nonce: number;
  readonly block: { readonly height: number; readonly hash: string };
  readonly facts: TransactionFacts;
  /** It is no transaction of the address, but carries what that has signed (EIP-7702). */
  readonly isCarried?: true;
};

/** How many nonces are looked for at once, the newest. */
export const MOST_NONCES = 50;

/**
 * Finds the transactions of an address at some of its nonces, in rising order, in blocks up to a height.
 * @returns those that were found, in their order; a node that has forgotten old states finds the newer ones
 * @throws NodeTrouble
 */
export async function findSent(
  ctx: Context,
  { currency, port }: { readonly currency: EvmCode; readonly port: EvmPort },
  address: string,
  { nonces, height }: { readonly nonces: readonly number[]; readonly height: number },
): Promise<readonly SentTransaction[]> {
  const scripts = (await unsignedPayouts(ctx.db, currency)).map(({ script }) => Buffer.from(script, 'hex'));
  const counts = new Map<number, number>();
  /** What a node does not know any more was before what it knows. */
  const countAfter = async (at: number): Promise<number> => {
    const known = counts.get(at);
    if (known !== undefined) return known;
    try {
      const { nonce } = await port.account(address, at);
      counts.set(at, nonce);
      return nonce;
    } catch (error) {
      if (troubleOf(error) === null || at === height) throw error;
      return 0;
    }
  };
  const found: SentTransaction[] = [];
  let low = 0;
  for (const nonce of nonces) {
    let high = height;
    // the first block after which more were sent
    for (let bottom = low; bottom < high; ) {
      const middle = Math.floor((bottom + high) / 2);
      if ((await countAfter(middle)) > nonce) high = middle;
      else bottom = middle + 1;
    }
    low = high;
    const hash = (await readBlockHash(ctx.db, currency, high)) ?? (await port.hashAt(high));
    if (hash === null) continue;
    const watch = { ...watchOnly(scripts), ...createOutpointSet([evmInput(address, nonce)]) };
    const { touched } = await port.readBlock(hash, watch);
    const facts = touched.find(({ spends }) => spends.length > 0);
    const block = { height: high, hash };
    if (facts !== undefined) found.push({ nonce, block, facts });
    const carrier = facts === undefined ? await port.carrierIn(hash, { address, nonce }) : null;
    if (carrier !== null) found.push({ nonce, block, facts: carriedBy(carrier, evmInput(address, nonce)), isCarried: true });
  }
  return found;
}

/** What has used a nonce in the place of a transaction. */
const carriedBy = (txid: string, sender: Outpoint): TransactionFacts => ({
  txid,
  coinbase: false,
  inputs: [sender],
  outputs: [],
  spends: [sender],
});

/**
 * Records those of them that nobody here has signed, and stops payouts for them; the payouts that they pay wait for an operator. That a block has one
 * is a node's word: what is recorded stays until an operator has it booked, so two must show it.
 * @param of.onlyPaying leaves out those that pay no open payout
 * @param of.displaced payouts that were signed for one of their nonces
 * @returns how many were recorded
 */
export async function recordSent(
  ctx: Context,
  { currency, port }: { readonly currency: EvmCode; readonly port: EvmPort },
  address: string,
  sent: readonly SentTransaction[],
  { onlyPaying, displaced = [] }: { readonly onlyPaying: boolean; readonly displaced?: readonly UnsignedPayout[] },
): Promise<number> {
  const ours = await signedHere(
    ctx.db,
    currency,
    sent.map(({ facts }) => facts.txid),
  );
  const open = [...(await unsignedPayouts(ctx.db, currency)), ...displaced];
  const payoutIds: string[] = [];
  const movements: UnknownMovement[] = [];
  for (const { nonce, block, facts, isCarried = false } of sent) {
    const { txid } = facts;
    // what has gone to another address of ours is booked by itself
    if (!isCarried && (ours.has(txid) || (await isNoted(ctx.db, currency, txid)))) continue;
    const carried = isCarried ? await useOf(ctx, { currency, port }, { txid, block }, { address, nonce }) : null;
    const outputs = ownOf(carried === null ? facts : carried.facts);
    const paid = open.filter((payout) => outputs.some((output) => paysPayout(output, payout))).map(({ id }) => id);
    if (onlyPaying && paid.length === 0) continue;
    payoutIds.push(...paid);
    const { ended } = await port.ended(txid);
    const sender = evmInput(address, nonce);
    const isShown = carried === null ? isDeepStrictEqual(ended?.facts.inputs, [sender]) : carried.facts !== null;
    if (ended?.blockHash !== block.hash || !isShown) continue;
    const pays = paid.length === 0 ? '' : `, pays what ${paid.join(', ')} ask for`;
    const whose = carried === null ? 'was sent by' : 'carries what was authorized by';
    const finding = `transaction ${txid} ${whose} our address ${address} at nonce ${nonce}${pays} and was not signed here (INV-15): another copy of this server is running, a key was stolen, or database and signer have forgotten it`;
    movements.push({ currency, txid, blockHash: block.hash, finding, spends: [sender] });
  }
  if (movements.length > 0 || payoutIds.length > 0)
    await recordUnknown(ctx, currency, { movements: oneOfEach(movements), payoutIds });
  return movements.length;
}

/** What a contract has sent on was not ours: it pays no payout. */
const ownOf = (facts: TransactionFacts | null): TransactionFacts['outputs'] => (facts?.outputs ?? []).filter(isOfSender);

/** A transaction of ours may carry what we have authorized besides, and several of these. */
function oneOfEach(movements: readonly UnknownMovement[]): readonly UnknownMovement[] {
  return [...Map.groupBy(movements, ({ txid }) => txid).values()].map((all) => {
    const finding = all.map((one) => one.finding).join('; ');
    return { ...(all[0] as UnknownMovement), finding, spends: all.flatMap((one) => one.spends ?? []) };
  });
}

/**
 * Records what has used the nonce of a batch for good and was not signed here: database and signer, put back together, have forgotten it, and it may
 * have paid the payout of the batch, or one that is to be paid next.
 * @returns why nothing of the batch may be given back; null: what has used its nonce pays somebody else, or is its own
 */
export async function recordDisplacing(
  ctx: Context,
  chain: { readonly currency: EvmCode; readonly port: EvmPort },
  { purpose, attempts, inputs: [input], payouts }: Batch<EvmCode>,
): Promise<string | null> {
  const txid = input?.spentBy ?? null;
  // what leaves from the address of a transaction pays nobody
  if (input === undefined || txid === null || purpose === 'sweep' || attempts.some(({ height }) => height !== null)) return null;
  const shown = await chain.port.ended(txid);
  const { ended } = shown;
  if (ended === null) return `${txid} has used its nonce, and ${notShown(shown)}`;
  const { height, blockHash: hash } = ended;
  const block = { height, hash };
  const displaced = payouts.map(askedOf);
  const address = evmAddressOf(input.script.toString('hex'));
  const isCarried = !isDeepStrictEqual(ended.facts.inputs, [evmInput(address, input.vout)]);
  const use = isCarried ? await useOf(ctx, chain, { txid, block }, { address, nonce: input.vout }) : null;
  if (use !== null && use.facts === null)
    return `${txid} is said to have used its nonce by an authorization, and ${usedBy(use.said)}`;
  const facts = use?.facts ?? ended.facts;
  const sent = [{ nonce: input.vout, block, facts, ...(isCarried ? { isCarried } : {}) }];
  await recordSent(ctx, chain, address, sent, { onlyPaying: false, displaced });
  const isPaid = displaced.some((payout) => ownOf(facts).some((output) => paysPayout(output, payout)));
  return isPaid ? `${txid} has used its nonce, and pays what it asks for: "bursar payout recover ${txid}" books that` : null;
}

/**
 * Books a transaction that one of our sending addresses has sent, or the address of a transaction, by its hash alone, and what such an address has
 * authorized in it.
 * @throws Refusal not_resolvable, also for one that no block has, or that others have sent
 */
export async function recoverSent(
  ctx: Context,
  txid: string,
  asked: { readonly by: string; readonly acceptsLoss: boolean },
): Promise<Recovered & { readonly currency: EvmCode }> {
  const carried = await recoverCarried(ctx, txid, asked);
  const isMined = { is: false };
  const sent = await recoverOwn(ctx, txid, asked, isMined);
  if (sent !== null) return { ...(carried === null ? sent : joined(sent, carried)), currency: sent.currency };
  if (carried !== null) return carried;
  const why = isMined.is
    ? 'was not sent by an address that payouts leave from, or of a transaction'
    : 'is in no block that a node of ours has';
  throw new Refusal('not_resolvable', { message: `Transaction ${txid} ${why}.` });
}

/** Null: no address of ours has sent it. @param isMined set where a block has it */
async function recoverOwn(
  ctx: Context,
  txid: string,
  { by, acceptsLoss }: { readonly by: string; readonly acceptsLoss: boolean },
  isMined: { is: boolean },
): Promise<(Recovered & { readonly currency: EvmCode }) | null> {
  const refused = (why: string): Refusal => new Refusal('not_resolvable', { message: `Transaction ${txid} ${why}.` });
  for (const currency of EVM_CODES) {
    const hots = ctx.ports.chains.has(currency) ? await everyHotAddress(ctx, ctx.db, currency) : [];
    const hot = ctx.ports.chains.has(currency) ? await hotAddress(ctx, ctx.db, currency) : null;
    if (hot === null) continue;
    const port = portOf(ctx, currency) as EvmPort;
    if (!isMined.is && (await port.mined(txid)) === null) break;
    isMined.is = true;
    const shown = await port.ended(txid);
    if (shown.ended === null) throw refused(notShown(shown));
    const { facts, height, blockHash } = shown.ended;
    const block = { height, hash: blockHash };
    const { isFinal } = shown;
    const beside = await besideOf(ctx, txid, { currency, blockHash }, refused);
    const recovery = { currency, block, isFinal, facts, beside, by, acceptsLoss };
    const sender = facts.inputs[0]?.txid ?? '';
    if (sender === evmInput(hot.address, 0).txid) return { ...(await recoverOnEvm(ctx, recovery)), currency };
    const script = Buffer.from(evmScript(sender), 'hex');
    const from = await indexOf(ctx, ctx.db, hots, script);
    if (from !== null) return { ...(await recoverFromAddress(ctx, recovery, { ...from, script })), currency };
  }
  return null;
}

/** The same transaction as the other currencies of its chain show it. */
async function besideOf(
  ctx: Context,
  txid: string,
  of: { readonly currency: EvmCode; readonly blockHash: string },
  refused: (why: string) => Refusal,
): Promise<readonly Beside[]> {
  const beside: Beside[] = [];
  for (const currency of EVM_CODES) {
    if (currency === of.currency || !ctx.ports.chains.has(currency)) continue;
    const shown = await (portOf(ctx, currency) as EvmPort).ended(txid);
    if (shown.ended?.blockHash !== of.blockHash) throw refused(notShown(shown));
    beside.push({ currency, facts: shown.ended.facts });
  }
  return beside;
}

/**
 * Books one that was signed here, whose payout had failed, and that has paid; null when none was signed here.
 * @throws Refusal not_resolvable, with what is missing
 */
export async function recoverSigned(
  ctx: Context,
  txid: string,
  asked: { readonly by: string; readonly acceptsLoss: boolean },
): Promise<(Recovered & { readonly currency: EvmCode }) | null> {
  const known = await batchOfTransaction(ctx.db, txid);
  if (known === null || isUtxo(known.currency)) return null;
  const shown = await (portOf(ctx, known.currency) as EvmPort).ended(txid);
  return recoverFailedOnEvm(ctx, { ...asked, txid, shown });
}
