// What sightings do to payments, step by step on a real database: stale looks at the mempool, twins of several outputs, rivals that come and
// go, and the deep scan's mark after a reorganisation.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { CurrencyCode } from '../../src/core/currency.ts';
import { sortableId } from '../../src/core/ids.ts';
import type { TransactionFacts } from '../../src/core/ports.ts';
import {
  type BlockRow,
  beginCursor,
  CursorMoved,
  deleteBlocksAbove,
  insertBlocks,
  moveCursor,
  readCursor,
  setDeepHeight,
} from '../../src/store/chain/blocks.ts';
import { recordLocks } from '../../src/store/chain/payment-locks.ts';
import { compareWithMempool, recordMempoolChanges, recordSightings, takeBackAbove } from '../../src/store/chain/sightings.ts';
import { readUnmined } from '../../src/store/chain/unmined.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from '../support/postgres.ts';

const T0 = Date.UTC(2026, 0, 1);
let db: Database;
let drop: () => Promise<void>;
let merchant: bigint;
beforeEach(async () => {
  ({ db, drop } = await freshDatabase());
  const { rows } = await db.query<{ id: bigint }>({
    text: `insert into merchants (affiliate_id, email, business_name, created_at) values ('a', 'a@example.com', 'A', now()) returning id`,
  });
  merchant = (rows[0] as { id: bigint }).id;
  await beginCursor(db, 'BTC', block(100), T0);
});
afterEach(() => drop?.());

const hash = (text: string): string => Buffer.from(text.padEnd(32, '.')).toString('hex');
const block = (height: number, branch = 'a'): BlockRow => ({
  height,
  hash: hash(`${branch}${height}`),
  previousHash: hash(`${branch}${height - 1}`),
  timeMs: T0 + height * 600_000,
});
async function owe(currency = 'BTC'): Promise<{ id: string; script: string }> {
  const id = sortableId('txn_', T0, randomBytes(10));
  const script = Buffer.concat([Buffer.from('0014', 'hex'), randomBytes(20)]);
  await db.query({
    text: `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments,
                                     address, script, created_at, window_ends_at)
             values ($1, $2, $4, 'started', 1000, 100000, 1, now(), '[]', 100, 'accept', $1, $3, now(), now())`,
    values: [id, merchant, script, currency],
  });
  return { id, script: script.toString('hex') };
}
const facts = (
  name: string,
  spent: readonly string[],
  outputs: readonly (readonly [string, bigint])[] = [],
): TransactionFacts => ({
  txid: hash(name),
  coinbase: false,
  inputs: spent.map((output) => ({ txid: hash(output), vout: 0 })),
  outputs: outputs.map(([script, amountMinor], vout) => ({ vout, script, amountMinor })),
  spends: spent.map((output) => ({ txid: hash(output), vout: 0 })),
});
const record = (seen: readonly TransactionFacts[], where: BlockRow | null, atMs = T0, currency: CurrencyCode = 'BTC') =>
  db.transaction((sql) =>
    recordSightings(
      sql,
      currency,
      { block: where, caughtUpAtMs: T0, atMs },
      seen.map((one) => ({ facts: one, seenAtMs: atMs })),
    ),
  );
const compare = (mempool: readonly string[], atMs = T0) =>
  db.transaction(async (sql) =>
    recordMempoolChanges(
      sql,
      'BTC',
      compareWithMempool(
        await readUnmined(sql, 'BTC', 0, { txids: new Set(mempool.map(hash)), changed: null }),
        new Set(mempool.map(hash)),
        atMs,
      ),
    ),
  );
async function payments(id: string): Promise<unknown[]> {
  const { rows } = await db.query({
    text: `select txid, vout, amount, state, height, conflict_txid from payments where transaction_id = $1 order by id`,
    values: [id],
  });
  return rows;
}

test('a look at the mempool that is older than the chain unmakes nothing', async () => {
  const { id, script } = await owe();
  const paid = facts('p', ['c'], [[script, 5n]]);
  await record([paid], null);
  await record([paid], block(101));
  await record([paid], null);
  await record([facts('rival', ['c'])], null);
  expect(await payments(id)).toMatchObject([{ state: 'mined', height: 101, conflict_txid: null }]);
  const other = await owe();
  const lost = facts('q', ['d'], [[other.script, 5n]]);
  await record([lost], null);
  await record([facts('winner', ['d'])], block(102));
  await record([lost], null);
  await record([facts('late rival', ['d'])], null);
  expect(await payments(other.id)).toMatchObject([{ state: 'conflicted', conflict_txid: hash('winner') }]);
});

