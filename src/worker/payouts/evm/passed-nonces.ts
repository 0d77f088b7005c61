// Transactions that our address on Ethereum's chain has sent and that this database does not know: found by what a node says how many it had sent
// after older blocks, because no node is asked for a sender and a nonce.
import { isDeepStrictEqual } from 'node:util';
import { evmAddressOf, evmInput, evmScript } from '../../../core/currencies/evm.ts';
import { EVM_CODES, type EvmCode, isUtxo } from '../../../core/currency.ts';
import type { EvmPort } from '../../../core/evm/port.ts';
import type { TransactionFacts } from '../../../core/ports.ts';
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

export type SentTransaction = {
  readonly nonce: number;
  readonly block: { readonly height: number; readonly hash: string };
  readonly facts: TransactionFacts;
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
    if (facts !== undefined) found.push({ nonce, block: { height: high, hash }, facts });
  }
  return found;
}

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
  for (const { nonce, block, facts } of sent) {
    const { txid, outputs } = facts;
    // what has gone to another address of ours is booked by itself
    if (ours.has(txid) || (await isNoted(ctx.db, currency, txid))) continue;
    const paid = open.filter((payout) => outputs.some((output) => paysPayout(output, payout))).map(({ id }) => id);
    if (onlyPaying && paid.length === 0) continue;
    payoutIds.push(...paid);
    const { ended } = await port.ended(txid);
    const isShown = ended?.blockHash === block.hash && isDeepStrictEqual(ended.facts.inputs, [evmInput(address, nonce)]);
    if (!isShown) continue;
    const pays = paid.length === 0 ? '' : `, pays what ${paid.join(', ')} ask for`;
    const finding = `transaction ${txid} was sent by our address ${address} at nonce ${nonce}${pays} and was not signed here (INV-15): another copy of this server is running, a key was stolen, or database and signer have forgotten it`;
    movements.push({ currency, txid, blockHash: block.hash, finding });
  }
  if (movements.length > 0 || payoutIds.length > 0) await recordUnknown(ctx, currency, { movements, payoutIds });
  return movements.length;
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
  const { height, blockHash: hash, facts } = ended;
  const displaced = payouts.map(askedOf);
  const sent = [{ nonce: input.vout, block: { height, hash }, facts }];
  await recordSent(ctx, chain, evmAddressOf(input.script.toString('hex')), sent, { onlyPaying: false, displaced });
  const isPaid = displaced.some((payout) => facts.outputs.some((output) => paysPayout(output, payout)));
  return isPaid ? `${txid} has used its nonce, and pays what it asks for: "bursar payout recover ${txid}" books that` : null;
}

/**
 * Books a transaction that one of our sending addresses has sent, or the address of a transaction, by its hash alone.
 * @throws Refusal not_resolvable, also for one that no block has, or that others have sent
 */
export async function recoverSent(
  ctx: Context,
  txid: string,
  { by, acceptsLoss }: { readonly by: string; readonly acceptsLoss: boolean },
): Promise<Recovered & { readonly currency: EvmCode }> {
  const refused = (why: string): Refusal => new Refusal('not_resolvable', { message: `Transaction ${txid} ${why}.` });
  let isMined = false;
  for (const currency of EVM_CODES) {
    const hots = ctx.ports.chains.has(currency) ? await everyHotAddress(ctx, ctx.db, currency) : [];
    const hot = ctx.ports.chains.has(currency) ? await hotAddress(ctx, ctx.db, currency) : null;
    if (hot === null) continue;
    const port = portOf(ctx, currency) as EvmPort;
    if (!isMined && (await port.mined(txid)) === null) break;
    isMined = true;
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
  throw refused(
    isMined
      ? 'was not sent by an address that payouts leave from, or of a transaction'
      : 'is in no block that a node of ours has',
  );
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
