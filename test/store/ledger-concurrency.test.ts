// The ledger under many writers at once, and against attempts to bypass its only write path: one entry per key, exact sums at every moment,
// nothing added to what is closed, no malformed number.

import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Part } from '../../src/core/judge/case.ts';
import { lockBalances, postEntries, rollUp } from '../../src/store/ledger/ledger.ts';
import { connect, type Database } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from '../support/postgres.ts';

let base: Awaited<ReturnType<typeof freshDatabase>>;
let many: Database;
let admin: pg.Pool;
beforeAll(async () => {
  base = await freshDatabase();
  many = connect({ url: base.url, role: 'bursar_app', maxConnections: 40, applicationName: 'test-many' });
  admin = new pg.Pool({ connectionString: base.url, max: 2 });
  admin.on('error', () => undefined); // its idle sessions end with the database
});
afterEach(async () => {
  expect(await offBalance()).toEqual([]);
});
afterAll(async () => {
  await many.close();
  await admin.end();
  await base.drop();
});

const at = Date.UTC(2026, 0, 1);
const entry = (key: string, lines: readonly (readonly [string, bigint])[], parts: readonly Part[] = []) => ({
  key,
  kind: 'deposit',
  postings: lines.map(([account, amount]) => ({ account, amount })),
  parts,
});
const postings = (entries: readonly ReturnType<typeof entry>[]) =>
  entries.map((one) => ({ entry: one, transactionId: null, atMs: at }));
const post = (...entries: ReturnType<typeof entry>[]) => postEntries(many, postings(entries));
const deposit = (key: string, merchant: number, amount: bigint, currency = 'BTC', reversesKey: string | null = null) =>
  entry(
    key,
    [
      [`asset:chain:${currency}`, amount],
      [`merchant:${merchant}:available:${currency}`, -amount],
    ],
    [{ key, amount, reversesKey }],
  );

async function balance(code: string): Promise<bigint> {
  const { rows } = await admin.query('select amount from ledger.account_balance where code = $1', [code]);
  return BigInt(rows[0]?.amount ?? 0);
}
/** Currencies whose accounts do not sum to zero (INV-4), seen in one statement. */
async function offBalance(): Promise<unknown[]> {
  const { rows } = await many.query({
    text: `select b.currency, sum(b.amount * a.normal_side) as off from ledger.account_balance b join ledger.account a on a.id = b.account_id
            group by b.currency having sum(b.amount * a.normal_side) <> 0`,
  });
  return rows;
}

