// Transactions that plan by indexes (what watchers and judge do all the time): each statement is planned once in a session, and what was planned
// while the tables were empty reads none of them whole when they have grown. What is asked all the time outside of them is planned five times.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { TransactionFacts } from '../../src/core/ports.ts';
import { recordSightings } from '../../src/store/chain/sightings.ts';
import { newSpentOutpoints, openHorizon, packNewScripts } from '../../src/store/chain/watched.ts';
import { readWebhooks } from '../../src/store/deliveries/webhooks.ts';
import { connect, type Database, type Sql } from '../../src/store/postgres/connect.ts';
import { areRead } from '../../src/store/transactions/due.ts';
import { createJudgeDue } from '../../src/worker/judge-due.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const MANY = 20_000;
/** Rows that the recording of one payment may read. */
const FEW = 60;
const ROWS_READ = 'select sum(seq_tup_read + idx_tup_fetch)::int as n from pg_stat_xact_user_tables';
const SETTINGS = ['plan_cache_mode', 'enable_seqscan', 'enable_bitmapscan', 'jit'];
let service: ServiceOnDatabase;
let db: Database;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  db = connect({ url: service.url, role: 'bursar_app', maxConnections: 1, applicationName: 'test' });
});
afterEach(async () => {
  await db.close();
  await service.drop();
});

/** The horizon once it is past everything written so far: a transaction in the database of another test holds it back. */
async function horizonAbove(): Promise<string> {
  const { rows } = await service.admin.query<{ id: string }>('select pg_current_xact_id()::text as id');
  return vi.waitUntil(
    async () => {
      const horizon = await openHorizon(db);
      return BigInt(horizon) > BigInt(rows[0]!.id) ? horizon : null;
    },
    { timeout: 30_000, interval: 50 },
  ) as Promise<string>;
}

/** As many old ones as no test could make by itself. */
async function insertTransactions(): Promise<void> {
  await service.admin.query(
    `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, address, script,
         address_index, created_at, window_ends_at, tolerance_bps, late_payments, made_order)
       select 'txn_' || lpad(g::text, 22, '0'), $1, 'BTC', 'settled', 1000, 1000, 65000, now(), '[]', 'a' || g,
              decode(lpad(to_hex(g), 44, '0'), 'hex'), 1000000 + g, now(), now(), 100, 'accept', 1000000 + g from generate_series(1, $2::int) g`,
    [service.merchantId, MANY],
  );
}

async function settings(sql: Sql): Promise<readonly string[]> {
  const text = `select array(select current_setting(name) from unnest($1::text[]) with ordinality as s(name, n) order by n) as said`;
  return (await sql.query<{ said: string[] }>({ text, values: [SETTINGS] })).rows[0]!.said;
}

test('a statement is planned once, for whatever values; the session is as before when the transaction is over', async () => {
  const before = await settings(db);
  const ask = { name: 'one', text: 'select count(*) from transactions where id = any ($1)' };
  const counted = `select generic_plans::int, custom_plans::int from pg_prepared_statements where name = 'one'`;
  for (const failing of [false, true]) {
    const done = db.transaction(
      async (sql) => {
        expect(sql.isByIndex).toBe(true);
        expect(await settings(sql)).toEqual(['force_generic_plan', 'off', 'off', 'off']);
        for (let n = 0; n < 10; n++) await sql.query({ ...ask, values: [Array(n).fill('txn_1')] });
        if (failing) throw new Error('no');
        return (await sql.query({ text: counted })).rows;
      },
      { byIndex: true },
    );
    if (failing) await expect(done).rejects.toThrow('no');
    else expect(await done).toEqual([{ generic_plans: 10, custom_plans: 0 }]);
    expect(await settings(db)).toEqual(before);
  }
  expect(await db.transaction(async (sql) => [sql.isByIndex, await settings(sql)])).toEqual([false, before]);
});

test('recording a payment reads few rows, though its plans were made while there was none', { timeout: 60_000 }, async () => {
  const { transactionId } = await service.create();
  const { rows } = await service.admin.query(`select encode(script, 'hex') as script from transactions where id = $1`, [
    transactionId,
  ]);
  const hash = (): string => randomBytes(32).toString('hex');
  const payment = (): TransactionFacts => ({
    txid: hash(),
    coinbase: false,
    inputs: [{ txid: hash(), vout: 0 }],
    outputs: [{ vout: 0, script: rows[0].script, amountMinor: 1000n }],
    spends: [],
  });
  const read = (seen: TransactionFacts, height: number | null): Promise<number> =>
    db.transaction(
      async (sql) => {
        const block = height === null ? null : { height, hash: hash(), timeMs: service.now() };
        const at = { block, caughtUpAtMs: service.now(), atMs: service.now() };
        expect(await recordSightings(sql, 'BTC', at, [{ facts: seen, seenAtMs: service.now() }])).toBe(1);
        return (await sql.query<{ n: number }>({ text: ROWS_READ })).rows[0]!.n;
      },
      { byIndex: true },
    );
  const first = payment();
  await read(first, null);
  await read(first, 101);
  await service.admin.query('alter table payments set (autovacuum_enabled = false)');
  await service.admin.query('alter table payment_inputs set (autovacuum_enabled = false)');
  await service.admin.query(
    `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, height, block_hash, block_time, seen_at, caught_up_at, found_mined)
       select $1, 'BTC', 'x' || g, 0, 1000, decode(md5(g::text), 'hex'), 'mined', 90, 'h', now(), now(), now(), true from generate_series(1, $2::int) g`,
    [transactionId, MANY],
  );
  await service.admin.query(
    `insert into payment_inputs (currency, prev_txid, prev_vout, txid) select 'BTC', 'p' || g, 0, 'x' || g from generate_series(1, $1::int) g`,
    [MANY],
  );
  const next = payment();
  expect(await read(next, null)).toBeLessThan(FEW);
  expect(await read(next, 102)).toBeLessThan(FEW);
});

