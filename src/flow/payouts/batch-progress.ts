// What every batch on a chain shares, whatever it pays and on which chain: a signature is stored under its lease, the batch is compared with the
// blocks that were read, and what is booked, announced or stopped on the way. Nothing here calls anything outside.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Entry } from '../../core/judge/case.ts';
import { least, minus, plus } from '../../core/money.ts';
import type { SignedTransaction } from '../../core/signer-wire.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import { readAgreedHeight } from '../../store/chain/node-conditions.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { type Attempt, type Batch, type BatchPayout, readBatch, setBatchState } from '../../store/payouts/batch-rows.ts';
import { asBooked } from '../../store/payouts/booked-amounts.ts';
import { announcePayouts } from '../../store/payouts/status-changes.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { isNoted } from '../../store/sweeps/forgotten-moves.ts';
import type { Context } from '../context.ts';

/**
 * Stores a signed transaction before it is sent. Refused (false) when another worker has leased the batch since, or the transaction is stored
 * already.
 * @param add writes it; the batch and its payouts are locked
 */
export function storing<Code extends CurrencyCode>(
  ctx: Context,
  { request }: SignedTransaction,
  epoch: bigint,
  add: (sql: Sql, batch: Batch<Code>) => Promise<void>,
): Promise<boolean> {
  return ctx.db.transaction(async (sql) => {
    const batch = await readBatch<Code>(sql, request.batchId, { lock: true });
    if (batch === null || batch.leaseEpoch !== epoch) return false;
    if (batch.attempts.some((attempt) => attempt.number === request.number)) return false;
    await add(sql, batch);
    return true;
  });
}

/**
 * `unagreed`: a block holds it that decides only once a second node has it too. `to_fail`: it fails when no node says that it has paid.
 * `to_complete`: it is completed, or final, when two nodes show alike how it ended.
 * `unsettled`: it has failed, and an output of it is spent in a block that is not final yet.
 */
export type Progress =
  | 'unagreed'
  | 'to_fail'
  | 'to_complete'
  | 'confirmed'
  | 'moved'
  | 'reorged'
  | 'final'
  | 'failed'
  | 'displaced'
  | 'unsettled'
  | 'waiting';

/** A batch beside what the blocks that were read show of it. */
export type Compared<Code extends CurrencyCode> = {
  readonly batch: Batch<Code>;
  /** Up to which height the chain decides about it. */
  readonly decided: number;
  /** Up to which height two of our nodes hold the blocks, where there are several: only these give anything back. */
  readonly agreed: number;
  /** Whether several nodes are compared, so that `agreed` may be lower than what is read. */
  readonly areSeveral: boolean;
  /** Its transaction that a block of the best chain holds; null = none does. */
  readonly mined: Attempt | null;
};

/**
 * Compares a batch with its chain, in one database transaction in which it is locked; without an attempt, or on a chain that was never read,
 * nothing follows from that.
 * @param follow books what follows
 */
export function comparing<Code extends CurrencyCode>(
  ctx: Context,
  batchId: string,
  follow: (sql: Sql, compared: Compared<Code>) => Promise<Progress>,
): Promise<Progress> {
  return ctx.db.transaction(async (sql) => {
    const compared = await compare<Code>(ctx, sql, batchId);
    return compared === null ? 'waiting' : follow(sql, compared);
  });
}

/** The batch, locked, beside its chain; null without an attempt, or on a chain that was never read. */
export async function compare<Code extends CurrencyCode>(
  ctx: Context,
  sql: Sql,
  batchId: string,
): Promise<Compared<Code> | null> {
  const read = await readBatch<Code>(sql, batchId, { lock: true });
  const tip = read === null ? null : await readCursor(sql, read.currency);
  if (read === null || tip === null || read.attempts.length === 0) return null;
  const batch = { ...read, payouts: await asBooked(sql, read.payouts) };
  const byTwo = await readAgreedHeight(sql, batch.currency);
  const agreed = Math.min(tip.height, byTwo ?? tip.height);
  const decided = isWorthMuch(ctx, batch) ? agreed : tip.height;
  const mined = batch.attempts.find((attempt) => attempt.height !== null) ?? null;
  return { batch, decided, agreed, areSeveral: byTwo !== null, mined };
}

