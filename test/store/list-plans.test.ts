// What a list, and a search by label, reads of a merchant with very many transactions and entries: about what it shows, whatever the filter.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { balanceEntries } from '../../src/store/ledger/ledger.ts';
import { connect, type Database } from '../../src/store/postgres/connect.ts';
import { LISTED_WITHIN_MS, listTransactionRows } from '../../src/store/transactions/lists.ts';
import { findTransactions } from '../../src/store/transactions/lookup.ts';
import { listReviews } from '../../src/store/transactions/reviews.ts';
import { filledDatabase } from '../support/filled-database.ts';
import { touchedPages } from '../support/touched-pages.ts';

const MANY = 60_000;
/** Pages of 8 KB: a row of each of 20, its index, and what a check reads of the chains. */
const FEW = 600;
let filled: Awaited<ReturnType<typeof filledDatabase>>;
let db: Database;
beforeAll(async () => {
  filled = await filledDatabase(async (sql) => {
    await sql.query({
      text: `insert into merchants (id, affiliate_id, email, business_name, created_at) overriding system value
             select n, 'aff_' || n, 'a', 'b', now() from generate_series(1, 2) n`,
    });
    await sql.query({
      text: `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, address, label,
               address_index, created_at, window_ends_at, tolerance_bps, late_payments, made_order)
             select 'txn_' || lpad(g::text, 22, '0'), 1 + g % 2, case when g % 1000 < 2 then 'LTC' else 'BTC' end, case when g % 5000 < 2 then 'review' else 'settled' end,
                    1000, 1000, 65000, now(), '[]', 'a' || g, 'order-' || g, g, now() - g * interval '1 s', now(), 100, 'accept', g
               from generate_series(1, $1::int) g`,
      values: [MANY],
    });
    await sql.query({
      text: `insert into ledger.account (id, code, merchant_id, kind, currency, normal_side, locked) overriding system value
             select 900000 + n, 'merchant:1:available:' || c, 1, 'available', c, -1, true from unnest('{BTC,LTC}'::text[]) with ordinality u (c, n)`,
    });
    await sql.query({
      text: `insert into ledger.entry (id, kind, key, body_hash, created_at) overriding system value
             select 1000000 + g, 'deposit', 'key' || g, '\\x00', now() from generate_series(1, $1::int) g`,
      values: [MANY],
    });
    await sql.query({
      text: `insert into ledger.posting (entry_id, line, account_id, currency, amount, balance_after)
             select 1000000 + g, 1, case when g % 1000 = 0 then 900002 else 900001 end, case when g % 1000 = 0 then 'LTC' else 'BTC' end, -1, g
               from generate_series(1, $1::int) g`,
      values: [MANY],
    });
  });
  db = filled.db;
});
afterAll(() => filled?.drop());

const NONE = { startingAfter: null, status: null, currency: null, label: null, createdGteMs: null, createdLtMs: null };
const FILTERS = [
  ['nothing', {}],
  ['a label that is nowhere', { label: 'nowhere' }],
  ['a label', { label: 'order-3000' }],
  ['a label and a status', { label: 'order-3000', status: 'settled' }],
  ['a status that few have', { status: 'review' }],
  ['a status that none has', { status: 'pending' }],
  ['a currency that few have', { currency: 'LTC' }],
  ['a currency that none has', { currency: 'DOGE' }],
  ['a status and a currency', { status: 'review', currency: 'LTC' }],
  ['a status, far down', { status: 'review', startingAfter: `txn_${'20001'.padStart(22, '0')}` }],
  ['a currency, far down', { currency: 'BTC', startingAfter: `txn_${'50001'.padStart(22, '0')}` }],
  ['a currency, of a time', { currency: 'LTC', createdLtMs: Date.now() - 20_000_000 }],
] as const;
test.each(FILTERS)('a list filtered by %s', async (_, wishes) => {
  expect(await touchedPages(db, (on) => listTransactionRows(on, { merchantId: 1n, limit: 20, ...NONE, ...wishes }))).toBeLessThan(
    FEW,
  );
});

