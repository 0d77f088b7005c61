// The payments of payouts over Lightning: who works on one, whether a request to pay may still arrive at the node, and what the node has said.
import { isPast } from '../payouts/batch-rows.ts';
import type { Sql } from '../postgres/connect.ts';
import { AT_LEASE } from './under-way.ts';

/** Of a payout that was requested and not ended. Amounts in satoshis. */
export type LightningPayment = {
  readonly payoutId: string;
  readonly paymentHash: string;
  readonly paymentRequest: string;
  readonly expiresAtMs: number;
  /** What the recipient gets; the fee comes on top. */
  readonly amount: bigint;
  readonly feeMax: bigint;
  readonly state: 'waiting' | 'sent';
  /** The node that pays it; null while none was asked. */
  readonly node: string | null;
  readonly leaseEpoch: bigint;
  readonly leaseUntilMs: number;
  /** A request to pay may still arrive at the node until then; null: each was answered. */
  readonly unansweredUntilMs: number | null;
  /** How often the node was to be asked for it. */
  readonly sends: number;
  /** The node's place for it, once it has said it. */
  readonly paymentIndex: bigint | null;
  /** The node was restored since it was asked: only a preimage counts. */
  readonly isDoubted: boolean;
  /** The transaction here that it pays; null: it leaves. */
  readonly internalTo: string | null;
  readonly createdAtMs: number;
  /** When the node was last to be asked for it; when it was requested, while it was not. */
  readonly askedAtMs: number;
  /** Since when the node had been running then, by our clock; null: not known. */
  readonly nodeStartedAtMs: number | null;
  /** A node that listed it as paid when it was leased; null: none. */
  readonly listedBy: string | null;
  /** When it was leased: others of its merchant that are under way, what they take, and whether payouts are stopped. */
  readonly others: { readonly count: number; readonly satoshis: bigint; readonly isStopped: boolean };
};

type Row = {
  payout_id: string;
  payment_hash: string;
  payment_request: string;
  invoice_expires_at: Date;
  amount: string;
  fee_max: string;
  state: 'waiting' | 'sent';
  node: string | null;
  lease_epoch: bigint;
  lease_until: Date;
  unanswered_until: Date | null;
  sends: number;
  payment_index: bigint | null;
  doubted: boolean;
  internal_to: string | null;
  created_at: Date;
  asked_at: Date | null;
  node_started_at: Date | null;
  others: number;
  others_take: string;
  stopped: boolean;
  listed_by: string | null;
};

/** The name of the worker's job that pays over Lightning. */
export const LIGHTNING_PAYOUT_JOB = 'lightning payouts';

/** As a table of a statement: its transaction does not wait for the disk. */
const SOON = `(select set_config('synchronous_commit', 'off', true))`;

/**
 * Writes the payment of a payout that was just requested; nobody was asked to pay it.
 * @param trouble what a person must know who lets it go
 */
export async function insertPayment(sql: Sql, payoutId: string, atMs: number, trouble: string | null = null): Promise<void> {
  await sql.query({
    name: 'insert_lightning_payment',
    text: `insert into lightning_payments (payout_id, payment_hash, state, due_at, created_at, trouble)
             select id, payment_hash, 'waiting', $2, $2, $3 from payouts where id = $1`,
    values: [payoutId, new Date(atMs), trouble],
  });
}

/**
 * Takes the lease of a payment that is due: one that waits while its payout does, or one that the node may have. Its epoch rises with every
 * lease, and whatever is written under an older one is refused. It reaches the disk with the first that is written under it, which is before the
 * node is asked: where PostgreSQL crashes before that, another has the same epoch, and one of the two finds the payout committed. Null when there is none.
 */
