// What lists of payouts, and what decides about one, read where there are very many: about what they show, whatever the filter.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { payoutsByReference } from '../../src/store/ach/entries.ts';
import { listOpenPayouts, listPayoutRows, readPayout } from '../../src/store/payouts/reads.ts';
import { payoutsToReconsider, readRequestFacts, readStops, readUnfinal } from '../../src/store/payouts/request-facts.ts';
import { dueMerchants, isAutomaticOpen, lastAutomatic } from '../../src/store/payouts/settings.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { filledDatabase } from '../support/filled-database.ts';
import { SEALS } from '../support/ports.ts';
import { touchedPages } from '../support/touched-pages.ts';

const MANY = 40_000;
/** Pages of 8 KB. */
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
      text: `insert into payouts (id, merchant_id, method, amount_text, currency, amount, fee_max, destination, status, step, held_reason, error, automatic,
                                  intent_key, intent, created_at)
             select 'payout_' || lpad(g::text, 22, '0'), 1 + g % 2, 'bitcoin', '1', 'BTC', 1000, 10, 'a',
                    case when g % 5000 < 2 then 'pending' when g % 5000 < 4 then 'failed' else 'completed' end,
                    case when g % 5000 < 2 then 'held' else 'ended' end, case when g % 5000 < 2 then 'approval' end,
                    case when g % 5000 between 2 and 3 then 'cancelled' end, g % 3 = 0 and g % 5000 > 3, '', '', now() - g * interval '1 s'
               from generate_series(1, $1::int) g`,
      values: [MANY],
    });
    await sql.query({
      text: `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, address, script,
               address_index, created_at, window_ends_at, tolerance_bps, late_payments, made_order)
             select 'txn_' || lpad(g::text, 22, '0'), 1 + g % 2, 'BTC', 'settled', 1000, 1000, 65000, now(), '[]', 'a' || g,
                    decode(lpad(to_hex(g), 44, '0'), 'hex'), g, now() - g * interval '1 s', now(), 100, 'accept', g
               from generate_series(1, $1::int) g`,
      values: [MANY],
    });
    await sql.query({
      text: `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, height, block_hash, seen_at, caught_up_at, found_mined,
               in_available)
             select 'txn_' || lpad(g::text, 22, '0'), 'BTC', 'x' || g, 0, 1000, '', 'mined', g / 10, 'h', now(), now(), true, 1000
               from generate_series(1, $1::int) g`,
      values: [MANY],
    });
    await sql.query({
      text: `insert into chain_cursors (currency, height, hash, caught_up_at, deep_height, updated_at) values ('BTC', $1, 'h', now(), 0, now())`,
      values: [MANY / 10],
    });
    await sql.query({ text: `insert into merchant_settings (merchant_id) values (1), (2)` });
  });
  db = filled.db;
});
afterAll(() => filled?.drop());

const NONE = { startingAfter: null, status: null, method: null, createdGteMs: null, createdLtMs: null };
const FAR = `payout_${'30001'.padStart(22, '0')}`;
const FILTERS = [
  ['nothing', {}],
  ['nothing, far down', { startingAfter: FAR }],
  ['a status that few have', { status: 'failed' }],
  ['a status that none has', { status: 'processing' }],
  ['the status that most have, far down', { status: 'completed', startingAfter: FAR }],
  ['the method that all have', { method: 'bitcoin' }],
  ['a method that none has', { method: 'ach' }],
  ['both', { method: 'bitcoin', status: 'pending' }],
  ['a status, of a time', { status: 'failed', createdLtMs: Date.now() - 20_000_000 }],
] as const;
test('what is open, over all merchants: payouts and what goes back', async () => {
  const open = await listOpenPayouts(db, 200);
  expect(open.map(({ id, status }) => [id, status])).toEqual(
    Array.from({ length: MANY / 2_500 }, (_, i) => 5_000 * Math.floor(i / 2) + (i % 2))
      .filter((g) => g > 0)
      .concat(MANY)
      .sort((a, b) => b - a)
      .map((g) => [`payout_${String(g).padStart(22, '0')}`, 'pending']),
  );
  expect(await touchedPages(db, (on) => listOpenPayouts(on, 200))).toBeLessThan(FEW);
  expect((await listOpenPayouts(db, 3)).map(({ id }) => id)).toEqual(open.slice(0, 3).map(({ id }) => id));
});

test.each(FILTERS)('a list filtered by %s', async (_, wishes) => {
  expect(await touchedPages(db, (on) => listPayoutRows(on, { merchantId: 1n, limit: 20, ...NONE, ...wishes }))).toBeLessThan(FEW);
});

test('what decides about a payout', async () => {
  const script = Buffer.alloc(22, 255);
  const works: [string, (on: Database) => Promise<unknown>][] = [
    [
      'request',
      (on) =>
        readRequestFacts(on, SEALS, {
          merchantId: 1n,
          scripts: [script, Buffer.alloc(22, 254)],
          currency: 'BTC',
          nowMs: Date.now(),
        }),
    ],
    ['stops', (on) => readStops(on, 1n)],
    ['one', (on) => readPayout(on, FAR)],
    ['unfinal', (on) => readUnfinal(on, 1n, null)],
    ['waiting', (on) => payoutsToReconsider(on, { limit: 200, after: null, nowMs: Date.now() })],
    ['automatic', (on) => dueMerchants(on, { nowMs: Date.now(), after: 0n, limit: 100 })],
    ['open', (on) => isAutomaticOpen(on, 1n, 'bitcoin')],
    ['last automatic', (on) => lastAutomatic(on, 1n, { ms: 0, limit: 3 })],
  ];
  for (const [name, work] of works) expect([name, (await touchedPages(db, work)) < FEW]).toEqual([name, true]);
});

test('credits in the newest blocks are not final: those of this merchant count, and what its waiting payouts hold', async () => {
  // six blocks make final: heights 3996 to 4000, ten payments each (one in the last), every second of them merchant 2's
  const [btc, ...others] = await readUnfinal(db, 2n, null);
  const { rows } = await db.query<{ n: bigint }>({
    text: `select count(*) as n from payments p join transactions t on t.id = p.transaction_id where t.merchant_id = 2 and p.height > 3995`,
  });
  expect(others).toEqual([]);
  expect(btc).toEqual({ currency: 'BTC', unfinal: 1000n * (rows[0]?.n ?? 0n), available: 0n, waiting: 8n * 1010n });
});

test('whom a bank names in an entry that it sends back', async () => {
  const references = Array.from({ length: 10 }, (_, n) => `${n}BCDEFGHJKMNPQR`);
  expect(await touchedPages(db, (on) => payoutsByReference(on, references))).toBeLessThan(FEW);
});
