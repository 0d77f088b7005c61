// What merchants have on its way over Lightning, payouts and reimbursements each by themselves, and what of theirs waits and may go on.
import { MOST_UNDER_WAY } from '../../core/lightning/under-way.ts';
import type { Sql } from '../postgres/connect.ts';
import { LISTED_PAID } from './sent-payments.ts';

/** SQL: the merchants, and whether of their payouts, of whom no more may go now. */
export const CROWDED = `select u.merchant_id, u.reimburses is null from payouts u
  where u.payment_hash is not null and u.step = 'batched' group by 1, 2 having count(*) >= ${MOST_UNDER_WAY}`;

const SENT_OTHERS = `from payouts o where o.merchant_id = p.merchant_id and o.id <> p.id and o.payment_hash is not null and o.step = 'batched'
   and (o.reimburses is null) = (p.reimburses is null)`;
/** SQL: of a leased payment, how many others of its merchant and kind our node may have been asked for, what they take, whether payouts are stopped, and which node has paid it already. */
export const AT_LEASE = `(select count(*)::int ${SENT_OTHERS}) as others,
  (select coalesce(sum(o.amount + case when o.reimburses is null then o.fee_max else 0 end), 0)::text ${SENT_OTHERS}) as others_take,
  exists (select from breakers where cleared_at is null) as stopped, (select min(s.node) from ${LISTED_PAID}) as listed_by`;

const OTHERS = `from payouts me join payouts p on p.merchant_id = me.merchant_id and p.id <> me.id and p.payment_hash is not null
                     and (p.reimburses is null) = (me.reimburses is null)`;

/** How many others of a payout's merchant, and of its kind, our node may have been asked for, and what they take with their highest fees. */
export async function othersUnderWay(sql: Sql, payoutId: string): Promise<{ readonly count: number; readonly satoshis: bigint }> {
  const { rows } = await sql.query<{ count: number; satoshis: string }>({
    name: 'others_under_way',
    text: `select count(*)::int as count, coalesce(sum(p.amount + case when p.reimburses is null then p.fee_max else 0 end), 0)::text as satoshis
             ${OTHERS} and p.step = 'batched' where me.id = $1`,
    values: [payoutId],
  });
  return { count: rows[0]?.count ?? 0, satoshis: BigInt(rows[0]?.satoshis ?? 0) };
}

/** The same with those that may be asked for next, as far as {@link MOST_UNDER_WAY}; 0 for one to a transaction here, which needs no channel. */
export async function othersGoing(sql: Sql, payoutId: string): Promise<number> {
  const { rows } = await sql.query<{ count: number }>({
    name: 'others_going',
    text: `select count(*)::int as count from (
             select ${OTHERS} and p.internal_to is null and p.step in ('queued', 'batched')
              where me.id = $1 and me.internal_to is null limit ${MOST_UNDER_WAY}) q`,
    values: [payoutId],
  });
  return rows[0]?.count ?? 0;
}

/**
 * A payout that waited may leave: its payment, which nobody was asked for, is due at once, whatever a look before has said. Who holds its lease has
 * looked at it while it waited, and loses it. The caller has locked its payout; for one that is not over Lightning nothing happens.
 */
export async function setDueNow(sql: Sql, payoutId: string, atMs: number): Promise<void> {
  await sql.query({
    name: 'set_lightning_due_now',
    text: `update lightning_payments set due_at = $2, lease_epoch = lease_epoch + 1, lease_owner = null, lease_until = null
            where payout_id = $1 and state = 'waiting'`,
    values: [payoutId, new Date(atMs)],
  });
}

/** Payouts that are held, that nobody was asked to pay and no node has paid, or is paying, all the same, and whose invoices have expired; some at a time. */
export async function heldAndExpired(sql: Sql, nowMs: number): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'held_and_expired',
    text: `select p.id from lightning_payments l join payouts p on p.id = l.payout_id
            where l.state = 'waiting' and l.sends = 0 and p.step = 'held' and p.invoice_expires_at <= $1
              and not exists (select from ${LISTED_PAID})
              and not exists (select from lightning_sent s where s.payment_hash = l.payment_hash and s.state = 'in_flight' and s.acknowledged_at is null)
            order by p.invoice_expires_at limit 100`,
    values: [new Date(nowMs)],
  });
  return rows.map((row) => row.id);
}