export async function leasePayment(
  sql: Sql,
  lease: { readonly owner: string; readonly nowMs: number; readonly untilMs: number; readonly not: readonly string[] },
): Promise<LightningPayment | null> {
  const { rows } = await sql.query<Row>({
    name: 'lease_lightning_payment',
    text: `with next as (
             select l.payout_id from ${SOON} as soon, lightning_payments l join payouts p on p.id = l.payout_id
              where l.state in ('waiting', 'sent') and ${isPast('l.due_at', '$2::timestamptz')}
                and (l.lease_until is null or ${isPast('l.lease_until', '$2::timestamptz')}) and l.payout_id <> all ($4)
                and (l.state = 'sent' or p.step = 'queued')
              order by l.due_at limit 1 for update of l skip locked)
           update lightning_payments l set lease_owner = $1, lease_epoch = l.lease_epoch + 1, lease_until = $3
             from next n join payouts p on p.id = n.payout_id where l.payout_id = n.payout_id
           returning l.payout_id, l.payment_hash, p.payment_request, p.invoice_expires_at, p.fee_max,
                     p.amount - case when p.reimburses is null then 0 else p.fee_max end as amount, l.state, l.node, l.lease_epoch,
                     l.lease_until, l.unanswered_until, l.sends, l.payment_index, l.doubted, p.internal_to, l.created_at, l.asked_at, l.node_started_at,
                     ${AT_LEASE}`,
    values: [lease.owner, new Date(lease.nowMs), new Date(lease.untilMs), lease.not],
  });
  const [row] = rows;
  return row === undefined ? null : paymentFrom(row);
}

function paymentFrom(row: Row): LightningPayment {
  return {
    payoutId: row.payout_id,
    paymentHash: row.payment_hash,
    paymentRequest: row.payment_request,
    expiresAtMs: row.invoice_expires_at.getTime(),
    amount: BigInt(row.amount),
    feeMax: BigInt(row.fee_max),
    state: row.state,
    node: row.node,
    leaseEpoch: row.lease_epoch,
    leaseUntilMs: row.lease_until.getTime(),
    unansweredUntilMs: row.unanswered_until?.getTime() ?? null,
    sends: row.sends,
    paymentIndex: row.payment_index,
    isDoubted: row.doubted,
    internalTo: row.internal_to,
    createdAtMs: row.created_at.getTime(),
    askedAtMs: (row.asked_at ?? row.created_at).getTime(),
    nodeStartedAtMs: row.node_started_at?.getTime() ?? null,
    listedBy: row.listed_by,
    others: { count: row.others, satoshis: BigInt(row.others_take), isStopped: row.stopped },
  };
}

type Leased = Pick<LightningPayment, 'payoutId' | 'leaseEpoch'>;

/** Locks a payment that is still leased under this epoch, and open; false when it is not. Its payout is locked before it. */
export async function lockLeased(sql: Sql, { payoutId, leaseEpoch }: Leased): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'lock_leased_lightning_payment',
    text: `select 1 from lightning_payments where payout_id = $1 and lease_epoch = $2 and state in ('waiting', 'sent') for update`,
    values: [payoutId, leaseEpoch],
  });
  return rowCount === 1;
}

/** The node may be asked from now on: the first request is about to be made, and may arrive until the lease ends. */
export async function setSent(
  sql: Sql,
  payoutId: string,
  of: { readonly node: string; readonly nodeStartedAtMs: number; readonly atMs: number },
): Promise<void> {
  await sql.query({
    name: 'set_lightning_sent',
    text: `update lightning_payments set state = 'sent', node = $2, asked_at = $3, node_started_at = $4, sends = sends + 1,
                   unanswered_until = greatest(unanswered_until, lease_until)
            where payout_id = $1`,
    values: [payoutId, of.node, new Date(of.atMs), new Date(of.nodeStartedAtMs)],
  });
}

/** The state of a payment; null when there is none. The caller has locked its payout. */
export async function readPaymentState(sql: Sql, payoutId: string): Promise<string | null> {
  const { rows } = await sql.query<{ state: string }>({
    name: 'lightning_payment_state',
    text: 'select state from lightning_payments where payout_id = $1',
    values: [payoutId],
  });
  return rows[0]?.state ?? null;
}

/** Whether another payout that has not failed is to pay this hash, or has paid it: what the node says of the hash may be about that one. */
export async function isOfAnother(sql: Sql, paymentHash: string, payoutId: string): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'hash_of_another_payout',
    text: `select from lightning_payments where payment_hash = $1 and payout_id <> $2 and state <> 'failed' limit 1`,
    values: [paymentHash, payoutId],
  });
  return rowCount === 1;
}

