// What happens to a batch of payouts after it was formed, one database transaction for each step: a signed transaction is stored, the chain
// confirms one, it becomes final, or it becomes certain that none can be mined. Only evidence on the chain ends a payout; nothing here calls
// anything outside.
import { finalDepth } from '../../core/confirmations.ts';
import type { UtxoCode } from '../../core/currency.ts';
import type { Entry } from '../../core/judge/case.ts';
import { greatest, minus, plus, sum } from '../../core/money.ts';
import { outBy } from '../../core/payouts/booked-steps.ts';
import { shares } from '../../core/payouts/outgoing-fees.ts';
import {
  borneEntry,
  completeEntries,
  foundInputsEntry,
  giveBackEntries,
  lostInputsEntry,
  returnEntry,
  signEntry,
  trueUpEntry,
} from '../../core/payouts/postings.ts';
import type { SignedTransaction } from '../../core/signer-wire.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { heldAgain, insertAttempt, readShares } from '../../store/payouts/attempts.ts';
import { type Attempt, type Batch, setBatchState } from '../../store/payouts/batch-rows.ts';
import { descendantsDue, freeInputs } from '../../store/payouts/batches.ts';
import { bookedSteps, bookedStepsOf } from '../../store/payouts/booked-amounts.ts';
import { markReimbursing } from '../../store/payouts/reimbursements.ts';
import { type PayoutChange, writePayoutChanges } from '../../store/payouts/status-changes.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import {
  comparing,
  lockOwed,
  type Posted,
  type Progress,
  post,
  reimbursedBy,
  stopOnPaidAfterAll,
  storing,
  unmined,
} from './batch-progress.ts';

/**
 * Stores a signed transaction, and books what it takes from our outputs, before it is sent. Refused (false) when another worker has leased
 * the batch since, or the transaction is stored already.
 */
export function storeSigned(
  ctx: Context,
  signed: SignedTransaction,
  at: { readonly epoch: bigint; readonly feeRate: bigint },
): Promise<boolean> {
  return storing<UtxoCode>(ctx, signed, at.epoch, (sql, batch) => addAttempt(ctx, sql, batch, signed, at));
}

/** The attempt and its entries; the batch and its payouts are locked. */
export async function addAttempt(
  ctx: Context,
  sql: Sql,
  batch: Batch,
  signed: SignedTransaction,
  at: { readonly epoch: bigint; readonly feeRate: bigint; readonly lost?: bigint },
): Promise<void> {
  const { request } = signed;
  const fee = BigInt(signed.fee);
  const parts = request.outputs.length === 0 ? [] : shares(fee, request.outputs.length);
  const before = highestShares(await readShares(sql, batch.id));
  await insertAttempt(sql, {
    batchId: batch.id,
    number: request.number,
    currency: batch.currency,
    txid: signed.txid,
    raw: Buffer.from(signed.raw, 'hex'),
    fee,
    vbytes: signed.vbytes,
    feeRate: at.feeRate,
    maxFee: null,
    change: request.change === null ? null : { vout: request.outputs.length, amount: BigInt(request.change.amount) },
    epoch: at.epoch,
    sequence: signed.sequence,
    lost: at.lost ?? 0n,
    signedAtMs: signed.signedAtMs,
    shares: request.outputs.map((output, index) => ({ payoutId: output.payoutId, fee: parts[index] as bigint })),
  });
  const open = new Map(batch.payouts.map((payout) => [payout.id, payout]));
  const entries = request.outputs.flatMap((output, index) => {
    const payout = open.get(output.payoutId);
    if (payout === undefined || payout.status !== 'processing') return [];
    const entry = signEntry(payout, request.number, parts[index] as bigint, before.get(payout.id) ?? null);
    return entry === null ? [] : [{ payout, entry }];
  });
  await post(ctx, sql, entries);
}

/** By payout: the highest share that any attempt has, which is what was booked as on its way out. */
function highestShares(byAttempt: ReadonlyMap<bigint, ReadonlyMap<string, bigint>>): Map<string, bigint> {
  const highest = new Map<string, bigint>();
  for (const parts of byAttempt.values()) for (const [id, fee] of parts) highest.set(id, greatest(highest.get(id) ?? 0n, fee));
  return highest;
}

/**
 * Compares a batch with what the chain shows of it, and books what follows: the first confirmation completes its payouts, final depth ends it,
 * a reorganisation changes no status, and only a final transaction that is none of ours (or inputs that are gone for good) fails it.
 */
