// What a verdict changed, written in the caller's database transaction: ledger entries, history and events, the status guarded by the old
// one, the payments. Called by flow/decide.
import type { CaseTransaction, Coin, Step } from '../core/judge/case.ts';
import type { Verdict } from '../core/judge/judge.ts';
import type { TransactionStatus } from '../core/transaction-states.ts';
import type { Sql } from './connect.ts';
import { postEntry } from './ledger.ts';

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
  for (const step of steps) {
    if (step.kind === 'post') await postEntry(sql, step.entry, { transactionId: transaction.id, at: nowMs });
  }
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

async function insertEvents(sql: Sql, { before, transaction, steps, nowMs }: Judged): Promise<void> {
  const told = steps.filter((step) => step.kind !== 'post');
  if (told.length === 0) return;
  const { rows } = await sql.query<{ last: number }>({
    name: 'last_event',
    text: 'select coalesce(max(sequence), 0) as last from events where object_id = $1',
    values: [transaction.id],
  });
  let sequence = rows[0]?.last ?? 0;
  let status: TransactionStatus = before;
  for (const step of told) {
    sequence += 1;
    const previous = status;
    if (step.kind === 'status') status = step.to;
    await sql.query({
      name: 'insert_event',
      text: `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at, data) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
      values: [
        transaction.merchantId,
        transaction.id,
        sequence,
        step.kind === 'status' ? `transaction.${step.to}` : step.type,
        status,
        step.kind === 'status' ? previous : null,
        step.kind === 'status' ? step.reason : step.type.replace('transaction.', '').replaceAll('_', ' '),
        new Date(nowMs),
        step.kind === 'status' ? JSON.stringify({ rule: step.rule }) : JSON.stringify(step.data),
      ],
    });
  }
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
  for (const coin of coins) {
    await sql.query({
      name: 'update_coin',
      text: `update payments set noticed_at = case when $2 then coalesce(noticed_at, $3) end, present = $4, on_time_minor = $5, value_usd_minor = $6,
                    judged_block_hash = $7, generation = $8, credited = $9, suspended = $10, fee = $11, in_available = $12, in_suspense = $13,
                    in_refund = $14, sent_back = $15, owed = $16, owed_fee = $17, was_lost = $18, deposit_key = $19, due_height = $20
              where id = $1`,
      values: [
        coin.id,
        coin.classified,
        new Date(nowMs),
        coin.present,
        coin.onTimeMinor,
        coin.valueUsdMinor,
        coin.judgedBlockHash,
        coin.generation,
        coin.credited,
        coin.suspended,
        coin.fee,
        coin.inAvailable,
        coin.inSuspense,
        coin.inRefund,
        coin.sentBack,
        coin.owed,
        coin.owedFee,
        coin.wasLost,
        coin.depositEntryKey,
        coin.dueHeight,
      ],
    });
  }
}
