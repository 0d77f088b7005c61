// Writes what verdicts changed, of many transactions together, in the caller's database transaction: ledger entries, history and events,
// the status guarded by the old one, the payments, and the deletion of the due marks.
import type { CaseTransaction, Payment, Step } from '../../core/judge/case.ts';
import type { Verdict } from '../../core/judge/judge.ts';
import { type TransactionStatus, UNCONFIRMED } from '../../core/transaction-states.ts';
import { postEntries } from '../ledger/ledger.ts';
import { type RefundChange, writeRefundChanges } from '../payouts/reimbursements.ts';
import { arrayText } from '../postgres/array-text.ts';
import type { Sql } from '../postgres/connect.ts';
import { inParts } from '../postgres/in-parts.ts';
import type { LockedTransaction } from './cases.ts';
import { JUDGED_COLUMNS } from './judged-columns.ts';
import { keepDecisions } from './payment-decisions.ts';

/** The largest number of rows in one statement: more would occupy this process, and whoever waits for the statement, for long. */
const ROWS_AT_ONCE = 2_000;

export type Judged = {
  readonly before: LockedTransaction;
  readonly transaction: CaseTransaction;
  /** Those that have changed. */
  readonly payments: readonly Payment[];
  /** Those that have changed and are too many to be written now: what was decided of them is kept, and the transaction is due again. */
  readonly later: readonly Payment[];
  readonly steps: readonly Step[];
  readonly verdict: Verdict;
  /** As check_transaction shows them now. */
  readonly confirmations: number;
  readonly nowMs: number;
  /** Some payments are left for another verdict: the transaction is due again at once. */
  readonly more: boolean;
};

/** Writes verdicts: ledger entries, events, the transactions (the old status is the guard), and the payments. */
export async function writeCases(sql: Sql, all: readonly Judged[]): Promise<void> {
  if (all.length === 0) return;
  await postEntries(
    sql,
    all.flatMap(({ steps, transaction, nowMs }) =>
      steps.flatMap((step) => {
        if (step.kind !== 'post') return [];
        const { entry } = step;
        return [{ entry, transactionId: transaction.id, payoutId: entry.refundId ?? null, atMs: nowMs }];
      }),
    ),
  );
  await writeRefundChanges(sql, all.flatMap(refundChangesOf));
  await inParts(all.flatMap(eventsOf), ROWS_AT_ONCE, (part) => insertEvents(sql, part));
  await updateTransactions(sql, all.filter(isChanged));
  await endDue(sql, all);
  await keepDecisions(
    sql,
    all.flatMap(({ later, transaction, nowMs }) => later.map((payment) => ({ transactionId: transaction.id, payment, nowMs }))),
  );
  // last: watchers write these rows too, and wait for whoever has changed one
  await updateJudgedPayments(sql, all);
}

/** One that was taken by this verdict is written by whoever asked for it, as it is in the end. */
function refundChangesOf({ steps, nowMs: atMs }: Judged): readonly RefundChange[] {
  const changes = steps.flatMap((step) => (step.kind === 'refund' ? [step] : []));
  const taken = new Set(changes.filter(({ change }) => change === 'taken').map(({ id }) => id));
  return changes.flatMap(({ id, change }) => (change === 'taken' || taken.has(id) ? [] : [{ id, change, atMs }]));
}

type NewEvent = {
  readonly merchantId: bigint;
  readonly id: string;
  readonly at: string;
  readonly type: string;
  readonly status: TransactionStatus;
  readonly previous: TransactionStatus | null;
  readonly reason: string;
  readonly data: string;
};

