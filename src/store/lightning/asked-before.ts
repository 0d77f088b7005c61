// What a database that may have been put back does not know of payments over Lightning: requests to pay that were made after the copy.
import type { Sql } from '../postgres/connect.ts';
import { LISTED_PAID } from './sent-payments.ts';

/** It was sent before this copy of the database was made current again: a request of then may still arrive for a while. */
export async function setSentAgain(
  sql: Sql,
  payoutId: string,
  of: { readonly node: string; readonly unansweredUntilMs: number; readonly dueAtMs: number },
): Promise<void> {
  await sql.query({
    name: 'set_lightning_sent_again',
    text: `update lightning_payments set state = 'sent', node = $2, unanswered_until = $3, due_at = $4, asked_at = $4, node_started_at = null, lease_epoch = lease_epoch + 1,
                   lease_until = null
            where payout_id = $1`,
    values: [payoutId, of.node, new Date(of.unansweredUntilMs), new Date(of.dueAtMs)],
  });
}

/** The signer had it made before this copy of the database was made current again, and the node, which may have been put back too, knows nothing of it. */
export async function setAskedBefore(sql: Sql, payoutId: string, unansweredUntilMs: number): Promise<void> {
  await sql.query({
    name: 'set_lightning_asked_before',
    text: `update lightning_payments set sends = greatest(sends, 1), unanswered_until = greatest(unanswered_until, $2)
            where payout_id = $1 and state = 'waiting'`,
    values: [payoutId, new Date(unansweredUntilMs)],
  });
}

/**
 * The database may be a copy that was put back, and the node too: after what is known here another request may have been made of each that was sent. One of
 * which the node had only the request that is known here cannot be told from one that it has forgotten the second of.
 */
export async function setAllAskedAgain(sql: Sql, unansweredUntilMs: number): Promise<void> {
  await sql.query({
    name: 'set_all_lightning_asked_again',
    text: `update lightning_payments set sends = greatest(sends, 2), unanswered_until = greatest(unanswered_until, $1) where state = 'sent'`,
    values: [new Date(unansweredUntilMs)],
  });
}

/** Whether nobody was asked to pay it, as far as this database knows, and the signer had it made before: only the node's word ends it. The caller has locked its payout. */
export async function isAskedBefore(sql: Sql, payoutId: string): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'is_lightning_asked_before',
    text: `select from lightning_payments where payout_id = $1 and state = 'waiting' and sends > 0`,
    values: [payoutId],
  });
  return rowCount === 1;
}

/** Those of the payouts of which this database does not know what became of them after they were authorized. */
export async function notSent(sql: Sql, payoutIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'lightning_not_sent',
    text: `select t.id from unnest($1::text[]) as t(id)
            where not exists (select from lightning_payments l where l.payout_id = t.id
                                 -- one that failed after it was sent has had the node's last word
                                 and (l.state in ('sent', 'paid', 'closed') or (l.state = 'failed' and l.node is not null)))`,
    values: [payoutIds],
  });
  return new Set(rows.map(({ id }) => id));
}

/**
 * Payouts of which this database says that nobody was asked to pay them yet; those to invoices here are paid by no node. With the last place that the node
 * gave to a payment of the same hash, for another payout, as far as is known here.
 */
export async function neverSent(
  sql: Sql,
  node: string,
): Promise<
  readonly {
    readonly payoutId: string;
    readonly paymentHash: string;
    readonly createdAtMs: number;
    readonly knownIndex: bigint | null;
  }[]
> {
  const { rows } = await sql.query<{ payoutId: string; paymentHash: string; at: Date; known: bigint | null }>({
    name: 'lightning_never_sent',
    text: `select l.payout_id as "payoutId", l.payment_hash as "paymentHash", l.created_at as at,
                  (select max(o.payment_index) from lightning_payments o where o.payment_hash = l.payment_hash and o.node = $1) as known
             from lightning_payments l join payouts p on p.id = l.payout_id
            where l.state = 'waiting' and p.internal_to is null and p.step <> 'ended' order by l.payout_id`,
    values: [node],
  });
  return rows.map(({ at, known, ...of }) => ({ ...of, createdAtMs: at.getTime(), knownIndex: known }));
}

/** Those of which a person is asked whether something else has paid them, and that a node lists as paid, as they ask for it. */
export async function heldAndListed(
  sql: Sql,
): Promise<readonly { readonly payoutId: string; readonly paymentHash: string; readonly node: string }[]> {
  const { rows } = await sql.query<{ payoutId: string; paymentHash: string; node: string }>({
    name: 'held_and_listed',
    text: `select l.payout_id as "payoutId", l.payment_hash as "paymentHash", listed.node
             from lightning_payments l join payouts p on p.id = l.payout_id
             cross join lateral (select min(s.node) as node from ${LISTED_PAID}) listed
            where l.state = 'waiting' and p.held_reason = 'unknown_outcome' and listed.node is not null order by l.payout_id`,
    values: [],
  });
  return rows;
}