/**
 * What follows while no block holds a transaction of the batch: payouts stop where a stranger's spends its inputs, and unless an input is
 * gone for good the same bytes are sent again.
 * @param isGone whether none of the batch can be mined any more, because of this input
 * @param fail ends the batch
 * @param finalWith the block that two of our nodes must hold before a stranger's spend of this input decides; absent: another rule tells
 */
export async function unmined<Code extends CurrencyCode>(
  ctx: Context,
  sql: Sql,
  batch: Batch<Code>,
  {
    isGone,
    fail,
    finalWith,
  }: {
    readonly isGone: (input: Batch<Code>['inputs'][number]) => boolean;
    readonly fail: () => Promise<Progress>;
    readonly finalWith?: (input: Batch<Code>['inputs'][number]) => number;
  },
): Promise<Progress> {
  await stopOnForeignSpend(ctx, sql, batch, finalWith);
  return batch.inputs.some(isGone) ? fail() : sendAgain(ctx, sql, batch);
}

/** Whether the chain decides about a batch only up to what two of our nodes hold: it pays more than the contested limit, or nobody knows how much. */
function isWorthMuch(ctx: Context, batch: Batch<CurrencyCode>): boolean {
  const worth = batch.payouts.reduce<bigint | null>(
    (all, { usdMinor }) => (all === null || usdMinor === null ? null : plus(all, usdMinor)),
    0n,
  );
  return worth === null || worth > ctx.contestedLimitMinor;
}

/** Where the block that held a batch is gone, the same bytes are sent again, and no status changes. */
async function sendAgain(ctx: Context, sql: Sql, batch: Batch<CurrencyCode>): Promise<'waiting' | 'reorged'> {
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
async function stopOnForeignSpend<Code extends CurrencyCode>(
  ctx: Context,
  sql: Sql,
  batch: Batch<Code>,
  finalWith?: (input: Batch<Code>['inputs'][number]) => number,
): Promise<void> {
  // one of its own is in a block that was read before it was written back
  const own = batch.attempts.map(({ txid }) => txid);
  const foreign = batch.inputs.filter(({ spentBy }) => spentBy !== null && !own.includes(spentBy));
  if (foreign.length === 0 || batch.state === 'dead' || (await isForgottenMove(sql, batch))) return;
  const until = (block: number): string =>
    `: decided once two of our nodes hold block ${block} (one that is away for good: take it out of BURSAR_${batch.currency}_RPC_URL)`;
  await tripBreaker(sql, {
    name: 'payouts',
    by: ['INV-10'],
    findings: foreign.map((input) => {
      const { txid, vout, spentBy } = input;
      const wait = finalWith === undefined ? '' : until(finalWith(input));
      return `${txid}:${vout} of batch ${batch.id} is spent by ${spentBy}, which was not signed here${wait}`;
    }),
    atMs: ctx.ports.clock.now(),
  });
}

/**
 * Whether its nonce was used by what an address of ours has sent to another one, as a block shows, and database and signer have forgotten: nothing is
 * lost, and it is booked once this has failed.
 */
async function isForgottenMove<Code extends CurrencyCode>(
  sql: Sql,
  { currency, purpose, inputs }: Batch<Code>,
): Promise<boolean> {
  const by = inputs[0]?.spentBy ?? null;
  return purpose !== 'payout' && by !== null && (await isNoted(sql, currency, by));
}

/**
 * What had failed for good had not: payouts that were given back are paid. The audit names them until that is mended.
 * @param how what an operator does
 */
export async function stopOnPaidAfterAll<Code extends CurrencyCode>(
  ctx: Context,
  sql: Sql,
  batch: Batch<Code>,
  { txid }: Attempt,
  how: string,
): Promise<'waiting'> {
  const paid = batch.payouts.filter(({ status }) => status === 'failed').map(({ id }) => id);
  const findings = [`${paid.join(', ')} had failed and was given back, and is paid by ${txid} (${how})`];
  await tripBreaker(sql, { name: 'payouts', by: ['INV-10'], findings, atMs: ctx.ports.clock.now() });
  return 'waiting';
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

/** The identifiers of the transactions whose payments these payouts send back. */
export const reimbursedBy = (payouts: readonly BatchPayout[]): readonly string[] =>
  payouts.flatMap(({ reimburses }) => (reimburses === null ? [] : [reimburses]));