export function progress(ctx: Context, batchId: string): Promise<Progress> {
  return comparing<UtxoCode>(ctx, batchId, async (sql, { batch, decided, agreed, areSeveral, mined }) => {
    const { depth } = finalDepth(batch.currency);
    const deep = (height: number | null, upTo: number): boolean => height !== null && upTo - height + 1 >= depth;
    // it stays dead whatever becomes of that block: what was given back must not be sent again
    if (mined !== null && batch.state === 'dead')
      return stopOnPaidAfterAll(ctx, sql, batch, mined, `bursar payout recover ${mined.txid}, once it is final`);
    if (mined?.height != null && mined.height > decided) return 'unagreed';
    if (mined !== null) return confirm(ctx, sql, { batch, mined, isFinal: deep(mined.height, decided) });
    if (batch.state === 'final') await trueUp(ctx, sql, batch, null);
    const isTaken = (input: Batch['inputs'][number]): boolean => input.spentBy !== null && deep(input.spentHeight, agreed);
    const lost = batch.inputs.filter(isTaken).map((input) => input.amount);
    if (batch.state === 'dead') return settleInputs(ctx, sql, batch, lost);
    // one of its own is in a block that was read before it was written back: that block is read again
    const isOwn = ({ spentBy }: Batch['inputs'][number]): boolean => batch.attempts.some(({ txid }) => txid === spentBy);
    return unmined(ctx, sql, batch, {
      // what made the input was undone for good: its own loss is booked where it was received
      isGone: (input) => (isTaken(input) && !isOwn(input)) || deep(input.goneHeight, agreed),
      ...(areSeveral ? { finalWith: ({ spentHeight }) => (spentHeight ?? agreed) + depth - 1 } : {}),
      fail: () => fail(ctx, sql, batch, lost),
    });
  });
}

type Mined = { readonly batch: Batch; readonly mined: Attempt; readonly isFinal: boolean };

async function confirm(ctx: Context, sql: Sql, { batch, mined, isFinal }: Mined): Promise<Progress> {
  const byAttempt = await readShares(sql, batch.id);
  const parts = byAttempt.get(mined.id) ?? new Map<string, bigint>();
  const booked = highestShares(byAttempt);
  const open = batch.payouts.filter((payout) => payout.status === 'processing');
  await showFees(ctx, sql, batch, parts);
  const nowMs = ctx.ports.clock.now();
  if (open.length > 0) {
    const owed = await lockOwed(sql, open);
    const entries: Posted[] = [];
    const changes: PayoutChange[] = [];
    for (const payout of open) {
      const fee = parts.get(payout.id) ?? 0n;
      const before = owed(payout, minus(payout.feeMax, fee));
      for (const entry of completeEntries(payout, fee, booked.get(payout.id) ?? fee, before)) entries.push({ payout, entry });
      changes.push({ payout, from: ['processing', 'batched'], event: 'confirmed', fee, completedAtMs: nowMs });
    }
    await post(ctx, sql, entries);
    await writePayoutChanges(sql, changes, nowMs);
    await markReimbursing(sql, reimbursedBy(open));
  }
  const isSame = batch.minedAttempt === mined.id;
  if (!isFinal) {
    if (batch.state === 'mined' && isSame) return 'waiting';
    if (batch.state === 'final') await trueUp(ctx, sql, batch, null);
    await setBatchState(sql, batch.id, { state: 'mined', minedAttempt: mined.id });
    return open.length > 0 ? 'confirmed' : 'moved';
  }
  if (batch.state === 'final' && isSame) return 'waiting';
  await trueUp(ctx, sql, batch, parts);
  await setBatchState(sql, batch.id, { state: 'final', minedAttempt: mined.id });
  return 'final';
}

/**
 * Books what the final transaction takes beside what its payouts were charged, as the difference to what is booked of that.
 * @param parts its shares; null: none is final any more
 */
async function trueUp(ctx: Context, sql: Sql, { payouts }: Batch, parts: ReadonlyMap<string, bigint> | null): Promise<void> {
  const completed = payouts.filter(({ status }) => status === 'completed');
  const booked = await stepsOf(sql, completed);
  const differences = completed.flatMap((payout) => {
    const part = parts?.get(payout.id);
    const charged = payout.fee ?? part ?? 0n;
    const entry = trueUpEntry(payout, part ?? charged, charged, booked(payout.id));
    return entry === null ? [] : [{ payout, entry }];
  });
  await post(ctx, sql, differences);
}

