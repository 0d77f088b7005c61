// Rows that one statement could not change within its time limit: their ids are read first, packed, and the rows are changed in slices, in
// the order of their ids, the order in which every writer locks payments.
import type { Sql } from './connect.ts';

/** Ids in ascending order, eight bytes each. */
export type RowIds = Buffer;

/** A slice takes well under a second, although the change of a payment's place writes to each of its indexes. */
export const ROWS_AT_ONCE = 5_000;
const ID_BYTES = 8;

/** The text of an expression: the packed ids of what a query returns as `id`; null when it returns nothing. */
export function packedIds(query: string): string {
  return `(select string_agg(int8send(q.id), '' order by q.id) from (${query}) q)`;
}

/** The ids that a query returns as `id`. */
export async function readIds(sql: Sql, query: { readonly text: string; readonly values: unknown[] }): Promise<RowIds> {
  const { rows } = await sql.query<{ ids: RowIds | null }>({
    text: `select ${packedIds(query.text)} as ids`,
    values: query.values,
  });
  return rows[0]?.ids ?? Buffer.alloc(0);
}

/** Runs a function for slices of these ids, one after the other. */
export async function inIdParts(ids: RowIds | null, run: (part: readonly bigint[]) => Promise<unknown>): Promise<void> {
  if (ids === null) return;
  for (let at = 0; at < ids.length; ) {
    const part: bigint[] = [];
    for (; at < ids.length && part.length < ROWS_AT_ONCE; at += ID_BYTES) part.push(ids.readBigInt64BE(at));
    await run(part);
  }
}
