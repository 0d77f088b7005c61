// The entries of bank files: which payout each belongs to, and what the bank has said of it.
import type { Sql } from '../postgres/connect.ts';

export type AchEntry = {
  readonly trace: string;
  readonly file: string;
  readonly payoutId: string;
  readonly cents: bigint;
  readonly returned: string | null;
};

/** The payouts by ach whose ids end with these references, which bank files have in capitals; by reference. */
export async function payoutsByReference(sql: Sql, references: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql.query<{ reference: string; id: string }>({
    name: 'payouts_by_reference',
    text: `select r.reference, p.id from unnest($1::text[]) as r(reference) join payouts p on p.method = 'ach' and upper(right(p.id, length(r.reference))) = r.reference`,
    values: [references],
  });
  return new Map(rows.map(({ reference, id }) => [reference, id]));
}

/** The payouts of a file, in the order in which every writer locks them. */
export async function achPayoutIds(sql: Sql, file: string): Promise<readonly string[]> {
  const { rows } = await sql.query<{ payout_id: string }>({
    name: 'ach_payout_ids',
    text: 'select payout_id from ach_entries where file = $1 order by payout_id',
    values: [file],
  });
  return rows.map((row) => row.payout_id);
}

/** The entry of a trace number; null when there is none. */
export async function readAchEntry(sql: Sql, trace: string): Promise<AchEntry | null> {
  const { rows } = await sql.query<{ trace: string; file: string; payout_id: string; cents: string; returned: string | null }>({
    name: 'read_ach_entry',
    text: 'select trace, file, payout_id, cents, returned from ach_entries where trace = $1',
    values: [trace],
  });
  const [row] = rows;
  return row === undefined
    ? null
    : { trace: row.trace, file: row.file, payoutId: row.payout_id, cents: BigInt(row.cents), returned: row.returned };
}

/** The entries of a file, in its order. */
export async function readAchEntries(
  sql: Sql,
  file: string,
): Promise<readonly { readonly trace: string; readonly cents: bigint }[]> {
  const { rows } = await sql.query<{ trace: string; cents: string }>({
    name: 'read_ach_entries',
    text: 'select trace, cents from ach_entries where file = $1 order by trace',
    values: [file],
  });
  return rows.map(({ trace, cents }) => ({ trace, cents: BigInt(cents) }));
}

export async function setAchReturned(sql: Sql, trace: string, code: string, atMs: number): Promise<void> {
  await sql.query({
    name: 'set_ach_returned',
    text: 'update ach_entries set returned = $2, returned_at = $3 where trace = $1',
    values: [trace, code, new Date(atMs)],
  });
}

export async function setAchNotice(sql: Sql, trace: string, code: string): Promise<void> {
  await sql.query({ name: 'set_ach_notice', text: 'update ach_entries set notice = $2 where trace = $1', values: [trace, code] });
}
