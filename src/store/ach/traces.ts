// The last seven digits of trace numbers. They rise from file to file and begin again at 1 when they are used up, so a number may stand in several
// files; what a bank sends back names the payout too, and comes within two months.
import type { Sql } from '../postgres/connect.ts';

const HIGHEST = 9_999_999;
/** A number that was given within this time is not given again. */
const KEPT_MS = 365 * 86_400_000;
/** How many numbers are looked at together once some of them turn out to be taken. */
const LOOKED_AT = 20_000;

export type TracesWanted = {
  /** The first eight digits of our bank's routing number, which are those of each trace number. */
  readonly bank: string;
  readonly count: number;
  /** By the service's clock. */
  readonly nowMs: number;
};

/**
 * The next numbers, rising, which no other file gets. The caller holds `lockAchFiles`, and makes one file of them.
 * @returns null where so many are not free: each was given within a year
 */
export async function nextTraces(sql: Sql, wanted: TracesWanted): Promise<readonly number[] | null> {
  const { rows } = await sql.query<{ last: bigint; given: boolean }>({
    name: 'last_ach_trace',
    text: 'select last_value as last, is_called as given from ach_trace',
    values: [],
  });
  const first = rows[0]?.given === true ? Number(rows[0].last) + 1 : 1;
  // the numbers of a file rise, so no file has both the highest and 1
  const numbers = (await freeFrom(sql, wanted, first, HIGHEST)) ?? (await freeFrom(sql, wanted, 1, first - 1));
  if (numbers === null) return null;
  await sql.query({ name: 'set_ach_trace', text: `select setval('ach_trace', $1)`, values: [numbers.at(-1)] });
  return numbers;
}

async function freeFrom(
  sql: Sql,
  { bank, count, nowMs }: TracesWanted,
  first: number,
  last: number,
): Promise<readonly number[] | null> {
  const traceOf = (number: number): string => `${bank}${String(number).padStart(7, '0')}`;
  const found: number[] = [];
  let size = count;
  for (let at = first; at <= last && found.length < count; at += size, size = LOOKED_AT) {
    const end = Math.min(last, at + size - 1);
    const { rows } = await sql.query<{ number: number }>({
      name: 'taken_ach_traces',
      text: `select right(e.trace, 7)::int as number from ach_entries e join ach_files f on f.name = e.file
              where e.trace between $1 and $2 and f.created_at > $3`,
      values: [traceOf(at), traceOf(end), new Date(nowMs - KEPT_MS)],
    });
    const taken = new Set(rows.map(({ number }) => number));
    for (let number = at; number <= end && found.length < count; number++) if (!taken.has(number)) found.push(number);
  }
  return found.length < count ? null : found;
}

/**
 * Numbers go on above this one, which a file has that the database had forgotten. One that lies so far ahead that it would be behind on the way
 * round changes nothing.
 */
export async function raiseTraces(sql: Sql, last: number): Promise<void> {
  await sql.query({
    name: 'raise_ach_traces',
    text: `select setval('ach_trace', $1::bigint) from ach_trace where ($1::bigint - last_value + ${HIGHEST}) % ${HIGHEST} < ${(HIGHEST + 1) / 2}`,
    values: [last],
  });
}
