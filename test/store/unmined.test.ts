// The comparison with a mempool reads only the payments for which the mempool says something else: the same changes as a comparison of all
// payments, and nothing is read of thousands that are where they were.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compareWithMempool } from '../../src/store/chain/sightings.ts';
import { readUnmined } from '../../src/store/chain/unmined.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const SINCE_MS = Date.UTC(2026, 4, 1);
const NOW_MS = Date.UTC(2026, 5, 1);
let service: ServiceOnDatabase;
let transactionId: string;
beforeAll(async () => {
  service = await openServiceOnDatabase();
  ({ transactionId } = await service.create());
}, 60_000);
afterAll(() => service.drop());

const txid = (n: number): string => n.toString(16).padStart(64, '0');

/** Payments in every state, each of a transaction of its own; its number says which. */
const STATES = [
  'mempool',
  'gone',
  'gone long ago',
  'conflicted, rival in the mempool',
  'conflicted, rival mined',
  'mined',
] as const;
const LONG_AGO = new Date(SINCE_MS - 1);

async function insert(first: number, count: number, state: (typeof STATES)[number], outputs = 1): Promise<void> {
  const kind = state.split(/[ ,]/)[0];
  const since = state === 'gone long ago' ? LONG_AGO : new Date(SINCE_MS + 1);
  await service.admin.query(
    `insert into payments (currency, transaction_id, txid, vout, amount, twin_key, state, height, block_hash, block_time, gone_since, conflict_txid,
                           seen_at, caught_up_at, found_mined)
       select 'BTC', $1, lpad(to_hex(n), 64, '0'), v, 546, sha256((n || ':' || v)::bytea), $4, case when $4 = 'mined' then 100 end,
              case when $4 = 'mined' then 'a' end, case when $4 = 'mined' then now() end, case when $4 = 'gone' then $5::timestamptz end,
              case when $4 = 'conflicted' then lpad(to_hex(n + 1000000), 64, '0') end, now(), now(), false
         from generate_series($2::int, $2::int + $3::int - 1) n, generate_series(1, $6::int) v`,
    [transactionId, first, count, kind, since, outputs],
  );
  if (kind === 'conflicted')
    await service.admin.query(
      `insert into conflicting_transactions (currency, txid, height)
         select 'BTC', lpad(to_hex(n + 1000000), 64, '0'), $3::int from generate_series($1::int, $1::int + $2::int - 1) n`,
      [first, count, state.endsWith('mined') ? 100 : null],
    );
}

test('the same changes as of all payments, whether all are compared or what came and left', async () => {
  for (const [kind, state] of STATES.entries()) await insert(1 + kind * 100, 20, state);
  // of each kind the even ones are listed, and of the rivals every third
  const listed = new Set<string>();
  for (let kind = 0; kind < STATES.length; kind++) {
    for (let n = 1 + kind * 100; n <= 20 + kind * 100; n++) {
      if (n % 2 === 0) listed.add(txid(n));
      if (n % 3 === 0) listed.add(txid(n + 1_000_000));
    }
  }
  const expected: string[] = [];
  for (let n = 1; n <= 20; n++) {
    if (n % 2 === 1) expected.push(`${n} gone`);
    if ((n + 100) % 2 === 0) expected.push(`${n + 100} mempool`);
    if ((n + 300) % 2 === 0) expected.push(`${n + 300} mempool`);
    else if ((n + 300) % 3 !== 0) expected.push(`${n + 300} gone`);
  }
  const compare = async (changed: readonly string[] | null) => {
    const unmined = await readUnmined(service.db, 'BTC', SINCE_MS, { txids: listed, changed });
    const { changed: rows, departed } = compareWithMempool(unmined, listed, NOW_MS);
    return { rows: rows.map((row) => `${Number.parseInt(row.txid, 16)} ${row.state}`).sort(), departed: departed.toSorted() };
  };
  const all = await compare(null);
  expect(all.rows).toEqual(expected.sort());
  expect(all.departed).toHaveLength(20 - 6);
  const everything = Array.from({ length: 700 }, (_, n) => [txid(n), txid(n + 1_000_000)]).flat();
  expect(await compare(everything)).toEqual(all);
  expect(await compare([txid(1), txid(102), txid(104), txid(501)])).toEqual({
    rows: ['1 gone', '102 mempool', '104 mempool'],
    departed: [],
  });
});

test('of thousands of payments that are where they were none is read; of a transaction that left, its own', async () => {
  await insert(10_000, 4, 'mempool', 5_000);
  const listed = new Set([10_000, 10_001, 10_002, 10_003, ...Array.from({ length: 20 }, (_, n) => n + 1)].map(txid));
  const read = async (changed: readonly string[] | null, txids = listed): Promise<number> => {
    const { payments } = await readUnmined(service.db, 'BTC', SINCE_MS, { txids, changed });
    return payments.filter((one) => Number.parseInt(one.txid, 16) >= 10_000).length;
  };
  expect(await read(null)).toBe(0);
  expect(await read([])).toBe(0);
  const without = new Set([...listed].filter((one) => one !== txid(10_002)));
  expect(await read(null, without)).toBe(5_000);
  expect(await read([txid(10_002)], without)).toBe(5_000);
});
