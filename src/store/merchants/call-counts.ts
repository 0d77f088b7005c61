// The token buckets that several servers share: one row per limit and caller, refilled in the same statement by the service's clock. Used
// only while there are several servers, which find each other by a notification.
import type { Sql } from '../postgres/connect.ts';

export type BucketRow = {
  /** Name of the limit and of the caller, such as "auth 192.0.2.1". */
  readonly bucket: string;
  readonly capacity: number;
  /** Tokens that come back in a millisecond. */
  readonly perMs: number;
  readonly tokens: number;
  readonly atMs: number;
};
/** Asks for one call. */
export type Asking = Omit<BucketRow, 'tokens'>;
export type Taken = { readonly granted: boolean; readonly tokens: number; readonly atMs: number };

/** The tokens of a row at the time of `excluded`; a clock that went back adds none. */
const REFILLED = 'least(excluded.capacity, c.tokens + greatest(0, excluded.at_ms - c.at_ms) * excluded.per_ms)';

/** Takes one call for each request, in their order and in one statement, if one is left; a bucket without a row is full. */
export async function takeCalls(sql: Sql, askings: readonly Asking[]): Promise<readonly Taken[]> {
  const wanted = new Map<string, { asking: Asking; count: number }>();
  for (const asking of askings) {
    const same = wanted.get(asking.bucket);
    wanted.set(asking.bucket, { asking, count: (same?.count ?? 0) + 1 });
  }
  // all servers lock the rows in the same order
  const sorted = [...wanted.values()].sort((a, b) => (a.asking.bucket < b.asking.bucket ? -1 : 1));
  const { rows } = await sql.query<{ bucket: string; granted: number; tokens: number; at_ms: number }>({
    name: 'take_calls',
    text: `insert into call_counts as c (bucket, capacity, per_ms, tokens, at_ms, wanted, granted)
           select bucket, capacity, per_ms, capacity - least(wanted, floor(capacity)), at_ms, wanted, least(wanted, floor(capacity))
             from unnest($1::text[], $2::float8[], $3::float8[], $4::float8[], $5::int[]) as t(bucket, capacity, per_ms, at_ms, wanted)
           on conflict (bucket) do update
             set capacity = excluded.capacity, per_ms = excluded.per_ms, wanted = excluded.wanted,
                 tokens = ${REFILLED} - least(excluded.wanted, floor(${REFILLED})),
                 granted = least(excluded.wanted, floor(${REFILLED})), at_ms = greatest(c.at_ms, excluded.at_ms)
           returning bucket, granted, tokens, at_ms`,
    values: [
      sorted.map(({ asking }) => asking.bucket),
      sorted.map(({ asking }) => asking.capacity),
      sorted.map(({ asking }) => asking.perMs),
      sorted.map(({ asking }) => asking.atMs),
      sorted.map(({ count }) => count),
    ],
  });
  const given = new Map(rows.map((row) => [row.bucket, { left: row.granted, tokens: row.tokens, atMs: row.at_ms }]));
  return askings.map(({ bucket }) => {
    const row = given.get(bucket);
    if (row === undefined) throw new Error(`the bucket ${bucket} returned no row`);
    row.left -= 1;
    return { granted: row.left >= 0, tokens: row.tokens, atMs: row.atMs };
  });
}

const ROWS_AT_ONCE = 5_000;

/** Adds the calls that a server counted by itself: of two states of one bucket the emptier one is kept. */
export async function mergeCounts(sql: Sql, buckets: readonly BucketRow[]): Promise<void> {
  const sorted = [...buckets].sort((a, b) => (a.bucket < b.bucket ? -1 : 1));
  for (let from = 0; from < sorted.length; from += ROWS_AT_ONCE) {
    const part = sorted.slice(from, from + ROWS_AT_ONCE);
    await sql.query({
      name: 'merge_counts',
      text: `insert into call_counts as c (bucket, capacity, per_ms, tokens, at_ms, wanted, granted)
             select bucket, capacity, per_ms, tokens, at_ms, 0, 0
               from unnest($1::text[], $2::float8[], $3::float8[], $4::float8[], $5::float8[]) as t(bucket, capacity, per_ms, tokens, at_ms)
             on conflict (bucket) do update
               set tokens = least(${REFILLED}, excluded.tokens), at_ms = greatest(c.at_ms, excluded.at_ms)`,
      values: [
        part.map((one) => one.bucket),
        part.map((one) => one.capacity),
        part.map((one) => one.perMs),
        part.map((one) => one.tokens),
        part.map((one) => one.atMs),
      ],
    });
  }
}

/** Takes all rows, for a server that counts alone from now on. */
export async function drainCounts(sql: Sql): Promise<readonly BucketRow[]> {
  const { rows } = await sql.query<{ bucket: string; capacity: number; per_ms: number; tokens: number; at_ms: number }>({
    name: 'drain_counts',
    text: 'delete from call_counts returning bucket, capacity, per_ms, tokens, at_ms',
    values: [],
  });
  return rows.map((row) => ({
    bucket: row.bucket,
    capacity: row.capacity,
    perMs: row.per_ms,
    tokens: row.tokens,
    atMs: row.at_ms,
  }));
}

/** Deletes the buckets that are full again: they carry no information. */
export async function pruneCounts(sql: Sql, nowMs: number): Promise<void> {
  await sql.query({
    name: 'prune_counts',
    text: 'delete from call_counts where tokens + ($1 - at_ms) * per_ms >= capacity',
    values: [nowMs],
  });
}

export const API_PEERS_CHANNEL = 'api_peers';

/** Notifies every listener that this server is running. */
export async function announceApiPeer(sql: Sql, self: string): Promise<void> {
  await sql.query({ name: 'announce_api_peer', text: 'select pg_notify($1, $2)', values: [API_PEERS_CHANNEL, self] });
}