test('rivals come and go: the payment follows the one that is there', async () => {
  const { id, script } = await owe();
  await record([facts('p', ['c', 'd'], [[script, 5n]])], null);
  await record([facts('r1', ['c'])], null);
  await compare(['r1']);
  expect(await payments(id)).toMatchObject([{ state: 'conflicted', conflict_txid: hash('r1') }]);
  await record([facts('r2', ['c', 'e'])], null);
  await compare(['r2']);
  expect(await payments(id)).toMatchObject([{ state: 'conflicted', conflict_txid: hash('r2') }]);
  await compare([]);
  expect(await payments(id)).toMatchObject([{ state: 'gone', conflict_txid: null }]);
  await record([facts('p', ['c', 'd'], [[script, 5n]])], null);
  await record([facts('r3', ['d'])], block(101));
  await compare([]);
  expect(await payments(id)).toMatchObject([{ state: 'conflicted', conflict_txid: hash('r3') }]);
  await db.transaction((sql) => takeBackAbove(sql, 'BTC', { height: 100, oldTip: 101, newTip: 101, atMs: T0 }));
  await compare(['r3']);
  expect(await payments(id)).toMatchObject([{ state: 'conflicted', conflict_txid: hash('r3') }]);
  await compare(['p']);
  expect(await payments(id)).toMatchObject([{ state: 'mempool', conflict_txid: null }]);
});

test('a twin takes over each of several outputs once, in any order of inputs, and goes back', async () => {
  const { id, script } = await owe();
  const outputs = [
    [script, 5n],
    [script, 5n],
    [script, 7n],
  ] as const;
  await record([facts('p', ['c', 'd'], outputs)], null);
  await record([facts('twin', ['d', 'c'], outputs)], block(101));
  const rows = await payments(id);
  expect(rows).toMatchObject([
    { txid: hash('twin'), vout: 0, amount: '5', state: 'mined' },
    { txid: hash('twin'), vout: 1, amount: '5', state: 'mined' },
    { txid: hash('twin'), vout: 2, amount: '7', state: 'mined' },
  ]);
  await db.transaction((sql) => takeBackAbove(sql, 'BTC', { height: 100, oldTip: 101, newTip: 101, atMs: T0 }));
  await record([facts('p', ['c', 'd'], outputs)], null);
  expect(await payments(id)).toMatchObject([{ txid: hash('p') }, { txid: hash('p') }, { txid: hash('p') }]);
});

test('a replacement that pays one of two the same is that one’s payment, and a new one for the other', async () => {
  const [one, two] = [await owe(), await owe()];
  const pay = (name: string, toOne: bigint, toTwo: bigint) => {
    const outputs: [string, bigint][] = [
      [one.script, toOne],
      [two.script, toTwo],
    ];
    return record([facts(name, ['c'], outputs)], null);
  };
  await pay('p', 5n, 6n);
  await pay('q', 5n, 4n);
  expect(await payments(one.id)).toMatchObject([{ txid: hash('q'), state: 'mempool', amount: '5' }]);
  expect(await payments(two.id)).toMatchObject([
    { txid: hash('p'), state: 'conflicted', conflict_txid: hash('q'), amount: '6' },
    { txid: hash('q'), state: 'mempool', amount: '4' },
  ]);
});

test('two payments that another block shows in each other’s place in their transaction stay what they are', async () => {
  const [one, other] = [await owe('USDT'), await owe('USDT')];
  const logs = [[one.script, 5n] as const, [other.script, 6n] as const];
  await record([facts('p', ['c'], logs)], block(101), T0, 'USDT');
  await record([facts('p', ['c'], logs.toReversed())], block(101, 'b'), T0, 'USDT');
  expect(await payments(one.id)).toMatchObject([{ vout: 1, amount: '5', state: 'mined' }]);
  expect(await payments(other.id)).toMatchObject([{ vout: 0, amount: '6', state: 'mined' }]);
});

test('an output of nothing is no payment; coinbases of the same amount are payments of their own', async () => {
  const { id, script } = await owe();
  await record([facts('p', ['c'], [[script, 0n]])], block(101));
  expect(await payments(id)).toEqual([]);
  const coinbase = (name: string): TransactionFacts => ({ ...facts(name, [], [[script, 9n]]), coinbase: true });
  await record([coinbase('m1')], block(102));
  await record([coinbase('m2')], block(103));
  expect(await payments(id)).toMatchObject([{ txid: hash('m1') }, { txid: hash('m2') }]);
});

