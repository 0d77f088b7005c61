// The rows of payments as the watchers read and write them: what is found of what was seen, in which order rows are locked, and what a second
// reading of a block misses.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { TransactionFacts } from '../../src/core/ports.ts';
import {
  missingPayments,
  type PaymentFacts,
  type PlaceOfBlock,
  paymentFacts,
  type RawFacts,
  readFacts,
} from '../../src/store/chain/payment-facts.ts';
import { insertPayments, leavePlaces, updatePayments } from '../../src/store/chain/payment-writes.ts';
import { takeBackAbove } from '../../src/store/chain/sightings.ts';
import { type Sql, transactionByIndex } from '../../src/store/postgres/connect.ts';
import { openServiceOnDatabase, type Sent, type ServiceOnDatabase } from '../support/service-on-database.ts';

let service: ServiceOnDatabase;
let other: pg.Client;
let transactionId: string;
let script: string;
beforeAll(async () => {
  service = await openServiceOnDatabase();
  other = new pg.Client({ connectionString: service.url });
  await other.connect();
});
afterAll(async () => {
  await other.end();
  await service.drop();
});
beforeEach(async () => {
  ({ transactionId } = await service.create());
  const { rows } = await service.admin.query(`select encode(script, 'hex') as script from transactions where id = $1`, [
    transactionId,
  ]);
  script = rows[0].script;
});

const hash = (): string => randomBytes(32).toString('hex');
const factsOf = async (sightings: readonly TransactionFacts[], malleationKeys: readonly string[] = []) =>
  (await transactionByIndex(service.db, (sql) => readFacts(sql, 'BTC', { sightings, owners: new Map(), malleationKeys })))
    .payments;
const known = (...sent: Sent[]): Promise<readonly PaymentFacts[]> => factsOf(sent.map(({ facts }) => facts));
const entryKey = ({ facts }: Sent) => `dep:btc:${facts.txid}:0`;
const lose = (sent: Sent) => service.admin.query('delete from payments where txid = $1', [sent.facts.txid]);

test('a payment has a place where its height, its block and its date are all known', () => {
  const row = { id: 1n, txid: 'tx', vout: 0, amount: '5', twin_key: '', state: 'mined', gone_since: null } as unknown as RawFacts;
  const [height, block_hash, block_time] = [7, 'block', new Date(9)];
  expect(paymentFacts({ ...row, height, block_hash, block_time }).block).toEqual({ height: 7, hash: 'block', timeMs: 9 });
  const nothing = { height: null, block_hash: null, block_time: null };
  for (const some of [{}, { height }, { block_hash }, { block_time }, { height, block_hash }, { height, block_time }])
    expect(paymentFacts({ ...row, ...nothing, ...some }).block).toBeNull();
  expect(paymentFacts({ ...row, ...nothing, block_hash, block_time }).block).toBeNull();
  expect(paymentFacts({ ...row, ...nothing, gone_since: new Date(8) }).goneSinceMs).toBe(8);
});

test('what is known of payments comes in the order of their transactions and outputs, whichever was seen first', async () => {
  const sent = [];
  for (let n = 0; n < 3; n++) sent.push(await service.pay(transactionId, [5n, 6n, 7n]));
  await service.admin.query('update payments set vout = 10 - vout where transaction_id = $1', [transactionId]);
  const places = (await known(...sent.toReversed())).map(({ txid, vout }) => `${txid}:${vout}`);
  const txids = sent.map(({ facts }) => facts.txid).sort();
  expect(places).toEqual(txids.flatMap((txid) => [8, 9, 10].map((vout) => `${txid}:${vout}`)));
  const keys = (await known(...sent)).map(({ malleationKey }) => malleationKey);
  // by these keys alone, under another id than the one that was seen, they are found one by one
  expect((await factsOf([], keys.toReversed())).map(({ txid, vout }) => `${txid}:${vout}`)).toEqual(places);
  for (const one of sent) await service.evict(one);
});

test('of a double spend it is known whether it is in a block', async () => {
  const sent = await service.pay(transactionId, 5n);
  const rival = service.spend(hash(), sent.facts.inputs);
  await service.mine();
  expect(await known(sent)).toMatchObject([{ state: 'conflicted', conflictTxid: rival.facts.txid, conflictMined: true }]);
  await service.admin.query('update conflicting_transactions set height = null where txid = $1', [rival.facts.txid]);
  expect(await known(sent)).toMatchObject([{ conflictMined: false }]);
});

async function untilSomeoneWaits(): Promise<void> {
  const text = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  while ((await other.query(text)).rows[0].n === 0);
}

