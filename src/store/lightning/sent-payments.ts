// What our Lightning node itself lists as paid or under way, for the audit: LN-5 compares it with what payouts have asked for.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { PaymentFacts } from '../../core/lightning/payer.ts';
import type { Sql } from '../postgres/connect.ts';

/**
 * `compared`: up to which payment of a node everything has ended and was compared; null for a node that was never asked. `heldAt`: when what it has was
 * looked at last.
 */
export async function readPaymentsCompared(
  sql: Sql,
  identity: string,
): Promise<{ readonly compared: bigint | null; readonly heldAt: Date | null }> {
  const { rows } = await sql.query<{ payments_compared: bigint | null; held_at: Date | null }>({
    name: 'read_payments_compared',
    text: 'select payments_compared, held_at from lightning_nodes where identity = $1',
    values: [identity],
  });
  return { compared: rows[0]?.payments_compared ?? null, heldAt: rows[0]?.held_at ?? null };
}

/** The payments of a node were read to their end, after what it has was looked at at that time. */
export async function setListedFor(sql: Sql, identity: string, heldAt: Date): Promise<void> {
  await sql.query({
    name: 'set_payments_listed',
    text: 'update lightning_nodes set listed_for = $2 where identity = $1 and listed_for is distinct from $2',
    values: [identity, heldAt],
  });
}

/** What a payment has cost, in msat, as the node lists it; null where it lists none that has succeeded. */
export async function listedFee(sql: Sql, paymentHash: string): Promise<bigint | null> {
  const { rows } = await sql.query<{ fee: string }>({
    name: 'listed_lightning_fee',
    text: `select fee_msat::text as fee from lightning_sent where payment_hash = $1 and state = 'succeeded' limit 1`,
    values: [paymentHash],
  });
  return rows[0] === undefined ? null : BigInt(rows[0].fee);
}

/**
 * What a node had listed as paid last, and a payout was completed by, up to a time; null where nothing was. It lists that for good, unless its payments were
 * deleted there: what was still under way then stays.
 */
export async function lastListedPaid(sql: Sql, node: string, upToMs: number): Promise<string | null> {
  const { rows } = await sql.query<{ payment_hash: string }>({
    name: 'last_listed_paid',
    text: `select payment_hash from lightning_sent s
            where node = $1 and state = 'succeeded' and acknowledged_at is null and seen_at <= $2
              and exists (select from lightning_payments l join payouts p on p.id = l.payout_id
                           where l.payment_hash = s.payment_hash and l.state = 'paid' and p.completed_at <= $2)
            order by payment_index desc limit 1`,
    values: [node, new Date(upToMs)],
  });
  return rows[0]?.payment_hash ?? null;
}

/** SQL: whether a payment `s` of the node is under way, and its operator has said that it is his: it stops nothing before it has ended. */
export const UNDER_WAY_OF_OPERATOR = `s.state = 'in_flight' and s.is_operators`;

export type UnaskedPayment = {
  /** The node that has paid it. */
  readonly node: string;
  readonly isUnderWay: boolean;
  /** Its operator has said so. */
  readonly isOperators: boolean;
  readonly amountMsat: bigint;
  readonly feeMsat: bigint;
  /** A payout here had asked for it, and has failed. */
  readonly isOfFailed: boolean;
};

/** SQL: whether a payment `s` of the node is what a payout `p` asks for, as core/lightning/payout-fees says it of the node's word. */
const AS_ASKED = `s.fee_msat <= p.fee_max * 1000 and s.amount_msat = (p.amount - case when p.reimburses is null then 0 else p.fee_max end) * 1000`;

/**
 * SQL: the payments `l` of payouts `p` here that have asked for a payment `s` of the node. One of another amount with the same hash has not, or one that may
 * not cost as much, until it is completed: an invoice may have no amount, and somebody else may have paid it, and chosen who takes the fee.
 */
export const ASKED_BY = `from lightning_payments l join payouts p on p.id = l.payout_id
                               where l.payment_hash = s.payment_hash
                                 and (p.status = 'completed' or ${AS_ASKED})`;