/** Another request is about to be made, which the node refuses after the lease. False when the lease is another one by now. */
export async function beginSend(
  sql: Sql,
  { payoutId, leaseEpoch }: Leased,
  at: { readonly nodeStartedAtMs: number; readonly atMs: number },
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'begin_lightning_send',
    text: `update lightning_payments set sends = sends + 1, asked_at = $3, node_started_at = $4, unanswered_until = greatest(unanswered_until, lease_until)
            where payout_id = $1 and lease_epoch = $2 and state = 'sent'`,
    values: [payoutId, leaseEpoch, new Date(at.atMs), new Date(at.nodeStartedAtMs)],
  });
  return rowCount === 1;
}

/**
 * The node has answered the request that was begun under this lease; what was unanswered before it stays so. What it has taken is written with that: it would
 * look as if the node had answered, and had it not.
 * @param paymentIndex the place that it gave to what it has taken; null when it has taken nothing
 */
export async function noteAnswer(
  sql: Sql,
  { payoutId, leaseEpoch, unansweredUntilMs, node }: LightningPayment,
  paymentIndex: bigint | null,
): Promise<void> {
  await sql.query({
    name: 'note_lightning_answer',
    text: `with payment as (
             update lightning_payments set unanswered_until = $3, payment_index = greatest(payment_index, $4) where payout_id = $1 and lease_epoch = $2)
           update lightning_nodes set payment_index = greatest(payment_index, $4) where identity = $5 and $4 is not null`,
    values: [payoutId, leaseEpoch, unansweredUntilMs === null ? null : new Date(unansweredUntilMs), paymentIndex, node],
  });
}

/** The node has it: what it may forget from now on is noticed. */
export async function setPaymentIndex(sql: Sql, payoutId: string, node: string, paymentIndex: bigint): Promise<void> {
  await sql.query({
    name: 'set_lightning_index',
    text: `with payment as (update lightning_payments set payment_index = $3 where payout_id = $1)
           update lightning_nodes set payment_index = greatest(payment_index, $3) where identity = $2`,
    values: [payoutId, node, paymentIndex],
  });
}

/** What the node has made of it. What it had not answered is answered by that, and what it may forget from now on is noticed. */
export async function setPaid(
  sql: Sql,
  of: { readonly payoutId: string; readonly preimage: string; readonly feeMsat: bigint; readonly paymentIndex: bigint },
): Promise<void> {
  await sql.query({
    name: 'set_lightning_paid',
    text: `with payment as (
             update lightning_payments set state = 'paid', preimage = decode($2, 'hex'), fee_msat = $3, payment_index = $4, due_at = null, trouble = null
              where payout_id = $1 returning node)
           update lightning_nodes n set payment_index = greatest(n.payment_index, $4) from payment p where n.identity = p.node`,
    values: [of.payoutId, of.preimage, of.feeMsat, of.paymentIndex],
  });
}

/** It ended: `failed` without a payment, by the node's word or its expiry; `closed` by an operator's word, or because an entry here paid it. */
export async function setEnded(sql: Sql, payoutId: string, state: 'failed' | 'closed'): Promise<void> {
  await sql.query({
    name: 'set_lightning_ended',
    text: `update lightning_payments set state = $2, due_at = null, trouble = null where payout_id = $1 and state in ('waiting', 'sent')`,
    values: [payoutId, state],
  });
}

/** Ends a lease that is still ours, and says when the payment is looked at again; lost in a crash, it ends by its time. */
export async function endPaymentLease(
  sql: Sql,
  { payoutId, leaseEpoch }: Leased,
  next: { readonly dueAtMs: number; readonly trouble: string | null },
): Promise<void> {
  await sql.query({
    name: 'end_lightning_lease',
    text: `update lightning_payments set lease_owner = null, lease_until = null, due_at = case when state in ('waiting', 'sent') then $3::timestamptz end, trouble = $4 from ${SOON} as soon
            where payout_id = $1 and lease_epoch = $2`,
    values: [payoutId, leaseEpoch, new Date(next.dueAtMs), next.trouble],
  });
}

/** When the next payment is due; null when none is open. A payout that waits counts only once it may leave. */
export async function nextPaymentDue(sql: Sql): Promise<number | null> {
  const { rows } = await sql.query<{ at: Date | null }>({
    name: 'next_lightning_due',
    text: `select min(greatest(l.due_at, l.lease_until)) as at from lightning_payments l join payouts p on p.id = l.payout_id
            where l.state = 'sent' or (l.state = 'waiting' and p.step = 'queued')`,
    values: [],
  });
  return rows[0]?.at?.getTime() ?? null;
}