function eventsOf(judged: Judged): readonly NewEvent[] {
  const { before, transaction, steps, nowMs } = judged;
  const of = { merchantId: transaction.merchantId, id: transaction.id, at: new Date(nowMs).toISOString() };
  let { status, confirmedAtMs } = before.transaction;
  return steps.flatMap((step): NewEvent[] => {
    if (step.kind === 'post' || step.kind === 'refund') return [];
    const previous = status;
    if (step.kind === 'announce') {
      const reason = step.type.replace('transaction.', '').replaceAll('_', ' ');
      const data = JSON.stringify({ ...step.data, shown: shownOf(judged, confirmedAtMs) });
      return [{ ...of, type: step.type, status, previous: null, reason, data }];
    }
    status = step.to;
    if (status === 'confirmed') confirmedAtMs = nowMs;
    else if (UNCONFIRMED.has(status) || status === 'pending' || (step.rule === LOST && status === 'review')) confirmedAtMs = null;
    const data = JSON.stringify({ rule: step.rule, shown: shownOf(judged, confirmedAtMs) });
    return [{ ...of, type: `transaction.${status}`, status, previous, reason: step.reason, data }];
  });
}

/** The rule by which a credited payment was lost. */
const LOST = 17;

/** What an event shows of its transaction besides what never changes (store/deliveries/events.ts). */
function shownOf({ verdict, confirmations }: Judged, confirmedAtMs: number | null) {
  return {
    received: String(verdict.receivedMinor),
    confirmations,
    ...(confirmedAtMs === null ? {} : { confirmed_ms: confirmedAtMs }),
  };
}

async function insertEvents(sql: Sql, events: readonly NewEvent[]): Promise<void> {
  const column = <K extends keyof NewEvent>(name: K) => events.map((one) => one[name]);
  await sql.query({
    name: 'insert_events',
    text: `
      with added as materialized (
        select t.*, row_number() over (partition by t.object_id order by t.n) as nth
          from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::jsonb[]) with ordinality
            as t(merchant_id, object_id, type, status, previous, reason, at, data, n)),
      last as materialized (
        select o.object_id, (select coalesce(max(e.sequence), 0) from events e where e.object_id = o.object_id) as sequence
          from (select distinct object_id from added) o)
      insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at, data)
        select t.merchant_id, t.object_id, l.sequence + t.nth, t.type, t.status, t.previous, t.reason, t.at, t.data
          from added t join last l using (object_id) order by t.n`,
    values: [
      column('merchantId'),
      column('id'),
      column('type'),
      column('status'),
      column('previous'),
      column('reason'),
      column('at'),
      column('data'),
    ],
  });
}

const asDate = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());

/** Whether anything of the transaction's own row has changed. */
function isChanged({ before, transaction, verdict }: Judged): boolean {
  const was = before.verdict;
  return (
    verdict.receivedMinor !== was.receivedMinor ||
    verdict.dueAtMs !== was.dueAtMs ||
    verdict.youngest?.height !== was.youngest?.height ||
    verdict.youngest?.currency !== was.youngest?.currency ||
    (Object.keys(transaction) as (keyof CaseTransaction)[]).some((key) => transaction[key] !== before.transaction[key])
  );
}

/** The one statement that writes the status of transactions. */
async function updateTransactions(sql: Sql, all: readonly Judged[]): Promise<void> {
  if (all.length === 0) return;
  const column = <K extends keyof CaseTransaction>(name: K) => all.map(({ transaction }) => transaction[name]);
  const { rows } = await sql.query<{ id: string }>({
    name: 'update_transactions',
    text: `update transactions set status = u.status, merchant_decision = u.merchant_decision, review_cause = u.review_cause,
                  accepted_only_by_hand = u.accepted_only_by_hand, confirmed_at = u.confirmed_at,
                  succeeded_at = u.succeeded_at, lookup_wanted = u.lookup_wanted, sequence = u.sequence, crypto_received = u.crypto_received,
                  confirmed_from_height = u.from_height, confirmed_from_currency = u.from_currency, due_at = u.due_at
             from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::timestamptz[], $8::timestamptz[], $9::boolean[],
                         $10::int[], $11::numeric[], $12::int[], $13::text[], $14::timestamptz[])
               as u(id, before, status, merchant_decision, review_cause, accepted_only_by_hand, confirmed_at, succeeded_at, lookup_wanted, sequence, crypto_received, from_height,
                    from_currency, due_at)
            where transactions.id = u.id and transactions.status = u.before returning transactions.id`,
    values: [
      column('id'),
      all.map(({ before }) => before.transaction.status),
      column('status'),
      column('merchantDecision'),
      column('reviewCause'),
      column('acceptedOnlyByHand'),
      column('confirmedAtMs').map(asDate),
      column('succeededAtMs').map(asDate),
      column('lookupWanted'),
      column('sequence'),
      all.map(({ verdict }) => verdict.receivedMinor),
      all.map(({ verdict }) => verdict.youngest?.height ?? null),
      all.map(({ verdict }) => verdict.youngest?.currency ?? null),
      all.map(({ verdict }) => asDate(verdict.dueAtMs)),
    ],
  });
  if (rows.length === all.length) return;
  const written = new Set(rows.map((row) => row.id));
  const stale = all.find(({ transaction }) => !written.has(transaction.id));
  throw new Error(`the status of ${stale?.transaction.id} is no longer ${stale?.before.transaction.status}`);
}