/** SQL: the nodes that list the payment `l` of a payout `p` that leaves as paid, as that asks for it, and nobody has booked it otherwise: the payout is completed by it. */
export const LISTED_PAID = `lightning_sent s where p.internal_to is null and s.payment_hash = l.payment_hash and s.state = 'succeeded' and s.acknowledged_at is null and ${AS_ASKED}`;

/** A node that lists the payment of a payout as paid; null: none. */
export async function listedBy(sql: Sql, payoutId: string): Promise<string | null> {
  const { rows } = await sql.query<{ node: string | null }>({
    name: 'payment_listed_by',
    text: `select (select min(s.node) from ${LISTED_PAID}) as node from lightning_payments l join payouts p on p.id = l.payout_id where l.payout_id = $1`,
    values: [payoutId],
  });
  return rows[0]?.node ?? null;
}

/** SQL: whether a payment `s` of the node was asked for by no payout here, or only by such as failed, and nobody has booked it. */
const UNASKED = `s.acknowledged_at is null and not exists (select ${ASKED_BY} and p.status <> 'failed')`;

/**
 * SQL: whether what is under way, and what {@link UNASKED} finds, stops nothing before it has succeeded: it is its operator's, or a payout that has failed here had
 * it under that number, or was called failed by an operator. Such a one was read a moment before its end, or hangs for good.
 */
const LET_BE = `s.state = 'in_flight' and (s.is_operators
                or exists (select ${ASKED_BY} and (l.state = 'closed' or (l.node = s.node and l.payment_index >= s.payment_index))))`;

/**
 * Whether what a node has paid, and was booked as lost, may have sent back something of this transaction: nobody here has asked for it, it is no more than all
 * that the transaction was ever paid over Lightning, and was found after that was made. What asks for a hash that the node lists as paid, and nobody has booked,
 * is explained by that: the worker completes it with it.
 */
export async function mayHaveGoneBack(sql: Sql, transactionId: string, paymentHash: string | null): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'may_have_gone_back',
    text: `select 1 from transactions t
             cross join lateral (select sum(amount) as amount from payments where transaction_id = t.id and currency = '${LIGHTNING.code}') paid
             join lightning_sent s on s.acknowledged_at is not null and not s.is_operators and s.seen_at >= t.created_at and s.amount_msat <= paid.amount * 1000
            where t.id = $1 and not exists (select ${ASKED_BY})
              and not exists (select from lightning_sent o where o.payment_hash = $2 and o.state = 'succeeded' and o.acknowledged_at is null) limit 1`,
    values: [transactionId, paymentHash],
  });
  return rows.length > 0;
}

/** Reimbursements over Lightning that nobody was asked to pay yet. */
export async function waitingRefunds(
  sql: Sql,
): Promise<readonly { readonly id: string; readonly transactionId: string; readonly paymentHash: string }[]> {
  const { rows } = await sql.query<{ id: string; transactionId: string; paymentHash: string }>({
    name: 'waiting_lightning_refunds',
    text: `select id, reimburses as "transactionId", payment_hash as "paymentHash" from payouts
            where step in ('held', 'queued') and reimburses is not null and payment_hash is not null order by id`,
    values: [],
  });
  return rows;
}

