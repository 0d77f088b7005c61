// The transactions that the judge decides, locked and read together. case-facts.ts reads what the chains show, verdicts.ts writes the
// differences.
import type { PaymentMethod } from '../../core/currency.ts';
import type { CaseTransaction, MerchantDecision, Refund, ReviewCause } from '../../core/judge/case.ts';
import type { Verdict } from '../../core/judge/judge.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import { lockRefunds } from '../payouts/reimbursements.ts';
import type { Sql } from '../postgres/connect.ts';
import { storedRate } from './transactions.ts';

type TransactionRow = {
  id: string;
  merchant_id: bigint;
  currency: PaymentMethod;
  status: TransactionStatus;
  usd_minor: bigint;
  amount_due: string;
  rate: string;
  tolerance_bps: number;
  late_payments: 'accept' | 'review';
  created_at: Date;
  window_ends_at: Date;
  confirmed_at: Date | null;
  succeeded_at: Date | null;
  merchant_decision: MerchantDecision;
  review_cause: ReviewCause | null;
  accepted_only_by_hand: boolean;
  looked_up_at: Date | null;
  lookup_wanted: boolean;
  sequence: number;
  crypto_received: string;
  confirmed_from_height: number | null;
  confirmed_from_currency: PaymentMethod | null;
  /** The driver returns `-infinity` as a number. */
  due_at: Date | number | null;
  marks: bigint[] | null;
};

export type LockedTransaction = {
  readonly transaction: CaseTransaction;
  /** The last verdict, as it is stored. */
  readonly verdict: Verdict;
  /** The due marks that were there before anything else was read. */
  readonly marks: readonly bigint[];
  /** Reimbursements that have not ended, or of whose end nothing was noted yet. */
  readonly refunds: readonly Refund[];
};

/**
 * Locks transactions until the database transaction ends, in the order of their ids, and reads them; those that do not exist (or are
 * another merchant's) are left out.
 * @param options.wait whether to wait for a row that another session holds (a transaction's, or its reimbursement's); otherwise the
 *   transaction is left out too
 */
export async function lockTransactions(
  sql: Sql,
  ids: readonly string[],
  options: { readonly wait: boolean; readonly merchantId?: bigint | null },
): Promise<readonly LockedTransaction[]> {
  const { rows } = await sql.query<TransactionRow>({
    name: options.wait ? 'lock_transactions' : 'lock_free_transactions',
    // watchers, and everyone who only references a transaction, do not block this lock, nor does it block them
    text: `select t.id, t.merchant_id, t.currency, t.status, t.usd_minor, t.amount_due, t.rate, t.tolerance_bps, t.late_payments, t.created_at,
                  t.window_ends_at, t.confirmed_at, t.succeeded_at, t.merchant_decision, t.review_cause, t.accepted_only_by_hand,
                  t.looked_up_at, t.lookup_wanted, t.sequence,
                  t.crypto_received, t.confirmed_from_height, t.confirmed_from_currency, t.due_at,
                  (select array_agg(m.id) from due_marks m where m.transaction_id = t.id) as marks
             from transactions t where t.id = any ($1) and ($2::bigint is null or t.merchant_id = $2)
            order by t.id for no key update of t${options.wait ? '' : ' skip locked'}`,
    values: [ids, options.merchantId ?? null],
  });
  const lockedIds = rows.map((row) => row.id);
  const { refunds, busy } = await lockRefunds(sql, lockedIds, options);
  return rows.flatMap((row) => (busy.has(row.id) ? [] : [lockedTransaction(row, refunds.get(row.id) ?? [])]));
}

function lockedTransaction(row: TransactionRow, refunds: readonly Refund[]): LockedTransaction {
  const transaction: CaseTransaction = {
    id: row.id,
    merchantId: row.merchant_id,
    currency: row.currency,
    status: row.status,
    usdMinor: row.usd_minor,
    amountDue: BigInt(row.amount_due),
    rate: storedRate(row.rate),
    toleranceBps: row.tolerance_bps,
    latePolicy: row.late_payments,
    createdAtMs: row.created_at.getTime(),
    windowEndsAtMs: row.window_ends_at.getTime(),
    confirmedAtMs: row.confirmed_at?.getTime() ?? null,
    succeededAtMs: row.succeeded_at?.getTime() ?? null,
    merchantDecision: row.merchant_decision,
    reviewCause: row.review_cause,
    acceptedOnlyByHand: row.accepted_only_by_hand,
    lookedUpAtMs: row.looked_up_at?.getTime() ?? null,
    lookupWanted: row.lookup_wanted,
    sequence: row.sequence,
  };
  const { confirmed_from_height: height, confirmed_from_currency: currency } = row;
  const verdict = {
    receivedMinor: BigInt(row.crypto_received),
    youngest: height === null || currency === null ? null : { height, currency },
    dueAtMs: row.due_at instanceof Date ? row.due_at.getTime() : row.due_at,
  };
  return { transaction, verdict, marks: row.marks ?? [], refunds };
}