describe('many writers', () => {
  test('two hundred posts of one key at once make one entry and one credit', async () => {
    const results = await Promise.allSettled(Array.from({ length: 200 }, () => post(deposit('dep:same', 1, 7n))));
    expect(results.every(({ status }) => status === 'fulfilled')).toBe(true);
    const { rows } = await admin.query(`select count(*)::int as n from ledger.entry where key = 'dep:same'`);
    expect([rows[0].n, await balance('merchant:1:available:BTC')]).toEqual([1, 7n]);
  });

  test('first posts of many merchants at once make each account once', async () => {
    await Promise.all(Array.from({ length: 100 }, (_, n) => post(deposit(`dep:new:${n}`, 100 + (n % 10), 1n))));
    for (let n = 0; n < 10; n++) expect(await balance(`merchant:${100 + n}:available:BTC`)).toBe(10n);
    const { rows } = await admin.query(
      `select count(*)::int as n from ledger.account where code like 'merchant:10_:available:BTC'`,
    );
    expect(rows[0].n).toBe(10);
  });

  test('the entries of an account follow each other in the order of their ids, from its first one on', async () => {
    for (let round = 0; round < 5; round++) {
      const merchant = 700 + round;
      await Promise.all(
        Array.from({ length: 30 }, (_, n) =>
          many.transaction(async (sql) => {
            if (n % 2 === 0) await lockBalances(sql, BigInt(merchant), ['BTC']);
            await postEntries(sql, postings([deposit(`dep:order:${round}:${n}`, merchant, BigInt(n + 1))]));
          }),
        ),
      );
      const { rows } = await admin.query(
        `select -p.amount as amount, p.balance_after from ledger.posting p join ledger.account a on a.id = p.account_id
          where a.code = $1 order by p.entry_id`,
        [`merchant:${merchant}:available:BTC`],
      );
      let sum = 0n;
      for (const row of rows) {
        sum += BigInt(row.amount);
        expect(BigInt(row.balance_after)).toBe(sum);
      }
    }
  });

  test('the service’s sums are exact at every moment, while entries come and roll-ups run', async () => {
    const before = await balance('asset:chain:BTC');
    let running = true;
    const seen: unknown[] = [];
    const watch = (async () => {
      while (running) seen.push(...(await offBalance()));
    })();
    const rolls = [0, 1, 2].map(async () => {
      let moved = 0;
      while (running) moved += await many.transaction((sql) => rollUp(sql, 50));
      return moved;
    });
    await Promise.all(Array.from({ length: 600 }, (_, n) => post(deposit(`dep:roll:${n}`, 200 + (n % 7), BigInt(n + 1)))));
    running = false;
    await watch;
    const moved = (await Promise.all(rolls)).reduce((a, b) => a + b, 0);
    while ((await rollUp(many, 500)) > 0);
    expect(moved).toBeGreaterThan(0);
    expect(seen).toEqual([]);
    expect(await balance('asset:chain:BTC')).toBe(before + 180_300n);
    const { rows } = await admin.query('select count(*)::int as n from ledger.unrolled');
    expect(rows[0].n).toBe(0);
  });

  test('whoever locks a balance sees all that was posted before, and others wait', async () => {
    await post(deposit('dep:locked', 300, 50n));
    const order: string[] = [];
    await many
      .transaction(async (sql) => {
        const balances = await lockBalances(sql, 300n, ['BTC']);
        expect(balances.get('BTC')).toEqual({ available: 50n, receivable: 0n });
        order.push('locked');
        const waiting = post(deposit('dep:waits', 300, 1n)).then(() => order.push('posted'));
        await untilSomeoneWaits();
        order.push('leaving');
        return { waiting };
      })
      .then(({ waiting }) => waiting);
    expect(order).toEqual(['locked', 'leaving', 'posted']);
    expect(await balance('merchant:300:available:BTC')).toBe(51n);
  });

  async function untilSomeoneWaits(): Promise<void> {
    for (let n = 0; n < 1_000; n++) {
      const { rows } = await admin.query(
        `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      );
      if (rows[0].n > 0) return;
    }
    throw new Error('nobody waits for the lock');
  }
});

describe('what the ledger refuses', () => {
  const refused = (entries: ReturnType<typeof entry>[], error: object) => expect(post(...entries)).rejects.toMatchObject(error);

  test('an entry that is balanced over two currencies together, but not in each', () =>
    refused(
      [
        entry('bad:fx', [
          ['asset:chain:BTC', 5n],
          ['merchant:1:available:LTC', -5n],
        ]),
      ],
      { code: '23514' },
    ));

  test('an account twice in one entry', () =>
    refused(
      [
        entry('bad:twice', [
          ['asset:chain:BTC', 5n],
          ['asset:chain:BTC', 5n],
          ['merchant:1:available:BTC', -10n],
        ]),
      ],
      { code: '23505' },
    ));

  test('a second entry of a batch that is refused takes the first one with it', async () => {
    await refused([deposit('ok:first', 400, 5n), deposit('bad:second', 400, -6n)], { constraint: 'no_overdraft' });
    const { rows } = await admin.query(`select 1 from ledger.entry where key = 'ok:first'`);
    expect(rows).toEqual([]);
  });

  test('a payment taken back twice, under whatever key, one that was never booked, and one that is booked in two entries', async () => {
    await post(deposit('dep:back', 401, 5n), deposit('dep:more', 401, 20n));
    await post(deposit('back:1', 401, -5n, 'BTC', 'dep:back'));
    await refused([deposit('back:2', 401, -5n, 'BTC', 'dep:back')], { code: '23505' });
    await refused([deposit('back:3', 401, -5n, 'BTC', 'dep:nowhere')], { code: '23503' });
    await post(deposit('dep:once', 401, 7n));
    await refused([{ ...deposit('dep:twice', 401, 7n), parts: [{ key: 'dep:once', amount: 7n, reversesKey: null }] }], {
      code: '23505',
    });
    expect(await balance('merchant:401:available:BTC')).toBe(27n);
  });

  test('parts that are not what their entry moves, and a part of an entry that is closed', async () => {
    const parts = [{ key: 'part:1', amount: 4n, reversesKey: null }];
    await refused([{ ...deposit('bad:parts', 405, 5n), parts }], {
      code: '23514',
      message: expect.stringContaining('the parts of'),
    });
    await post({ ...deposit('ok:no parts', 405, 5n), parts: [] });
    await expect(
      many.query({ text: `select ledger.post_parts('{ok:no parts}', '{part:late}', '{5}', '{null}')` }),
    ).rejects.toMatchObject({ code: '23514', message: expect.stringContaining('closed') });
    await expect(
      many.query({ text: `select ledger.post_parts('{nowhere}', '{part:nowhere}', '{5}', '{null}')` }),
    ).rejects.toMatchObject({ code: '23502' });
  });

  test.each(['0.5', 'NaN', 'Infinity', '-Infinity', '1e61', '0', '', 'x'])('the amount %j', async (amount) => {
    const lines = [
      { a: 'asset:chain:BTC', v: amount },
      { a: 'merchant:1:available:BTC', v: '-1' },
    ];
    await expect(
      many.query({
        text: 'select ledger.post($1, $2, $3, now())',
        values: [`bad:amount:${amount}`, 'deposit', JSON.stringify(lines)],
      }),
    ).rejects.toMatchObject({ code: expect.stringMatching(/^(22P02|22003|23514)$/) });
  });

  test('an ether amount of more than 64 bits is exact', async () => {
    const wei = 123_456_789_012_345_678_901_234_567_890n;
    await post(deposit('dep:eth:big', 402, wei, 'ETH'));
    expect(await balance('merchant:402:available:ETH')).toBe(wei);
  });

  test('even the owner of the database cannot rewrite, remove, or add to what is closed', async () => {
    await post(deposit('dep:closed', 403, 5n));
    const { rows } = await admin.query(`select id from ledger.entry where key = 'dep:closed'`);
    const { id } = rows[0];
    for (const text of [
      'update ledger.posting set amount = 6',
      'delete from ledger.posting',
      'truncate ledger.posting cascade',
      'update ledger.part set amount = 6',
      'delete from ledger.part',
      'truncate ledger.part cascade',
      'update ledger.entry set kind = $$other$$',
      'delete from ledger.entry',
      'truncate ledger.entry cascade',
      'truncate events',
    ])
      await expect(admin.query(text), text).rejects.toMatchObject({ code: '42501' });
    const other = `(select id from ledger.account where code = 'merchant:1:available:BTC')`;
    const add = (currency: string) =>
      admin.query(
        `insert into ledger.posting (entry_id, line, account_id, currency, amount) values (${id}, 9, ${other}, '${currency}', 1)`,
      );
    await expect(add('LTC')).rejects.toMatchObject({ code: '23503' });
    await expect(add('BTC')).rejects.toMatchObject({ code: '23514', message: expect.stringContaining('closed') });
    await expect(
      admin.query(`insert into ledger.entry (kind, key, body_hash, created_at) values ('deposit', 'empty:1', '', now())`),
    ).rejects.toMatchObject({ code: '23514', message: expect.stringContaining('0 postings') });
  });
});
