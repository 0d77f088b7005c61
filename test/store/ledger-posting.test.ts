// The ledger's only write path, called as the service's role on a real database: balanced or not at all, once per key, never below zero. And
// what is locked and read of it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  balanceEntries,
  isBalanceEntry,
  lockBalances,
  lockFreeBalances,
  postEntries,
  readAvailable,
} from '../../src/store/ledger/ledger.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from '../support/postgres.ts';

let base: Awaited<ReturnType<typeof freshDatabase>>;
beforeAll(async () => {
  base = await freshDatabase();
});
afterAll(() => base.drop());

type Line = { a: string; v: string };
const deposit = (amount: bigint, merchant = 1): Line[] => [
  { a: 'asset:chain:BTC', v: String(amount) },
  { a: `merchant:${merchant}:available:BTC`, v: String(-amount) },
];

async function post(db: Pick<Database, 'query'>, key: string, lines: Line[]): Promise<{ entry_id: bigint; replayed: boolean }> {
  const { rows } = await db.query<{ entry_id: bigint; replayed: boolean }>({
    name: 'test-post',
    text: 'select * from ledger.post($1, $2, $3, now())',
    values: [key, 'deposit', JSON.stringify(lines)],
  });
  return rows[0]!;
}

async function balance(code: string): Promise<string | undefined> {
  const { rows } = await base.db.query<{ amount: string }>({
    text: 'select amount from ledger.account_balance where code = $1',
    values: [code],
  });
  return rows[0]?.amount;
}

test('an entry moves both balances, with the balance after it on the line of the locked account', async () => {
  await post(base.db, 'dep:one', deposit(100n, 7));
  expect(await balance('merchant:7:available:BTC')).toBe('100');
  const { rows } = await base.db.query({
    text: "select p.balance_after from ledger.posting p join ledger.account a on a.id = p.account_id where a.code = 'merchant:7:available:BTC'",
  });
  expect(rows).toEqual([{ balance_after: '100' }]);
});

test('the same key with the same body is a replay, with another body an error', async () => {
  const first = await post(base.db, 'dep:two', deposit(5n, 8));
  expect(await post(base.db, 'dep:two', deposit(5n, 8))).toEqual({ entry_id: first.entry_id, replayed: true });
  await expect(post(base.db, 'dep:two', deposit(6n, 8))).rejects.toMatchObject({ code: '23505' });
  expect(await balance('merchant:8:available:BTC')).toBe('5');
});

test('an unbalanced entry, one with a single line, and one that overdraws are refused and leave nothing', async () => {
  await expect(
    post(base.db, 'bad:1', [
      { a: 'asset:chain:BTC', v: '3' },
      { a: 'merchant:9:available:BTC', v: '-2' },
    ]),
  ).rejects.toMatchObject({ code: '23514' });
  await expect(post(base.db, 'bad:2', [{ a: 'asset:chain:BTC', v: '3' }])).rejects.toMatchObject({ code: '23514' });
  await expect(post(base.db, 'bad:3', deposit(-1n, 9))).rejects.toMatchObject({ code: '23514', constraint: 'no_overdraft' });
  await expect(
    post(base.db, 'bad:4', [
      { a: 'nonsense', v: '1' },
      { a: 'asset:chain:BTC', v: '-1' },
    ]),
  ).rejects.toMatchObject({ code: '23503' });
  expect(await balance('merchant:9:available:BTC')).toBeUndefined();
});

test('the service’s role can neither write the tables nor change what is written', async () => {
  for (const text of [
    "insert into ledger.entry (kind, key, body_hash, created_at) values ('deposit', 'x:y', '', now())",
    'update ledger.balance set amount = 5',
    'update ledger.posting set amount = 5',
    'delete from ledger.entry',
    "select ledger.account_id('merchant:1:available:BTC')",
    "update events set status = 'x'",
    'delete from events',
  ]) {
    await expect(base.db.query({ text }), text).rejects.toMatchObject({ code: '42501' });
  }
});

test('the roll-up moves the service’s sums without changing any balance', async () => {
  const before = await balance('asset:chain:BTC');
  const { rows } = await base.db.query<{ n: number }>({ text: 'select ledger.roll_up(1000) as n' });
  expect(rows[0]!.n).toBeGreaterThan(0);
  expect(await balance('asset:chain:BTC')).toBe(before);
});

test('a thousand parallel holds against a balance of a hundred: a hundred succeed', async () => {
  await post(base.db, 'dep:many', deposit(100n, 20));
  const results = await Promise.allSettled(
    Array.from({ length: 1000 }, (_, n) =>
      post(base.db, `hold:${n}`, [
        { a: 'merchant:20:available:BTC', v: '1' },
        { a: 'merchant:20:held:BTC', v: '-1' },
      ]),
    ),
  );
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(100);
  expect(await balance('merchant:20:available:BTC')).toBe('0');
  expect(await balance('merchant:20:held:BTC')).toBe('100');
});

