// What a verdict changed, written in the caller's database transaction: ledger entries, history and events, the status guarded by the old
// one, the payments. Called by flow/decide.
import type { CaseTransaction, Coin, Step } from '../core/judge/case.ts';
import type { Verdict } from '../core/judge/judge.ts';
import { formatRate } from '../core/rate.ts';
import type { TransactionStatus } from '../core/transaction-states.ts';
import type { Sql } from './connect.ts';
import { postEntries } from './ledger.ts';

export type Judged = {
  readonly before: TransactionStatus;
  readonly transaction: CaseTransaction;
  readonly coins: readonly Coin[];
  readonly steps: readonly Step[];
  readonly verdict: Verdict;
  readonly nowMs: number;
};

/** Writes a verdict: ledger entries, events, the transaction (its old status is the guard), and the coins. */
export async function writeCase(sql: Sql, judged: Judged): Promise<void> {
  const { transaction, steps, nowMs } = judged;
  const entries = steps.flatMap((step) => (step.kind === 'post' ? [step.entry] : []));
  await postEntries(sql, entries, { transactionId: transaction.id, at: nowMs });
  await insertEvents(sql, judged);
  await updateTransaction(sql, judged);
  await updateCoins(sql, judged.coins, nowMs);
  if (steps.some((step) => step.kind === 'status')) {
    await sql.query({
      name: 'notify_transaction',
      text: `select pg_notify('transaction_changed', $1)`,
      values: [transaction.id],
    });
  }
}

type Told = {
  readonly type: string;
  readonly status: TransactionStatus;
  readonly previous: TransactionStatus | null;
  readonly reason: string;
  readonly data: string;
};

async function insertEvents(sql: Sql, { before, transaction, steps, nowMs }: Judged): Promise<void> {
  let status: TransactionStatus = before;
  const told = steps.flatMap((step): Told[] => {
    if (step.kind === 'post') return [];
    const previous = status;
    if (step.kind === 'announce') {
      const reason = step.type.replace('transaction.', '').replaceAll('_', ' ');
      return [{ type: step.type, status, previous: null, reason, data: JSON.stringify(step.data) }];
    }
    status = step.to;
    return [{ type: `transaction.${status}`, status, previous, reason: step.reason, data: JSON.stringify({ rule: step.rule }) }];
  });
  if (told.length === 0) return;
  await sql.query({
    name: 'insert_events',
    text: `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at, data)
             select $1, $2, (select coalesce(max(sequence), 0) from events where object_id = $2) + t.n, t.type, t.status, t.previous, t.reason, $3, t.data
               from unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::jsonb[]) with ordinality as t(type, status, previous, reason, data, n)`,
    values: [
      transaction.merchantId,
      transaction.id,
      new Date(nowMs),
      told.map((one) => one.type),
      told.map((one) => one.status),
      told.map((one) => one.previous),
      told.map((one) => one.reason),
      told.map((one) => one.data),
    ],
  });
}

const asDate = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

/** The one statement that writes a transaction's status. */
async function updateTransaction(sql: Sql, { before, transaction, verdict }: Judged): Promise<void> {
  const { rowCount } = await sql.query({
    name: 'update_transaction',
    text: `update transactions set status = $3, word = $4, why = $5, barred = $6, confirmed_at = $7, succeeded_at = $8, lookup_wanted = $9,
                  sequence = $10, crypto_received = $11, confirmed_from_height = $12, confirmed_from_currency = $13, due_at = $14
            where id = $1 and status = $2`,
    values: [
      transaction.id,
      before,
      transaction.status,
      transaction.word,
      transaction.why,
      transaction.barred,
      asDate(transaction.confirmedAtMs),
      asDate(transaction.succeededAtMs),
      transaction.lookupWanted,
      transaction.sequence,
      verdict.receivedMinor.toString(),
      verdict.youngest?.height ?? null,
      verdict.youngest?.currency ?? null,
      asDate(verdict.dueAtMs),
    ],
  });
  if (rowCount !== 1) throw new Error(`the status of ${transaction.id} is no more ${before}`);
}

async function updateCoins(sql: Sql, coins: readonly Coin[], nowMs: number): Promise<void> {
  if (coins.length === 0) return;
  const column = <K extends keyof Coin>(name: K) => coins.map((coin) => coin[name]);
  await sql.query({
    name: 'update_coins',
    text: `update payments p
              set noticed_at = case when u.classified then coalesce(p.noticed_at, $1) end, present = u.present, on_time_minor = u.on_time_minor,
                  value_rate = u.value_rate, judged_block_hash = u.judged_block_hash, generation = u.generation, credited = u.credited,
                  suspended = u.suspended, fee = u.fee, in_available = u.in_available, in_suspense = u.in_suspense, in_refund = u.in_refund,
                  sent_back = u.sent_back, owed = u.owed, owed_fee = u.owed_fee, was_lost = u.was_lost, deposit_key = u.deposit_key, counted = u.counted,
                  due_height = u.due_height, due_at = u.due_at
             from unnest($2::bigint[], $3::boolean[], $4::boolean[], $5::numeric[], $6::numeric[], $7::text[], $8::int[], $9::numeric[], $10::numeric[],
                         $11::numeric[], $12::numeric[], $13::numeric[], $14::numeric[], $15::numeric[], $16::numeric[], $17::numeric[],
                         $18::boolean[], $19::text[], $20::int[], $21::boolean[], $22::timestamptz[])
               as u(id, classified, present, on_time_minor, value_rate, judged_block_hash, generation, credited, suspended, fee, in_available,
                    in_suspense, in_refund, sent_back, owed, owed_fee, was_lost, deposit_key, due_height, counted, due_at)
            where p.id = u.id`,
    values: [
      new Date(nowMs),
      column('id'),
      column('classified'),
      column('present'),
      column('onTimeMinor'),
      coins.map((coin) => (coin.valueRate === null ? null : formatRate(coin.valueRate))),
      column('judgedBlockHash'),
      column('generation'),
      column('credited'),
      column('suspended'),
      column('fee'),
      column('inAvailable'),
      column('inSuspense'),
      column('inRefund'),
      column('sentBack'),
      column('owed'),
      column('owedFee'),
      column('wasLost'),
      column('depositEntryKey'),
      column('dueHeight'),
      column('counts'),
      coins.map((coin) => asDate(coin.dueAtMs)?.toISOString() ?? null),
    ],
  });
}
