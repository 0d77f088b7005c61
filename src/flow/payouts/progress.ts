// What happens to a batch of payouts after it was formed, one database transaction for each step: a signed transaction is stored, the chain
// confirms one, it becomes final, or it becomes certain that none can be mined. Only evidence on the chain ends a payout; nothing here calls
// anything outside.
import { finalDepth } from '../../core/confirmations.ts';
import type { CurrencyCode } from '../../core/currency.ts';
import type { Entry } from '../../core/judge/case.ts';
import { greatest, least, minus, plus, sum } from '../../core/money.ts';
import { shares } from '../../core/payouts/outgoing-fees.ts';
import {
  completeEntries,
  giveBackEntries,
  lostInputsEntry,
  returnEntry,
  signEntry,
  trueUpEntry,
} from '../../core/payouts/postings.ts';
import type { SignedTransaction } from '../../core/signer-wire.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import { readAgreedHeight } from '../../store/chain/node-conditions.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { heldAgain, insertAttempt, readShares } from '../../store/payouts/attempts.ts';
import { type Attempt, type Batch, type BatchPayout, readBatch, setBatchState } from '../../store/payouts/batch-rows.ts';
import { descendantsDue, freeInputs } from '../../store/payouts/batches.ts';
import { asBooked } from '../../store/payouts/booked-amounts.ts';
import { markReimbursing } from '../../store/payouts/reimbursements.ts';
import { announcePayouts, type PayoutChange, writePayoutChanges } from '../../store/payouts/status-changes.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';

/**
 * Stores a signed transaction, and books what it takes from our outputs, before it is sent. Refused (false) when another worker has leased
 * the batch since, or the transaction is stored already.
 */