test('entries that touch the same accounts in opposite order do not lock each other out', async () => {
  await post(base.db, 'dep:a', deposit(1000n, 30));
  await post(base.db, 'dep:b', deposit(1000n, 31));
  const move = (from: number, to: number, n: number): Promise<unknown> =>
    post(base.db, `move:${from}:${n}`, [
      { a: `merchant:${from}:available:BTC`, v: '1' },
      { a: `merchant:${to}:available:BTC`, v: '-1' },
    ]);
  await Promise.all(Array.from({ length: 200 }, (_, n) => (n % 2 === 0 ? move(30, 31, n) : move(31, 30, n))));
  expect(await balance('merchant:30:available:BTC')).toBe('1000');
});

const NOTHING = { available: 0n, receivable: 0n };

test('the locked balances are those of the merchant in each currency, nothing where nothing was booked', async () => {
  await post(base.db, 'dep:c', deposit(9n, 40));
  await post(base.db, 'owed:c', [
    { a: 'asset:receivable:merchant:40:BTC', v: '3' },
    { a: 'merchant:40:available:BTC', v: '-3' },
  ]);
  await post(base.db, 'dep:d', deposit(5n, 41));
  const locked = await base.db.transaction((sql) => lockBalances(sql, 40n, ['BTC', 'LTC']));
  expect([...locked]).toEqual([
    ['BTC', { available: 12n, receivable: 3n }],
    ['LTC', NOTHING],
  ]);
  expect((await readAvailable(base.db, 40n)).get('BTC')).toBe(12n);
});

/** Which of these accounts no other session has locked. */
async function free(...codes: string[]): Promise<string[]> {
  const { rows } = await base.db.query<{ code: string }>({
    text: 'select code from ledger.lock_free_balances($1) order by 1',
    values: [codes],
  });
  return rows.map(({ code }) => code);
}

test('what payouts hold is locked with the balance, in dollars where that is asked for', async () => {
  const accounts = ['merchant:42:available:BTC', 'merchant:42:held:BTC', 'merchant:42:held:USD'];
  expect(await free(...accounts)).toEqual(accounts);
  await base.db.transaction(async (sql) => {
    await lockBalances(sql, 42n, ['BTC']);
    expect(await free(...accounts)).toEqual(['merchant:42:held:USD']);
  });
  await base.db.transaction(async (sql) => {
    await lockBalances(sql, 42n, ['BTC'], { heldDollars: true });
    expect(await free(...accounts)).toEqual([]);
  });
});

test('of several merchants those are left out of whom another session has locked a single row', async () => {
  await post(base.db, 'dep:e', deposit(5n, 43));
  await post(base.db, 'dep:f', deposit(6n, 44));
  const wanted = new Map([
    [43n, ['BTC', 'LTC'] as const],
    [44n, ['BTC'] as const],
  ]);
  const all = () => base.db.transaction((sql) => lockFreeBalances(sql, wanted));
  expect([...(await all()).keys()]).toEqual([43n, 44n]);
  await base.db.transaction(async (sql) => {
    await sql.query({ text: `select ledger.lock_balances('{asset:receivable:merchant:43:LTC}')` });
    expect(await all()).toEqual(new Map([[44n, new Map([['BTC', { available: 6n, receivable: 0n }]])]]));
  });
  expect((await base.db.transaction((sql) => lockFreeBalances(sql, new Map([[43n, ['BTC']]])))).size).toBe(1);
});

test('a list of a balance’s entries shows one more than it may, each with what it belongs to', async () => {
  const entries = [1n, 2n, 3n, 4n].map((amount) => ({
    entry: {
      key: `list:${amount}`,
      kind: 'deposit',
      postings: deposit(amount, 45).map(({ a, v }) => ({ account: a, amount: BigInt(v) })),
      parts: [],
    },
    transactionId: `txn_${amount}`,
    ...(amount === 4n ? { payoutId: 'pay_4' } : {}),
    atMs: Date.UTC(2026, 0, 1),
  }));
  await postEntries(base.db, entries);
  const page = { currency: null, limit: 2, beforeEntryId: null };
  const list = await balanceEntries(base.db, 45n, page);
  expect(
    list.map(({ amount, balanceAfter, transactionId, payoutId }) => [amount, balanceAfter, transactionId, payoutId]),
  ).toEqual([
    [4n, 10n, 'txn_4', 'pay_4'],
    [3n, 6n, 'txn_3', null],
    [2n, 3n, 'txn_2', null],
  ]);
  const { entryId } = list[0]!;
  expect([await isBalanceEntry(base.db, 45n, entryId), await isBalanceEntry(base.db, 44n, entryId)]).toEqual([true, false]);
});

test('an entry of a transaction with thousands of payments keeps a part of each', async () => {
  const count = 2_001;
  const parts = Array.from({ length: count }, (_, n) => ({ key: `many:${n}`, amount: 1n, reversesKey: null }));
  const postings = deposit(BigInt(count), 46).map(({ a, v }) => ({ account: a, amount: BigInt(v) }));
  const entry = { key: 'many:all', kind: 'deposit', postings, parts };
  await base.db.transaction((sql) => postEntries(sql, [{ entry, transactionId: null, atMs: Date.UTC(2026, 0, 1) }]));
  const { rows } = await base.db.query<{ n: number }>({
    text: `select count(*)::int as n from ledger.part where key like 'many:%'`,
  });
  expect(rows).toEqual([{ n: count }]);
});