/** The largest number of ids that fit into one notification (8,000 bytes). */
const IDS_IN_ONE = 200;

/** Deletes the due marks that the verdicts answer and the rest after a failure, and notifies everyone who waits for a status. */
async function endDue(sql: Sql, all: readonly Judged[]): Promise<void> {
  const moved = all.filter(({ steps }) => steps.some((step) => step.kind === 'status')).map(({ transaction }) => transaction.id);
  const notifications = Array.from({ length: Math.ceil(moved.length / IDS_IN_ONE) }, (_, n) =>
    moved.slice(n * IDS_IN_ONE, (n + 1) * IDS_IN_ONE).join(' '),
  );
  await sql.query({
    name: 'end_due',
    text: `with answered as (delete from due_marks where id = any ($1)), rested as (delete from set_aside where transaction_id = any ($2)),
                again as (insert into due_marks (transaction_id) select * from unnest($4::text[]))
           select pg_notify('transaction_changed', ids) from unnest($3::text[]) as t(ids)`,
    values: [
      all.flatMap(({ before }) => before.marks),
      all.map(({ transaction }) => transaction.id),
      notifications,
      all.filter(({ more }) => more).map(({ transaction }) => transaction.id),
    ],
  });
}

async function updateJudgedPayments(sql: Sql, all: readonly Judged[]): Promise<void> {
  const judged = all.flatMap(({ payments, nowMs }) => payments.map((payment) => ({ payment, nowMs })));
  // locked in the order of their ids, as the watchers do
  judged.sort((a, b) => (a.payment.id < b.payment.id ? -1 : 1));
  await inParts(judged, ROWS_AT_ONCE, (part) => updateSomePayments(sql, part));
}

async function updateSomePayments(
  sql: Sql,
  judged: readonly { readonly payment: Payment; readonly nowMs: number }[],
): Promise<void> {
  await sql.query({
    name: 'update_judged_payments',
    text: UPDATE_PAYMENTS,
    values: [
      arrayText(judged.map(({ nowMs }) => new Date(nowMs))),
      arrayText(judged.map(({ payment }) => payment.id)),
      arrayText(judged.map(({ payment }) => payment.classified)),
      ...JUDGED_COLUMNS.map(({ field, write }) => arrayText(judged.map(({ payment }) => write(payment[field])))),
    ],
  });
}

const UPDATE_PAYMENTS = `
  with locked as materialized (select id from payments where id = any ($2) order by id for no key update)
  update payments p
     set noticed_at = case when u.classified then coalesce(p.noticed_at, u.at) end,
         ${JUDGED_COLUMNS.map(({ column }) => `${column} = u.${column}`).join(', ')}
    from unnest($1::timestamptz[], $2::bigint[], $3::boolean[], ${JUDGED_COLUMNS.map(({ type }, n) => `$${n + 4}::${type}[]`).join(', ')})
      as u(at, id, classified, ${JUDGED_COLUMNS.map(({ column }) => column).join(', ')})
   where p.id = u.id and u.id in (select id from locked)`;
