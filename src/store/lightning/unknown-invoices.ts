// Invoices that our node has and this database does not know, made while it was not compared with the node: of a transaction that was forgotten when the
// database was put back from a copy.
import type { InvoiceFacts } from '../../core/lightning/port.ts';
import { HERE } from '../payouts/comparisons.ts';
import type { Sql } from '../postgres/connect.ts';

export type LastComparison = {
  /** When a node's whole list was last compared; null = never. */
  readonly atMs: number | null;
  /** Which database this is, and on which timeline. */
  readonly within: string;
  /** It was compared with another one than this: a copy was put back, or a standby has taken over. */
  readonly wasWithAnother: boolean;
};

/** When, and with which database, the list of a node was compared last. */
export async function readLastComparison(sql: Sql, identity: string): Promise<LastComparison> {
  const { rows } = await sql.query<{ compared_at: Date | null; compared_in: string | null; here: string }>({
    name: 'read_last_comparison',
    text: `select n.compared_at, n.compared_in, h.here from (select ${HERE} as here) h left join lightning_nodes n on n.identity = $1`,
    values: [identity],
  });
  const [row] = rows;
  const within = row?.here ?? '';
  const atMs = row?.compared_at?.getTime() ?? null;
  return { atMs, within, wasWithAnother: row?.compared_in != null && row.compared_in !== within };
}

/** Keeps them; of one that was not settled before, what it was paid. */
export async function recordUnknown(sql: Sql, node: string, invoices: readonly InvoiceFacts[]): Promise<void> {
  await sql.query({
    name: 'record_unknown_invoices',
    text: `insert into lightning_unknown_invoices (payment_hash, node, added_at, paid_msat)
             select i.payment_hash, $1, i.added_at, i.paid_msat from unnest($2::text[], $3::timestamptz[], $4::numeric[]) as i(payment_hash, added_at, paid_msat)
           on conflict (payment_hash) do update set paid_msat = coalesce(lightning_unknown_invoices.paid_msat, excluded.paid_msat)`,
    values: [
      node,
      invoices.map((one) => one.paymentHash),
      invoices.map((one) => new Date(one.addedAtMs).toISOString()),
      invoices.map((one) => (one.state === 'settled' ? one.paidMsat : null)),
    ],
  });
}

/** Payment hashes of a node's that may still be paid. */
export async function openUnknown(sql: Sql, node: string): Promise<readonly string[]> {
  const { rows } = await sql.query<{ payment_hash: string }>({
    name: 'open_unknown_invoices',
    text: 'select payment_hash from lightning_unknown_invoices where node = $1 and paid_msat is null order by payment_hash',
    values: [node],
  });
  return rows.map((row) => row.payment_hash);
}

/** These were never paid, and cannot be any more. */
export async function forgetUnknown(sql: Sql, paymentHashes: readonly string[]): Promise<void> {
  await sql.query({
    name: 'forget_unknown_invoices',
    text: 'delete from lightning_unknown_invoices where payment_hash = any ($1) and paid_msat is null',
    values: [paymentHashes],
  });
}

/** An operator has seen one that was paid. @returns what it was paid, in thousandths of a satoshi; null when there is none */
export async function acknowledgeUnknown(sql: Sql, paymentHash: string, atMs: number): Promise<bigint | null> {
  const { rows } = await sql.query<{ paid: string }>({
    name: 'acknowledge_unknown_invoice',
    text: `update lightning_unknown_invoices set acknowledged_at = $2
            where payment_hash = $1 and paid_msat is not null and acknowledged_at is null returning paid_msat::text as paid`,
    values: [paymentHash, new Date(atMs)],
  });
  return rows[0] === undefined ? null : BigInt(rows[0].paid);
}