/** Locks what the node has paid for a hash that no payout here has asked for, or only such as failed, and that nobody has booked; null when there is no such payment. */
export async function lockUnasked(sql: Sql, paymentHash: string): Promise<UnaskedPayment | null> {
  const { rows } = await sql.query<{
    node: string;
    state: string;
    own: boolean;
    amount: string;
    fee: string;
    failed: boolean;
  }>({
    name: 'lock_unasked_payment',
    text: `select node, state, is_operators as own, amount_msat::text as amount, fee_msat::text as fee,
                  exists (select ${ASKED_BY}) as failed
             from lightning_sent s where payment_hash = $1 and ${UNASKED} for update`,
    values: [paymentHash],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { node, state, own, amount, fee, failed } = row;
  const isUnderWay = state !== 'succeeded';
  return { node, isUnderWay, isOperators: own, amountMsat: BigInt(amount), feeMsat: BigInt(fee), isOfFailed: failed };
}

/**
 * Payment hashes that a node lists as paid or under way, and that no payout here has asked for, or only such as failed; what is under way of its operator, or
 * was of a payout that has failed, is left out.
 * @param of those of one node above a number; absent: all
 */
export async function unaskedHashes(
  sql: Sql,
  of?: { readonly node: string; readonly afterIndex: bigint },
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ payment_hash: string }>({
    name: of === undefined ? 'unasked_hashes' : 'unasked_hashes_of_node',
    text: `select distinct payment_hash from lightning_sent s
            where ${of === undefined ? '' : 's.node = $1 and s.payment_index > $2 and '}${UNASKED} and not (${LET_BE}) order by 1 limit 20`,
    values: of === undefined ? [] : [of.node, of.afterIndex],
  });
  return rows.map((row) => row.payment_hash);
}

/**
 * SQL: payments `l` of payouts `p` that an operator has found paid, and their nodes `n`, which had them and were read beyond them since, and were not restored
 * meanwhile.
 */
export const FOUND_PAID = `lightning_payments l join payouts p on p.id = l.payout_id join lightning_nodes n on n.identity = l.node
            where l.state = 'closed' and p.status = 'completed' and l.payment_index <= n.payments_compared and l.forgotten_at is null and not l.doubted`;

/**
 * What a payout had paid, or an operator has found paid, and its node does not list: it was restored since, or its payments were deleted there, and an operator
 * has seen it. Returns the payout; null when there is none.
 */
export async function setForgotten(sql: Sql, paymentHash: string, atMs: number): Promise<string | null> {
  const { rows } = await sql.query<{ payout_id: string }>({
    name: 'set_payment_forgotten',
    text: `update lightning_payments u set forgotten_at = $2
            where u.payment_hash = $1 and not exists (select from lightning_sent s where s.payment_hash = u.payment_hash and s.node = u.node)
              and (exists (select from lightning_nodes n
                            where u.state = 'paid' and u.forgotten_at is null and n.identity = u.node
                              and (u.doubted or u.payment_index <= n.payments_compared))
                   or u.payout_id in (select l.payout_id from ${FOUND_PAID}))
           returning u.payout_id`,
    values: [paymentHash, new Date(atMs)],
  });
  return rows[0]?.payout_id ?? null;
}

/** It is booked as what it was: lost, or paid by the operator with what is his. */
export async function setAcknowledged(sql: Sql, paymentHash: string, isOperators: boolean, atMs: number): Promise<void> {
  await sql.query({
    name: 'acknowledge_payment',
    text: 'update lightning_sent set acknowledged_at = $2, is_operators = $3 where payment_hash = $1 and acknowledged_at is null',
    values: [paymentHash, new Date(atMs), isOperators],
  });
}

/** Its operator has said that it is his, while it is under way. */
export async function setOperators(sql: Sql, paymentHash: string): Promise<void> {
  await sql.query({
    name: 'set_payment_operators',
    text: `update lightning_sent set is_operators = true where payment_hash = $1 and state = 'in_flight' and acknowledged_at is null`,
    values: [paymentHash],
  });
}

/**
 * Whether a node has paid, or was paid, what nobody has booked yet (LN-5, LN-9). What its operator has under way, or has called failed, may be so
 * for good, and has taken nothing where no channel holds it; only then what the node has is looked at. What it had paid for the hash of a payout before it was
 * asked for that is booked with it, and is missing up to the look that follows.
 * @param of what is decided about: what a look has found, up to now; or what the books and the node were when it was looked at last
 */
export async function isUndecided(sql: Sql, node: string, of: 'this_look' | 'last_look' = 'last_look'): Promise<boolean> {
  const { rows } = await sql.query<{ some: boolean }>({
    name: 'is_lightning_undecided',
    text: `select exists (select from lightning_sent s where s.node = $1 and ${UNASKED} and not (${LET_BE}))
               or exists (select from lightning_sent s join lightning_nodes n on n.identity = s.node
                           where s.node = $1 and s.state = 'succeeded' and s.acknowledged_at is null
                             and exists (select ${ASKED_BY} and (l.state = 'waiting' or $2 and s.seen_at <= l.asked_at
                               and p.status <> 'failed' and (p.completed_at is null or p.completed_at >= n.held_at))))
               or exists (select from lightning_unknown_invoices where node = $1 and paid_msat is not null and acknowledged_at is null) as some`,
    values: [node, of === 'last_look'],
  });
  return rows[0]?.some === true;
}

/** Whether what the node has paid for a hash is in the books: an operator has booked it, or a payout other than this one had it paid. */
export async function isBookedHere(sql: Sql, paymentHash: string, payoutId: string): Promise<boolean> {
  const { rows } = await sql.query<{ booked: boolean }>({
    name: 'hash_is_booked',
    text: `select exists (select from lightning_sent where payment_hash = $1 and acknowledged_at is not null)
               or exists (select from lightning_payments where payment_hash = $1 and payout_id <> $2 and state in ('sent', 'paid', 'closed')) as booked`,
    values: [paymentHash, payoutId],
  });
  return rows[0]?.booked === true;
}

/**
 * Keeps what a page of the node's list says. What has failed since it was kept goes, and what was under way and is not there any more: the node was asked to
 * pay it once more after it had failed, and has it under a later number. What a payout has paid under that number stays: it was deleted there.
 * @param afterIndex the payment that the page begins after
 * @param comparedTo up to this payment everything has ended
 */
export async function recordSent(
  sql: Sql,
  identity: string,
  { afterIndex, payments }: { readonly afterIndex: bigint; readonly payments: readonly PaymentFacts[] },
  comparedTo: bigint,
  atMs: number,
): Promise<void> {
  const kept = payments.filter(({ status }) => status !== 'failed');
  await sql.query({
    name: 'record_lightning_sent',
    text: `with said as (
             select * from unnest($3::bigint[], $4::text[], $5::text[], $6::numeric[], $7::numeric[]) as t(payment_index, payment_hash, state, amount_msat, fee_msat)),
           gone as (delete from lightning_sent s where s.node = $1 and s.payment_index > $8 and s.payment_index <= $9
                       and s.payment_index <> all ($3::bigint[]) and (s.payment_index = any ($10::bigint[]) or s.state = 'in_flight' and not exists (
                         select from lightning_payments l where l.node = s.node and l.payment_hash = s.payment_hash and l.payment_index = s.payment_index
                            and l.state = 'paid'))),
           -- what it had forgotten, and has again (doubtPayments)
           back as (delete from lightning_sent where node = $1 and payment_index < 0 and payment_hash = any ($4) returning payment_hash, acknowledged_at, is_operators),
           node as (update lightning_nodes set payments_compared = $2, payment_index = greatest(payment_index, $2) where identity = $1)
           insert into lightning_sent (node, payment_index, payment_hash, state, amount_msat, fee_msat, seen_at, acknowledged_at, is_operators)
             select $1, payment_index, payment_hash, state, amount_msat, fee_msat, $11, (select max(b.acknowledged_at) from back b where b.payment_hash = said.payment_hash),
                    exists (select from back b where b.payment_hash = said.payment_hash and b.is_operators) from said
             on conflict (node, payment_index) do update set payment_hash = excluded.payment_hash, state = excluded.state,
               -- a node that was restored gives its numbers again
               acknowledged_at = case when lightning_sent.payment_hash = excluded.payment_hash then lightning_sent.acknowledged_at else excluded.acknowledged_at end,
               is_operators = case when lightning_sent.payment_hash = excluded.payment_hash then lightning_sent.is_operators else excluded.is_operators end, amount_msat = excluded.amount_msat, fee_msat = excluded.fee_msat`,
    values: [
      identity,
      comparedTo,
      kept.map((one) => one.paymentIndex),
      kept.map((one) => one.paymentHash),
      kept.map((one) => one.status),
      kept.map((one) => one.amountMsat),
      kept.map((one) => one.feeMsat),
      afterIndex,
      payments.at(-1)?.paymentIndex ?? afterIndex,
      payments.filter(({ status }) => status === 'failed').map((one) => one.paymentIndex),
      new Date(atMs),
    ],
  });
}
