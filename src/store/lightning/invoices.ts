// The invoices that our Lightning node was asked for, from the reservation that is committed before the node is asked to the payment. What is
// recorded here are facts; the judge decides what becomes of a transaction.
import { LIGHTNING, MSAT } from '../../core/currencies/lightning.ts';
import { formatRate, type Rate } from '../../core/rate.ts';
import { IS_LOOKED_AT } from '../chain/node-conditions.ts';
import type { Sql } from '../postgres/connect.ts';
import { USABLE_NODE_STATES } from '../transactions/quote-facts.ts';
import { storedRate } from '../transactions/transactions.ts';

/** The one height of Lightning's payments: a settled invoice is final, and nothing is mined on top of it. */
export const SETTLED_HEIGHT = 1;
export const SETTLED_HASH = 'settled';

export type Reservation = {
  readonly paymentHash: string;
  readonly preimage: Uint8Array;
  readonly transactionId: string;
  readonly merchantId: bigint;
  readonly key: string | null;
  readonly bodyHash: Uint8Array | null;
  /** Satoshis. */
  readonly amountDue: bigint;
  /** Cents. */
  readonly usdMinor: bigint;
  /** The price that the amount was computed with. */
  readonly rate: Rate;
  readonly createdAtMs: number;
  readonly windowEndsAtMs: number;
};

type ReservationRow = {
  payment_hash: string;
  preimage: Uint8Array;
  transaction_id: string;
  body_hash: Uint8Array | null;
  amount_due: string;
  usd_minor: bigint;
  rate: string;
  created_at: Date;
  window_ends_at: Date;
};

/** The reservation that an earlier call with this key made, when its transaction was not written; null when there is none. */
export async function findReservation(sql: Sql, merchantId: bigint, key: string): Promise<Reservation | null> {
  const { rows } = await sql.query<ReservationRow>({
    name: 'find_reservation',
    text: `select payment_hash, preimage, transaction_id, body_hash, div(amount_msat, ${MSAT})::text as amount_due, usd_minor, rate::text, created_at, window_ends_at
             from lightning_invoices where merchant_id = $1 and key = $2 and state = 'reserved'`,
    values: [merchantId, key],
  });
  const row = rows[0];
  if (row === undefined) return null;
  return {
    paymentHash: row.payment_hash,
    preimage: row.preimage,
    transactionId: row.transaction_id,
    merchantId,
    key,
    bodyHash: row.body_hash,
    amountDue: BigInt(row.amount_due),
    usdMinor: row.usd_minor,
    rate: storedRate(row.rate),
    createdAtMs: row.created_at.getTime(),
    windowEndsAtMs: row.window_ends_at.getTime(),
  };
}

/**
 * Writes a reservation. It reaches the disk with its transaction at the latest: where the database crashes before that, the node has an invoice
 * that was shown to nobody. False, and nothing is written, when the price is no longer the one in force, the node cannot be used or is not looked
 * at, or a call with the same key has reserved meanwhile.
 */
export async function reserveInvoice(sql: Sql, one: Reservation): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'reserve_invoice',
    text: `
      insert into lightning_invoices (payment_hash, preimage, transaction_id, merchant_id, key, body_hash, amount_msat, usd_minor, rate, rate_at,
                                      rate_sources, state, created_at, window_ends_at)
      select $1, $2, $3, $4, $5, $6, $7::numeric * ${MSAT}, $8, r.usd, r.at, r.sources, 'reserved', $10, $11
        -- not waited for: in most cases the disk would be the longest part of a create
        from (select set_config('synchronous_commit', 'off', true)) as soon, rates r join node_conditions n on n.currency = '${LIGHTNING.code}' and n.state in (${USABLE_NODE_STATES.map((state) => `'${state}'`).join()})
                                           and ${IS_LOOKED_AT('n')}
       where r.currency = '${LIGHTNING.balance}' and r.usd = $9::numeric
      on conflict do nothing`,
    values: [
      one.paymentHash,
      one.preimage,
      one.transactionId,
      one.merchantId,
      one.key,
      one.bodyHash,
      one.amountDue,
      one.usdMinor,
      formatRate(one.rate),
      new Date(one.createdAtMs),
      new Date(one.windowEndsAtMs),
    ],
  });
  return rowCount === 1;
}

/** Gives a reservation up: no transaction is written for it any more. False when one was written meanwhile. */
export async function dropReservation(sql: Sql, paymentHash: string): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'drop_reservation',
    text: `update lightning_invoices set state = 'closed' where payment_hash = $1 and state = 'reserved'`,
    values: [paymentHash],
  });
  return rowCount === 1;
}

/**
 * Writes the transaction of a reserved invoice with its first event.
 * @returns false when the reservation was given up meanwhile, or the merchant has no settings
 */
export async function insertInvoiced(
  sql: Sql,
  one: {
    readonly paymentHash: string;
    readonly paymentRequest: string;
    readonly label: string | null;
    readonly email: string | null;
  },
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'insert_invoiced',
    text: `
      with taken as (
        update lightning_invoices set state = 'open' where payment_hash = $1 and state = 'reserved' returning *),
      made as (
        insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, label, email, address,
                                  created_at, window_ends_at, due_at, tolerance_bps, late_payments)
        select i.transaction_id, i.merchant_id, '${LIGHTNING.code}', 'started', i.usd_minor, div(i.amount_msat, ${MSAT}), i.rate, i.rate_at, i.rate_sources,
               $3, $4, $2, i.created_at, i.window_ends_at, i.window_ends_at, s.tolerance_bps, s.late_payments
          from taken i join merchant_settings s using (merchant_id)
        returning id, merchant_id, created_at)
      insert into events (merchant_id, object_id, sequence, type, status, reason, at)
      select merchant_id, id, 1, 'transaction.started', 'started', 'created', created_at from made`,
    values: [one.paymentHash, one.paymentRequest, one.label, one.email],
  });
  return rowCount === 1;
}

