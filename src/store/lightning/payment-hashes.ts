// Which payout a payment hash belongs to: at most one that pays it or has paid it, over all merchants.
import type { Sql } from '../postgres/connect.ts';

/**
 * One at a time decides about a payment hash, until the database transaction ends. A lock of two numbers is none of those that sessions hold for as long as
 * they live (postgres/session-locks): whoever chooses the hash could have chosen one that falls on one of them, and would wait for it with a connection.
 */
export async function lockPaymentHash(sql: Sql, paymentHash: string): Promise<void> {
  await sql.query({
    name: 'lock_payment_hash',
    text: `select pg_advisory_xact_lock(hashtext('payment hash'), hashtext($1))`,
    values: [paymentHash],
  });
}

export type PayoutOfHash = { readonly id: string; readonly merchantId: bigint; readonly isReimbursement: boolean };

/** The payout that pays a hash or has paid it; null when there is none, or each has failed. */
export async function payoutOfHash(sql: Sql, paymentHash: string): Promise<PayoutOfHash | null> {
  const { rows } = await sql.query<PayoutOfHash>({
    name: 'payout_of_hash',
    text: `select id, merchant_id as "merchantId", reimburses is not null as "isReimbursement" from payouts where payment_hash = $1 and status <> 'failed'`,
    values: [paymentHash],
  });
  return rows[0] ?? null;
}

/** Whether our node has paid it for no payout, and that is booked: as lost, or as its operator's. It pays none twice: a payout to it would be booked besides. */
export async function isPaidBesides(sql: Sql, paymentHash: string): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'hash_is_paid_besides',
    text: 'select from lightning_sent where payment_hash = $1 and acknowledged_at is not null limit 1',
    values: [paymentHash],
  });
  return rowCount === 1;
}

export type PaymentToResolve = {
  readonly paymentHash: string;
  /** A request to pay it may still arrive until then; null: each was answered. */
  readonly unansweredUntilMs: number | null;
  /** The public key of the node that was asked; null while none was. */
  readonly node: string | null;
  /** What its recipient gets, satoshis. */
  readonly amount: bigint;
  /** The highest fee that it may have cost, satoshis. */
  readonly feeMax: bigint;
};

/** The payment of a payout over Lightning that is open and leaves; null of any other payout. */
export async function paymentToResolve(sql: Sql, payoutId: string): Promise<PaymentToResolve | null> {
  const { rows } = await sql.query<{
    payment_hash: string;
    until: Date | null;
    node: string | null;
    amount: string;
    fee_max: string;
  }>({
    name: 'payment_to_resolve',
    text: `select l.payment_hash, l.unanswered_until as until, l.node, p.amount - case when p.reimburses is null then 0 else p.fee_max end as amount, p.fee_max
             from lightning_payments l join payouts p on p.id = l.payout_id
            where l.payout_id = $1 and p.step <> 'ended' and p.internal_to is null`,
    values: [payoutId],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { payment_hash: paymentHash, until, node, amount, fee_max: feeMax } = row;
  return { paymentHash, unansweredUntilMs: until?.getTime() ?? null, node, amount: BigInt(amount), feeMax: BigInt(feeMax) };
}