const WRITES: [what: string, write: (sql: Sql, rows: readonly PaymentFacts[]) => Promise<void>][] = [
  ['that get new facts', updatePayments],
  [
    'that leave their places',
    (sql, rows) =>
      leavePlaces(
        sql,
        rows.map(({ id }) => id),
      ),
  ],
  [
    'that a reorganisation removes',
    (sql, rows) => {
      const [{ height }] = rows.map(({ block }) => block) as [PlaceOfBlock];
      return takeBackAbove(sql, 'BTC', { height: height - 1, oldTip: height, newTip: height, atMs: service.now() });
    },
  ],
];
test.each(WRITES)(
  'payments %s are locked in the order of their ids, as the judge does, however the rows lie',
  async (_, write) => {
    const sent = await service.pay(transactionId, [5n, 6n]);
    await service.mine();
    const [first, second] = (await known(sent)) as [PaymentFacts, PaymentFacts];
    expect(first.id).toBeLessThan(second.id);
    // written anew, its row lies behind the other one
    await other.query('update payments set spent = spent where id = $1', [first.id]);
    await other.query('begin');
    await other.query('select 1 from payments where id = $1 for update', [first.id]);
    const writing = service.db.transaction(async (sql) => {
      // an index happens to be in their order; a planner without one is not
      for (const way of ['indexscan', 'bitmapscan']) await sql.query({ text: `set local enable_${way} = off` });
      await write(sql, [second, first]);
    });
    await untilSomeoneWaits();
    await other.query('select 1 from payments where id = $1 for update nowait', [second.id]);
    await other.query('commit');
    await writing;
  },
);

test('more payments than one statement takes leave their places for places of their own', async () => {
  const count = 10_001;
  const txid = hash();
  const { rows } = await service.admin.query(
    `insert into payments (currency, transaction_id, txid, vout, amount, twin_key, state, seen_at, caught_up_at, found_mined)
       select 'BTC', $1, $2, n, 546, '', 'mempool', now(), now(), false from generate_series(1, $3::integer) as n returning id`,
    [transactionId, txid, count],
  );
  await leavePlaces(
    service.db,
    rows.map(({ id }) => BigInt(id)),
  );
  const left = await service.admin.query('select count(*)::integer as n from payments where txid = $1 and vout < 0', [txid]);
  expect(left.rows).toEqual([{ n: count }]);
  await service.admin.query('delete from payments where txid = $1', [txid]);
});

test('a new payment of a block is written with its block', async () => {
  const block = { height: 7, hash: hash(), timeMs: 9_000 };
  const txid = hash();
  const row = { transactionId, txid, vout: 0, amount: 5n, malleationKey: '', state: 'mined', block, lastHeight: 7 } as const;
  await insertPayments(service.db, 'BTC', [{ ...row, coinbase: false, seenAtMs: 9_000, caughtUpAtMs: 9_000 }]);
  expect(await factsOf([{ txid, coinbase: false, inputs: [], outputs: [], spends: [] }])).toMatchObject([row]);
});

test('a payment whose row was lost after it was booked is not written as a new one', async () => {
  const sent = await service.pay(transactionId, 50_000n);
  await service.mine();
  await service.judge();
  const [payment] = await known(sent);
  await lose(sent);
  const row = { ...(payment as PaymentFacts), coinbase: false, seenAtMs: 0, caughtUpAtMs: 0 };
  await insertPayments(service.db, 'BTC', [row, { ...row, vout: 1 }]);
  expect(await known(sent)).toMatchObject([{ vout: 1 }]);
});

test('of a block’s outputs those are missing that pay us and are not recorded in it', async () => {
  const sent = await service.pay(transactionId, 5n);
  await service.mine();
  const [{ block }] = (await known(sent)) as [PaymentFacts];
  const { txid } = sent.facts;
  const missing = (blockHash: string, amountMinor: bigint, vout = 0) =>
    missingPayments(service.db, 'BTC', { blockHash, outputs: [{ txid, vout, script, amountMinor }] });
  expect(await missing(block?.hash as string, 5n)).toEqual([]);
  expect(await missing(hash(), 5n)).toEqual([{ txid, vout: 0, transactionId, entry: null }]);
  expect(await missing(block?.hash as string, 0n, 1)).toEqual([]);
  expect(await missing(block?.hash as string, 1n, 1)).toEqual([{ txid, vout: 1, transactionId, entry: null }]);
});

test('a missing output is told with what is booked of it, or may be: a payment that has no row any more', async () => {
  const sent = await service.pay(transactionId, 50_000n);
  await service.mine();
  await service.judge();
  const entryOf = async (txid: string) => {
    const outputs = [{ txid, vout: 0, script, amountMinor: 50_000n }];
    return (await missingPayments(service.db, 'BTC', { blockHash: hash(), outputs })).map(({ entry }) => entry);
  };
  expect(await entryOf(hash())).toEqual([null]);
  await lose(sent);
  expect(await entryOf(sent.facts.txid)).toEqual([entryKey(sent)]);
  expect(await entryOf(hash())).toEqual([entryKey(sent)]);
});