const stepsOf = (sql: Sql, payouts: Batch['payouts']) =>
  bookedSteps(
    sql,
    'po',
    payouts.map(({ id }) => id),
  );

/** A reorganisation may put another transaction of the batch in the place of one that completed a reimbursement: its customer got what that pays. */
async function showFees(ctx: Context, sql: Sql, batch: Batch, parts: ReadonlyMap<string, bigint>): Promise<void> {
  const others = batch.payouts.flatMap((payout): PayoutChange[] => {
    const fee = parts.get(payout.id);
    const isOther = payout.reimburses !== null && payout.status === 'completed' && fee !== undefined && payout.fee !== fee;
    return isOther ? [{ payout, from: ['completed', 'ended'], event: 'final', fee }] : [];
  });
  await writePayoutChanges(sql, others, ctx.ports.clock.now());
}

/** Another transaction has spent an input for good: none of ours can be mined any more. */
async function fail(ctx: Context, sql: Sql, batch: Batch, lost: readonly bigint[]): Promise<Progress> {
  const highest = highestShares(await readShares(sql, batch.id));
  const nowMs = ctx.ports.clock.now();
  const ended = batch.payouts.filter((payout) => payout.status !== 'failed');
  const owed = await lockOwed(sql, ended);
  const again = await heldAgain(
    sql,
    ended.map(({ id }) => id),
  );
  const booked = await stepsOf(sql, batch.payouts);
  const entries: Posted[] = [];
  const changes: PayoutChange[] = [];
  for (const payout of batch.payouts) {
    // one that was found paid once, and was borne
    const entry = payout.status === 'failed' ? borneEntry(payout, false, booked(payout.id)) : null;
    if (entry !== null) entries.push({ payout, entry });
  }
  for (const payout of ended) {
    if (payout.status === 'completed') {
      const fee = payout.fee ?? 0n;
      const before = owed(payout, plus(payout.amount, fee));
      entries.push({ payout, entry: returnEntry(payout, fee, before, booked(payout.id)) });
      changes.push({ payout, from: ['completed', 'ended'], event: 'displaced', error: 'displaced' });
    } else {
      const before = owed(payout, plus(payout.amount, payout.feeMax));
      const given = giveBackEntries(payout, highest.get(payout.id) ?? 0n, before, again.has(payout.id));
      for (const entry of given) entries.push({ payout, entry });
      changes.push({ payout, from: ['processing', 'batched'], event: 'impossible', error: 'displaced' });
    }
  }
  await post(ctx, sql, entries);
  await settleInputs(ctx, sql, batch, lost);
  await writePayoutChanges(sql, changes, nowMs);
  await markReimbursing(sql, reimbursedBy(ended));
  await setBatchState(sql, batch.id, { state: 'dead', minedAttempt: null });
  await descendantsDue(sql, batch.id);
  return changes.some((change) => change.event === 'displaced') ? 'displaced' : 'failed';
}

/**
 * Books which outputs of a dead batch others have spent for good, and frees those that nothing has spent. What is spent in a block that is not so
 * deep yet is booked when it is, or freed where the chain leaves that block; where that was booked already, it is undone.
 */
async function settleInputs(ctx: Context, sql: Sql, batch: Batch, lost: readonly bigint[]): Promise<Progress> {
  const { id, currency, inputs } = batch;
  const booked = await bookedStepsOf(sql, 'batch', id);
  const before = plus(outBy(booked, 'lost'), outBy(booked, 'lost_undone'));
  const more = minus(sum(lost), before);
  // a deeper reorganisation: what is spent in another block by now stays lost until it is spent in none
  const back = minus(before, sum(inputs.filter((input) => input.spentBy !== null).map((input) => input.amount)));
  const atMs = ctx.ports.clock.now();
  const entries: Entry[] = [];
  if (more > 0n) entries.push(lostInputsEntry(id, currency, more, booked));
  if (back > 0n) entries.push(foundInputsEntry(id, currency, back, booked));
  await postEntries(
    sql,
    entries.map((entry) => ({ entry, transactionId: null, atMs })),
  );
  const unspent = inputs.filter((input) => input.spentBy === null && input.goneHeight === null);
  await freeInputs(sql, currency, id, unspent);
  return inputs.filter((input) => input.spentBy !== null).length > lost.length ? 'unsettled' : 'waiting';
}