test('what waits for a decision, over all merchants', async () => {
  const reviews = await listReviews(db, { declined: false, limit: 200 });
  expect(reviews.map(({ transactionId }) => transactionId)).toEqual(
    Array.from({ length: MANY / 2_500 }, (_, i) => 5_000 * Math.floor(i / 2) + (i % 2))
      .filter((g) => g > 0)
      .concat(MANY)
      .sort((a, b) => b - a)
      .map((g) => `txn_${String(g).padStart(22, '0')}`),
  );
  expect(await touchedPages(db, (on) => listReviews(on, { declined: false, limit: 200 }))).toBeLessThan(FEW);
});

test('a list by status or by currency is in the same order as one without, page by page', async () => {
  for (const wish of [{ status: 'settled' }, { currency: 'BTC' }, { currency: 'LTC' }, { status: 'review' }] as const) {
    const found: string[] = [];
    for (let after: string | null = null; found.length < 60; ) {
      const rows = await listTransactionRows(db, { merchantId: 1n, limit: 7, ...NONE, ...wish, startingAfter: after });
      found.push(...rows.slice(0, 7).map(({ id }) => id));
      after = found.at(-1) ?? null;
      if (rows.length <= 7) break;
    }
    const [[column, value]] = Object.entries(wish) as [[string, string]];
    const { rows } = await db.query<{ id: string }>({
      text: `select id from transactions where merchant_id = 1 and ${column} = $1 order by created_at desc, id desc limit $2`,
      values: [value, found.length],
    });
    expect(found.length).toBeGreaterThan(5);
    expect(found).toEqual(rows.map(({ id }) => id));
  }
});

test('the entries of a balance, of all currencies and of one, also far down', async () => {
  for (const currency of [null, 'BTC', 'LTC'] as const) {
    for (const beforeEntryId of [null, 1_030_000n]) {
      expect(await touchedPages(db, (on) => balanceEntries(on, 1n, { currency, limit: 20, beforeEntryId }))).toBeLessThan(FEW);
    }
  }
});

test('a search by label, also on a session that may read tables whole', async () => {
  expect((await findTransactions(filled.base.db, 'order-4711', 5)).length).toBe(1);
  const whole = db;
  db = filled.base.db;
  try {
    expect(await touchedPages(db, (on) => findTransactions(on, 'order-4711', 5))).toBeLessThan(FEW);
  } finally {
    db = whole;
  }
  expect((await findTransactions(filled.base.db, `a${MANY}`, 5)).length).toBe(0);
});

test('a list that takes too long is given up before anybody else has to wait long', () => {
  expect(LISTED_WITHIN_MS).toBeLessThan(4_500);
});

test('the same where all transactions are alike, so that nothing tells which filter finds none', async () => {
  const operator = connect({ url: filled.base.url, role: null, maxConnections: 1, applicationName: 'test' });
  await operator.query({ text: `update transactions set currency = 'BTC', status = 'settled', label = 'the same'` });
  await operator.query({ text: 'vacuum analyze transactions' });
  await operator.close();
  const more = [
    ['the status that all have', { status: 'settled' }],
    ['the currency that all have', { currency: 'BTC' }],
    ['the label that all have', { label: 'the same' }],
    ['all of them', { label: 'the same', status: 'settled', currency: 'BTC' }],
    ['the status that all have, far down', { status: 'settled', startingAfter: `txn_${'50001'.padStart(22, '0')}` }],
    ['the status that all have, of a time', { status: 'settled', createdGteMs: Date.now() - 50_000_000 }],
  ] as const;
  for (const [what, wishes] of [...FILTERS, ...more]) {
    const touched = await touchedPages(db, (on) => listTransactionRows(on, { merchantId: 1n, limit: 20, ...NONE, ...wishes }));
    expect([what, touched < FEW]).toEqual([what, true]);
  }
});