test('deciding reads few rows, though its plans were made while there was nothing', { timeout: 60_000 }, async () => {
  const { ctx, admin } = service;
  const reads: number[] = [];
  const counting: Database = {
    ...db,
    transaction: (work, options) =>
      db.transaction(async (sql) => {
        const result = await work(sql);
        expect(sql.isByIndex).toBe(true);
        reads.push((await sql.query<{ n: number }>({ text: ROWS_READ })).rows[0]!.n);
        return result;
      }, options),
  };
  const judge = createJudgeDue({ ...ctx, db: counting }, (_, error) => expect.unreachable(String(error)));
  async function live(): Promise<void> {
    const { transactionId, amountDue } = await service.create();
    await service.pay(transactionId, amountDue);
    while (await judge());
    await service.mine(3);
    while (await judge());
    expect((await service.path(transactionId)).at(-1)).toBe('succeeded');
  }
  await live();
  for (const table of ['transactions', 'payments', 'events'])
    await admin.query(`alter table ${table} set (autovacuum_enabled = false)`);
  await insertTransactions();
  await admin.query(
    `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, height, block_hash, block_time, seen_at, caught_up_at, found_mined)
       select 'txn_' || lpad(g::text, 22, '0'), 'BTC', 'x' || g, 0, 1000, decode(md5(g::text), 'hex'), 'mined', 90, 'h', now(), now(), now(), true
         from generate_series(1, $1::int) g`,
    [MANY],
  );
  reads.length = 0;
  await live();
  expect(reads.length).toBeGreaterThan(1);
  expect(Math.max(...reads)).toBeLessThan(5 * FEW);
});

test('what is new for a watcher is read without what is old, though it was planned while there was nothing', {
  timeout: 60_000,
}, async () => {
  const { transactionId } = await service.create();
  const look = (horizon: string) =>
    db.transaction(async (sql) => {
      const { outpoints, pack } = await newSpentOutpoints(sql, 'BTC', horizon);
      return { outpoints, pack, read: (await sql.query<{ n: number }>({ text: ROWS_READ })).rows[0]!.n };
    });
  for (let n = 0; n < 8; n++) await look(await openHorizon(db));
  const write = async (name: string, count: number): Promise<void> => {
    await service.admin.query(
      `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, height, block_hash, block_time, seen_at, caught_up_at, found_mined)
         select $1, 'BTC', $3 || g, 0, 1000, decode(md5($3 || g), 'hex'), 'mined', 90, 'h', now(), now(), now(), true from generate_series(1, $2::int) g`,
      [transactionId, count, name],
    );
    await service.admin.query(
      `insert into payment_inputs (currency, prev_txid, prev_vout, txid) select 'BTC', 'of ' || $2 || g, 0, $2 || g from generate_series(1, $1::int) g`,
      [count, name],
    );
  };
  for (const table of ['payments', 'payment_inputs'])
    await service.admin.query(`alter table ${table} set (autovacuum_enabled = false)`);
  await write('old', MANY);
  const horizon = await horizonAbove();
  await write('new', 2);
  const { outpoints, pack, read } = await look(horizon);
  expect(outpoints.map(({ txid }) => txid).sort()).toEqual(['of new1', 'of new2']);
  const { rows } = await service.admin.query('select script from transactions where id = $1', [transactionId]);
  expect(pack?.subarray(1)).toEqual(rows[0].script);
  expect(read).toBeLessThan(FEW);
});

test('new scripts are read without the old ones, though that was planned while there was none', { timeout: 60_000 }, async () => {
  const look = (horizon: string) =>
    db.transaction(async (sql) => {
      const { pack } = await packNewScripts(sql, horizon);
      return { pack, read: (await sql.query<{ n: number }>({ text: ROWS_READ })).rows[0]!.n };
    });
  for (let n = 0; n < 8; n++) await look(await openHorizon(db));
  await service.admin.query('alter table transactions set (autovacuum_enabled = false)');
  await insertTransactions();
  const horizon = await horizonAbove();
  const { transactionId } = await service.create();
  const { pack, read } = await look(horizon);
  const { rows } = await service.admin.query('select script from transactions where id = $1', [transactionId]);
  expect(pack?.subarray(1)).toEqual(rows[0].script);
  expect(read).toBeLessThan(FEW);
});

test('what is asked all the time is planned five times in a session, whatever it is asked for', async () => {
  for (let n = 0; n < 30; n++) {
    expect(await readWebhooks(db, [1n, 2n])).toEqual([]);
    expect(await areRead(db, [{ currencies: ['BTC'], sinceMs: 0 }])).toEqual([true]);
  }
  const text = `select name, generic_plans::int, custom_plans::int from pg_prepared_statements order by 1`;
  const planned = { generic_plans: 25, custom_plans: 5 };
  expect((await db.query({ text })).rows).toEqual(['are_read', 'read_webhooks'].map((name) => ({ name, ...planned })));
});