export type WaitingInvoice = {
  readonly paymentHash: string;
  /** Its transaction; null while none is written. */
  readonly transactionId: string | null;
  readonly windowEndsAtMs: number;
};

/**
 * Invoices that must not be paid any more and may still be, the longest due first: those whose window has ended, and reservations that
 * nobody has turned into a transaction.
 */
export async function dueInvoices(
  sql: Sql,
  { nowMs, reservedBeforeMs, limit }: { readonly nowMs: number; readonly reservedBeforeMs: number; readonly limit: number },
): Promise<readonly WaitingInvoice[]> {
  const { rows } = await sql.query<{ payment_hash: string; transaction_id: string; state: string; window_ends_at: Date }>({
    name: 'due_invoices',
    text: `select payment_hash, transaction_id, state, window_ends_at from lightning_invoices
            where state in ('reserved', 'open') and (window_ends_at <= $1 or (state = 'reserved' and created_at <= $2))
            order by window_ends_at limit $3`,
    values: [new Date(nowMs), new Date(reservedBeforeMs), limit],
  });
  return rows.map((row) => ({
    paymentHash: row.payment_hash,
    transactionId: row.state === 'open' ? row.transaction_id : null,
    windowEndsAtMs: row.window_ends_at.getTime(),
  }));
}

/** When the first invoice that may still be paid must not be any more; null when there is none. @param reservedMs how long a reservation stands */
export async function nextInvoiceDue(sql: Sql, reservedMs: number): Promise<number | null> {
  const { rows } = await sql.query<{ next: Date | null }>({
    name: 'next_invoice_due',
    text: `select least(min(window_ends_at), min(created_at + $1 * interval '1 ms') filter (where state = 'reserved')) as next
             from lightning_invoices where state in ('reserved', 'open')`,
    values: [reservedMs],
  });
  return rows[0]?.next?.getTime() ?? null;
}

/** The payment hashes of those that wait for payment, at most `limit`. */
export async function openHashes(sql: Sql, limit: number): Promise<readonly string[]> {
  const { rows } = await sql.query<{ payment_hash: string }>({
    name: 'open_invoices',
    text: `select payment_hash from lightning_invoices where state = 'open' order by window_ends_at limit $1`,
    values: [limit],
  });
  return rows.map((row) => row.payment_hash);
}

/** The invoice of a merchant's transaction; null when it has none. */
export async function invoiceOf(
  sql: Sql,
  transactionId: string,
): Promise<{ readonly paymentHash: string; readonly merchantId: bigint; readonly state: string } | null> {
  const { rows } = await sql.query<{ payment_hash: string; merchant_id: bigint; state: string }>({
    name: 'invoice_of',
    text: `select payment_hash, merchant_id, state from lightning_invoices where transaction_id = $1 and state <> 'reserved'`,
    values: [transactionId],
  });
  const row = rows[0];
  return row === undefined ? null : { paymentHash: row.payment_hash, merchantId: row.merchant_id, state: row.state };
}

/** Notes that the node is about to be asked to cancel the invoice of a transaction: the call may be cut off before what it does is booked. */
export async function noteCancelAsked(sql: Sql, paymentHash: string, atMs: number): Promise<void> {
  await sql.query({
    name: 'note_cancel_asked',
    text: `update lightning_invoices set cancel_asked_at = coalesce(cancel_asked_at, $2) where payment_hash = $1 and state = 'open'`,
    values: [paymentHash, new Date(atMs)],
  });
}

/** Transactions that wait for payment although their merchants have asked to cancel them, and whose windows have not ended. */
export async function cancelsAsked(
  sql: Sql,
  { nowMs, askedBeforeMs, limit }: { readonly nowMs: number; readonly askedBeforeMs: number; readonly limit: number },
): Promise<readonly { readonly paymentHash: string; readonly transactionId: string; readonly merchantId: bigint }[]> {
  const { rows } = await sql.query<{ payment_hash: string; transaction_id: string; merchant_id: bigint }>({
    name: 'cancels_asked',
    text: `select i.payment_hash, i.transaction_id, i.merchant_id from lightning_invoices i join transactions t on t.id = i.transaction_id
            where i.cancel_asked_at <= $2 and i.window_ends_at > $1 and i.state in ('open', 'closed') and t.status = 'started'
            order by i.window_ends_at limit $3`,
    values: [new Date(nowMs), new Date(askedBeforeMs), limit],
  });
  return rows.map((row) => ({ paymentHash: row.payment_hash, transactionId: row.transaction_id, merchantId: row.merchant_id }));
}

/** The node has said that these cannot be paid any more. */
export async function closeInvoices(sql: Sql, paymentHashes: readonly string[]): Promise<void> {
  await sql.query({
    name: 'close_invoices',
    text: `update lightning_invoices set state = 'closed' where payment_hash = any ($1) and state in ('reserved', 'open')`,
    values: [paymentHashes],
  });
}