test('of two watchers with the same cursor one loses, and writes nothing', async () => {
  const cursor = (await readCursor(db, 'BTC'))!;
  await db.transaction((sql) => moveCursor(sql, 'BTC', cursor, block(101), T0));
  const late = db.transaction(async (sql) => {
    await insertBlocks(sql, 'BTC', [block(101, 'b')]);
    await moveCursor(sql, 'BTC', cursor, block(101, 'b'), T0);
  });
  await expect(late).rejects.toThrow(CursorMoved);
  expect(await readCursor(db, 'BTC')).toMatchObject({ height: 101, hash: block(101).hash, epoch: 1n });
});

test('the deep scan begins again where the branches part', async () => {
  for (const height of [101, 102]) {
    const cursor = (await readCursor(db, 'BTC'))!;
    await db.transaction(async (sql) => {
      await moveCursor(sql, 'BTC', cursor, block(height), T0);
      await insertBlocks(sql, 'BTC', [block(height)]);
    });
    expect(await setDeepHeight(db, 'BTC', [block(height, 'b')])).toBe(false);
    expect(await setDeepHeight(db, 'BTC', [block(height)])).toBe(true);
  }
  const cursor = (await readCursor(db, 'BTC'))!;
  await db.transaction(async (sql) => {
    await moveCursor(sql, 'BTC', cursor, block(103, 'b'), T0);
    await deleteBlocksAbove(sql, 'BTC', 100);
  });
  expect(await readCursor(db, 'BTC')).toMatchObject({ height: 103, deepHeight: 100 });
});

test('a lock belongs to the txid and the place where our node reported it: what leaves and comes back has none', async () => {
  const { id, script } = await owe();
  const paid = facts('p', ['c'], [[script, 5n]]);
  const twin = facts('twin', ['c'], [[script, 5n]]);
  const locks = async () =>
    (await db.query<{ lock: string | null }>({ text: 'select lock from payments' })).rows.map((row) => row.lock);
  async function lock(name: string, kind: 'instantsend' | 'chainlock'): Promise<void> {
    const { rows } = await db.query<{ id: bigint }>({ text: 'select id from payments' });
    await recordLocks(db, [{ id: (rows[0] as { id: bigint }).id, transactionId: id, txid: hash(name), lock: kind }]);
    expect(await locks()).toEqual([kind]);
  }
  await record([paid], null);
  await lock('p', 'instantsend');
  await record([paid], null);
  expect(await locks()).toEqual(['instantsend']);
  await compare([]);
  expect(await locks()).toEqual([null]);
  await compare(['p']);
  expect(await locks()).toEqual([null]);
  await lock('p', 'instantsend');
  await record([facts('rival', ['c'])], null);
  await compare(['p']);
  expect(await locks()).toEqual([null]);
  await lock('p', 'instantsend');
  await record([twin], null);
  expect(await locks()).toEqual([null]);
  await lock('twin', 'instantsend');
  // the very same transaction in a block: our quorums' word is about it, wherever it is
  await record([twin], block(101));
  expect(await locks()).toEqual(['instantsend']);
  await lock('twin', 'chainlock');
  await record([twin], block(101));
  expect(await locks()).toEqual(['chainlock']);
  await record([twin], block(101, 'b'));
  expect(await locks()).toEqual([null]);
  await lock('twin', 'chainlock');
  await db.transaction((sql) => takeBackAbove(sql, 'BTC', { height: 100, oldTip: 101, newTip: 101, atMs: T0 }));
  expect(await locks()).toEqual([null]);
  await expect(lock('twin', 'chainlock')).rejects.toThrow(); // it is nowhere now
  await record([twin], block(102));
  expect(await locks()).toEqual([null]);
});

test('a payment that leaves the mempool was last seen below the tip of then', async () => {
  const { id, script } = await owe();
  await record([facts('p', ['c'], [[script, 5n]])], null);
  await db.transaction(async (sql) =>
    recordMempoolChanges(
      sql,
      'BTC',
      compareWithMempool(await readUnmined(sql, 'BTC', 0, { txids: new Set(), changed: null }), new Set(), T0, 100),
    ),
  );
  expect(await payments(id)).toMatchObject([{ state: 'gone', height: null }]);
  const { rows } = await db.query({ text: 'select last_height from payments' });
  expect(rows).toEqual([{ last_height: 100 }]);
});

test('what is seen again where it was seen before changes nothing, and wakes nobody', async () => {
  const { script } = await owe();
  const paid = facts('p', ['c'], [[script, 5n]]);
  expect(await record([paid], null)).toBe(1);
  expect(await record([paid], null)).toBe(0);
  expect(await record([paid], block(101))).toBe(1);
  expect(await record([paid], block(101))).toBe(0);
  expect(await record([paid], block(101, 'b'))).toBe(1);
});
