// Payouts to addresses of other merchants' transactions here: the next one to book, and the payment that it becomes.
import { createHash } from 'node:crypto';
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { SignedPayout } from '../../core/payouts/intent.ts';
import type { Sql } from '../postgres/connect.ts';
import { lockPayout, type PayoutRow } from './payouts.ts';
import { owesOf, STOPPED } from './request-facts.ts';
import {
  HOLD_COLUMNS,
  type HoldColumns,
  type HoldFacts,
  holdFrom,
  SIGNED_COLUMNS,
  type SignedColumns,
  signedFrom,
} from './signed-rows.ts';

export type InternalPayout = PayoutRow & { readonly internalTo: string };

/** Those on a chain: an invoice is cancelled first (flow/lightning/internal-payouts). Not while payouts are stopped, nor while its merchant owes something. */
const MAY_BE_BOOKED = `p.step = 'queued' and p.internal_to is not null and p.payment_hash is null and not (select stopped from (select ${STOPPED}) s) and not ${owesOf('p.merchant_id')}`;

/** Whether there is one that may be booked now. */
export async function hasInternal(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ found: boolean }>({
    name: 'has_internal_payout',
    text: `select exists (select from payouts p where ${MAY_BE_BOOKED}) as found`,
    values: [],
  });
  return rows[0]?.found === true;
}

/**
 * Locks the oldest one that may be booked now. Null = there is none.
 * @param not those that are passed over: they have failed just now
 */
export async function lockInternal(sql: Sql, not: readonly string[]): Promise<InternalPayout | null> {
  const { rows } = await sql.query<{ id: string; internal_to: string }>({
    name: 'lock_internal_payout',
    text: `select p.id, p.internal_to from payouts p where ${MAY_BE_BOOKED} and p.id <> all ($1)
            order by p.created_at, p.id limit 1 for update of p skip locked`,
    values: [not],
  });
  const [row] = rows;
  const payout = row === undefined ? null : await lockPayout(sql, row.id, { wait: true });
  return payout === null || row === undefined ? null : { ...payout, internalTo: row.internal_to };
}

export type InternalFacts = SignedPayout &
  HoldFacts & {
    /** Its script (or invoice), currency and merchant are those of the transaction that it pays, which is another merchant's. */
    readonly paysAnother: boolean;
    /** The output script of that transaction and its index; null over Lightning, where our node is asked for the invoice. */
    readonly address: { readonly script: Buffer; readonly index: bigint | null } | null;
  };

/** What must be true of a locked one before it is booked. */
export async function readInternalFacts(sql: Sql, id: string): Promise<InternalFacts> {
  type Row = SignedColumns & HoldColumns & { pays_another: boolean; paid_script: Buffer | null; address_index: bigint | null };
  const { rows } = await sql.query<Row>({
    name: 'internal_facts',
    text: `select ${SIGNED_COLUMNS}, ${HOLD_COLUMNS}, p.script as paid_script,
                  (select t.address_index from transactions t where t.id = p.internal_to) as address_index,
                  exists (select from transactions t
                           where t.id = p.internal_to and t.merchant_id <> p.merchant_id
                              and (t.script = p.script and t.currency = p.currency
                                   or lower(t.address) = lower(p.payment_request) and t.currency = '${LIGHTNING.code}')) as pays_another
             from payouts p where p.id = $1`,
    values: [id],
  });
  const row = rows[0] as Row;
  const address = row.paid_script === null ? null : { script: row.paid_script, index: row.address_index };
  return { ...signedFrom(row), ...holdFrom(row), paysAnother: row.pays_another, address };
}

/** Writes the payment of the receiving transaction, which its judge looks at next. */
export async function insertInternalPayment(
  sql: Sql,
  payout: Pick<InternalPayout, 'id' | 'internalTo' | 'amount'>,
  at: { readonly currency: string; readonly height: number; readonly atMs: number },
): Promise<void> {
  // looks like any other, and is the txid of nothing
  const txid = createHash('sha256').update(`internal ${payout.id}`).digest('hex');
  await sql.query({
    name: 'insert_internal_payment',
    text: `with made as (
             insert into payments (currency, transaction_id, txid, vout, amount, twin_key, state, height, block_hash, block_time, last_height, seen_at,
                                   caught_up_at, found_mined, spent, paid_by)
               select $1, $2, $3, 0, $4, decode($3, 'hex'), 'mined', $7, coalesce((select hash from blocks where currency = $1 and height = $7), $3), $5, $7, $5,
                      $5, true, true, $6 returning transaction_id)
           insert into due_marks (transaction_id) select transaction_id from made`,
    values: [at.currency, payout.internalTo, txid, payout.amount, new Date(at.atMs), payout.id, at.height],
  });
  await sql.query({ name: 'hurry_judge', text: `select pg_notify('hurry', 'judge')`, values: [] });
}

/** Locks a transaction that is to be paid: its status, and whether the node has said that its invoice was paid. */
export async function lockPaidTransaction(
  sql: Sql,
  transactionId: string,
): Promise<{ readonly status: string | null; readonly isSettled: boolean }> {
  const { rows } = await sql.query<{ status: string }>({
    name: 'lock_paid_transaction',
    text: 'select status from transactions where id = $1 for update',
    values: [transactionId],
  });
  // whoever records a payment does not lock the transaction
  const { rowCount } = await sql.query({
    name: 'lock_paid_invoice',
    text: `select from lightning_invoices where transaction_id = $1 and state <> 'settled' for update`,
    values: [transactionId],
  });
  return { status: rows[0]?.status ?? null, isSettled: rowCount !== 1 };
}
