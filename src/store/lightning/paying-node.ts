// The node that pays, as it was last seen: when it could be asked, and how many payments it knew. One that knows fewer than before was restored
// from an older state, and has forgotten what it paid since.
import type { Sql } from '../postgres/connect.ts';

export type KnownNode = {
  /** How many payments it knew at least. */
  readonly paymentIndex: bigint;
  /** When the payer was last able to ask it; null = it never was. */
  readonly paysAtMs: number | null;
};

/** What is known of each node, by its identity. */
export async function readKnownPayments(sql: Sql): Promise<ReadonlyMap<string, KnownNode>> {
  const { rows } = await sql.query<{ identity: string; payment_index: bigint; pays_at: Date | null }>({
    name: 'read_known_payments',
    text: 'select identity, payment_index, pays_at from lightning_nodes where payment_index is not null',
    values: [],
  });
  return new Map(
    rows.map((row) => [row.identity, { paymentIndex: row.payment_index, paysAtMs: row.pays_at?.getTime() ?? null }]),
  );
}

/** Records what the payer says of its node. */
export async function recordPayingNode(
  sql: Sql,
  node: { readonly identity: string; readonly paymentIndex: bigint },
  atMs: number,
): Promise<void> {
  await sql.query({
    name: 'record_paying_node',
    text: `insert into lightning_nodes (identity, seen_at, pays_at, payment_index, payments_compared, pays_from)
             values ($1, $3, $3, $2, $2, case when exists (select from lightning_nodes where pays_at is not null and identity <> $1) then $3::timestamptz end)
             on conflict (identity) do update set pays_at = excluded.pays_at, payment_index = greatest(lightning_nodes.payment_index, excluded.payment_index),
               payments_compared = coalesce(lightning_nodes.payments_compared, excluded.payments_compared),
               pays_from = case when exists (select from lightning_nodes o where o.pays_at > coalesce(lightning_nodes.pays_at, '-infinity') and o.identity <> $1)
                                then excluded.pays_at else lightning_nodes.pays_from end`,
    values: [node.identity, node.paymentIndex, new Date(atMs)],
  });
}

/** The node that paid before this one, where that has not paid since a time; null where it has, or no other is known. */
export async function payerBefore(sql: Sql, identity: string, sinceMs: number): Promise<string | null> {
  const { rows } = await sql.query<{ identity: string }>({
    name: 'payer_before',
    text: `select o.identity from lightning_nodes n join lightning_nodes o on o.identity <> n.identity and o.pays_at is not null
            where n.identity = $1 and n.pays_from > $2 order by o.pays_at desc limit 1`,
    values: [identity, new Date(sinceMs)],
  });
  return rows[0]?.identity ?? null;
}

/**
 * The node was restored: what it was asked to pay is in doubt, what it listed after its last payment of now is read again, and it has forgotten
 * what it had made there. What it had listed as paid, and no payout is completed by, stays known, below all its numbers, which it gives again: it would pay
 * it once more. What it had listed as paid before needs no other word: a node that has lost its disk has forgotten all that it ever paid.
 * Returns the open payouts concerned.
 */
export async function doubtPayments(
  sql: Sql,
  node: { readonly identity: string; readonly paymentIndex: bigint },
  atMs: number,
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ payout_id: string }>({
    name: 'doubt_lightning_payments',
    text: `with node as (
             update lightning_nodes set payment_index = $2, payments_compared = least(payments_compared, $2), restored_at = $3 where identity = $1),
           forgotten as (
             select s.payment_index, s.state = 'succeeded' and not exists (select from payouts p where p.payment_hash = s.payment_hash and p.status = 'completed') as is_kept
               from lightning_sent s where s.node = $1 and s.payment_index > $2),
           kept as (
             update lightning_sent s set payment_index = b.lowest - f.place
               from (select payment_index, row_number() over () as place from forgotten where is_kept) f,
                    (select least(min(payment_index), 0) as lowest from lightning_sent where node = $1) b
              where s.node = $1 and s.payment_index = f.payment_index),
           unlisted as (
             delete from lightning_sent s using forgotten f where s.node = $1 and s.payment_index = f.payment_index and not f.is_kept and s.acknowledged_at is null),
           paid as (
             update lightning_payments l set doubted = true,
                    forgotten_at = case when exists (select from lightning_sent s where s.payment_hash = l.payment_hash and s.node = l.node and s.state = 'succeeded')
                                        then coalesce(l.forgotten_at, $3) else l.forgotten_at end
              where node = $1 and state in ('paid', 'closed') and payment_index > $2)
           update lightning_payments set doubted = true where node = $1 and state = 'sent' returning payout_id`,
    values: [node.identity, node.paymentIndex, new Date(atMs)],
  });
  return rows.map((row) => row.payout_id).sort();
}

/** What the node says of this payment proves nothing any more. */
export async function doubtPayment(sql: Sql, payoutId: string): Promise<void> {
  await sql.query({
    name: 'doubt_lightning_payment',
    text: `update lightning_payments set doubted = true where payout_id = $1 and state in ('waiting', 'sent')`,
    values: [payoutId],
  });
}

/** Whether the node that was asked to pay a payout was restored since: then only a preimage counts. */
export async function isInDoubt(sql: Sql, payoutId: string): Promise<boolean> {
  const { rows } = await sql.query<{ doubted: boolean }>({
    name: 'is_payment_in_doubt',
    text: 'select doubted from lightning_payments where payout_id = $1',
    values: [payoutId],
  });
  return rows[0]?.doubted === true;
}