export function storeSigned(
  ctx: Context,
  signed: SignedTransaction,
  at: { readonly epoch: bigint; readonly feeRate: bigint },
): Promise<boolean> {
  return ctx.db.transaction(async (sql) => {
    const batch = await readBatch(sql, signed.request.batchId, { lock: true });
    if (batch === null || batch.leaseEpoch !== at.epoch) return false;
    if (batch.attempts.some((attempt) => attempt.number === signed.request.number)) return false;
    await addAttempt(ctx, sql, batch, signed, at);
    return true;
  });
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

export type Posted = { readonly payout: BatchPayout; readonly entry: Entry };

/** Books entries of payouts at the clock's time, each to its own payout; an entry whose key is booked already changes nothing. */
export async function post(ctx: Context, sql: Sql, entries: readonly Posted[]): Promise<void> {
  const atMs = ctx.ports.clock.now();
  await postEntries(
    sql,
    entries.map(({ payout, entry }) => ({ entry, transactionId: null, payoutId: payout.id, atMs })),
  );
}

/** By payout: the highest share that any attempt has, which is what was booked as on its way out. */
function highestShares(byAttempt: ReadonlyMap<bigint, ReadonlyMap<string, bigint>>): Map<string, bigint> {
  const highest = new Map<string, bigint>();
  for (const parts of byAttempt.values()) for (const [id, fee] of parts) highest.set(id, greatest(highest.get(id) ?? 0n, fee));
  return highest;
}

/** What the merchants of these payouts owe in their currencies, locked; paying some of it back lowers it for the next. */
export async function lockOwed(
  sql: Sql,
  payouts: readonly BatchPayout[],
): Promise<(payout: BatchPayout, entering: bigint) => bigint> {
  const owed = new Map<string, bigint>();
  const keyOf = (payout: BatchPayout): string => `${payout.merchantId} ${payout.currency}`;
  // what a reimbursement has taken is no longer the merchant's
  const owing = payouts.filter((payout) => payout.reimburses === null);
  const merchants = [...new Set(owing.map((payout) => payout.merchantId))].sort((a, b) => (a < b ? -1 : 1));
  for (const merchantId of merchants) {
    const currencies = [...new Set(owing.filter((one) => one.merchantId === merchantId).map((one) => one.currency))];
    const balances = await lockBalances(sql, merchantId, currencies);
    for (const currency of currencies) owed.set(`${merchantId} ${currency}`, balances.get(currency)?.receivable ?? 0n);
  }
  return (payout, entering) => {
    const before = owed.get(keyOf(payout)) ?? 0n;
    owed.set(keyOf(payout), minus(before, least(before, entering)));
    return before;
  };
}

/**
 * Up to which height the chain decides about a batch: to its tip, or, where it pays more than the contested limit, to the highest block that
 * two of our nodes hold (what no price was known for is above every limit).
 */
export async function decidedHeight(ctx: Context, sql: Sql, batch: Batch<CurrencyCode>, tip: number): Promise<number> {
  const worth = batch.payouts.reduce<bigint | null>(
    (all, { usdMinor }) => (all === null || usdMinor === null ? null : plus(all, usdMinor)),
    0n,
  );
  if (worth !== null && worth <= ctx.contestedLimitMinor) return tip;
  return Math.min(tip, (await readAgreedHeight(sql, batch.currency)) ?? tip);
}

/** `unagreed`: a block holds it that decides only once a second node has it too. */
export type Progress = 'unagreed' | 'confirmed' | 'moved' | 'reorged' | 'final' | 'failed' | 'displaced' | 'waiting';

/**
 * Compares a batch with what the chain shows of it, and books what follows: the first confirmation completes its payouts, final depth ends it,
 * a reorganisation changes no status, and only a final transaction that is none of ours (or inputs that are gone for good) fails it.
 */
export function progress(ctx: Context, batchId: string): Promise<Progress> {
  return ctx.db.transaction(async (sql) => {
    const read = await readBatch(sql, batchId, { lock: true });
    const batch = read === null ? null : { ...read, payouts: await asBooked(sql, read.payouts) };
    const tip = batch === null ? null : await readCursor(sql, batch.currency);
    if (batch === null || tip === null || batch.attempts.length === 0) return 'waiting';
    const decided = await decidedHeight(ctx, sql, batch, tip.height);
    const deep = (height: number | null): boolean => height !== null && decided - height + 1 >= finalDepth(batch.currency).depth;
    const mined = batch.attempts.find((attempt) => attempt.height !== null) ?? null;
    if (mined?.height != null && mined.height > decided) return 'unagreed';
    if (mined !== null) return confirm(ctx, sql, { batch, mined, isFinal: deep(mined.height) });
    await stopOnForeignSpend(ctx, sql, batch);
    const taken = batch.inputs.filter((input) => input.spentBy !== null && deep(input.spentHeight));
    // what made the input was undone for good: its own loss is booked where it was received
    const isGone = batch.inputs.some((input) => deep(input.goneHeight));
    if (taken.length > 0 || isGone)
      return fail(
        ctx,
        sql,
        batch,
        taken.map((input) => input.amount),
      );
    return sendAgain(ctx, sql, batch);
  });
}

/** Where the block that held a batch is gone, the same bytes are sent again, and no status changes. */
export async function sendAgain(ctx: Context, sql: Sql, batch: Batch<CurrencyCode>): Promise<'waiting' | 'reorged'> {
  if (batch.state !== 'mined' && batch.state !== 'final') return 'waiting';
  await setBatchState(sql, batch.id, { state: 'signed', minedAttempt: batch.minedAttempt });
  await announcePayouts(
    sql,
    batch.payouts.map((payout) => ({
      payout,
      type: 'payout.reorged',
      status: payout.status,
      previous: null,
      reason: 'a reorganisation removed its block; the same transaction is sent again',
    })),
    ctx.ports.clock.now(),
  );
  return 'reorged';
}

/** Outputs of ours that a transaction spends which nobody here knows: another copy of this server is running, or a key was stolen. */
export async function stopOnForeignSpend(ctx: Context, sql: Sql, batch: Batch<CurrencyCode>): Promise<void> {
  const foreign = batch.inputs.filter((input) => input.spentBy !== null);
  if (foreign.length === 0 || batch.state === 'dead') return;
  await tripBreaker(sql, {
    name: 'payouts',
    by: ['INV-10'],
    findings: foreign.map(
      ({ txid, vout, spentBy }) => `${txid}:${vout} of batch ${batch.id} is spent by ${spentBy}, which was not signed here`,
    ),
    atMs: ctx.ports.clock.now(),
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
    await setBatchState(sql, batch.id, { state: 'mined', minedAttempt: mined.id });
    return open.length > 0 ? 'confirmed' : 'moved';
  }
  if (batch.state === 'final') return 'waiting';
  const differences = batch.payouts.flatMap((payout) => {
    const entry = trueUpEntry(payout, parts.get(payout.id) ?? 0n, payout.fee ?? parts.get(payout.id) ?? 0n);
    return entry === null || payout.status !== 'completed' ? [] : [{ payout, entry }];
  });
  await post(ctx, sql, differences);
  await setBatchState(sql, batch.id, { state: 'final', minedAttempt: mined.id });
  return 'final';
}

/** The identifiers of the transactions whose payments these payouts send back. */
export const reimbursedBy = (payouts: readonly BatchPayout[]): readonly string[] =>
  payouts.flatMap(({ reimburses }) => (reimburses === null ? [] : [reimburses]));

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
  if (batch.state === 'dead') return 'waiting';
  const booked = highestShares(await readShares(sql, batch.id));
  const nowMs = ctx.ports.clock.now();
  const ended = batch.payouts.filter((payout) => payout.status !== 'failed');
  const owed = await lockOwed(sql, ended);
  const again = await heldAgain(
    sql,
    ended.map(({ id }) => id),
  );
  const entries: Posted[] = [];
  const changes: PayoutChange[] = [];
  for (const payout of ended) {
    if (payout.status === 'completed') {
      const fee = payout.fee ?? 0n;
      entries.push({ payout, entry: returnEntry(payout, fee, owed(payout, plus(payout.amount, fee))) });
      changes.push({ payout, from: ['completed', 'ended'], event: 'displaced', error: 'displaced' });
    } else {
      const before = owed(payout, plus(payout.amount, payout.feeMax));
      const given = giveBackEntries(payout, booked.get(payout.id) ?? 0n, before, again.has(payout.id));
      for (const entry of given) entries.push({ payout, entry });
      changes.push({ payout, from: ['processing', 'batched'], event: 'impossible', error: 'displaced' });
    }
  }
  await post(ctx, sql, entries);
  const gone = sum(lost);
  if (gone > 0n) {
    const entry = lostInputsEntry(batch.id, batch.currency, gone);
    await postEntries(sql, [{ entry, transactionId: null, atMs: nowMs }]);
  }
  await writePayoutChanges(sql, changes, nowMs);
  await markReimbursing(sql, reimbursedBy(ended));
  const unspent = batch.inputs.filter((input) => input.spentBy === null && input.goneHeight === null);
  await freeInputs(sql, batch.currency, batch.id, unspent);
  await setBatchState(sql, batch.id, { state: 'dead', minedAttempt: null });
  await descendantsDue(sql, batch.id);
  return changes.some((change) => change.event === 'displaced') ? 'displaced' : 'failed';
}
