// What is known of addresses on Ethereum's chain, read where there are very many payouts, sweeps and orders of other chains.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { evmScripts } from '../../src/store/chain/watched.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { knownBalances } from '../../src/store/sweeps/balances.ts';
import { filledDatabase } from '../support/filled-database.ts';
import { touchedPages } from '../support/touched-pages.ts';

const MANY = 30_000;
const ASKED = 500;
/** Pages of 8 KB for each address: a few indexes, and what they lead to. */
const FOR_EACH = 40;
let filled: Awaited<ReturnType<typeof filledDatabase>>;
let db: Database;
beforeAll(async () => {
  filled = await filledDatabase(async (sql) => {
    const many = async (text: string) => sql.query({ text, values: [MANY] });
    await many(`insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, address, script,
                  address_index, created_at, window_ends_at, tolerance_bps, late_payments, made_order)
                select 'txn_' || lpad(g::text, 22, '0'), 1, case when g % 50 = 1 then 'ETH' else 'BTC' end, 'settled', 1000, 1000, 65000, now(), '[]',
                       'a' || g, decode(lpad(to_hex(g), 40, '0'), 'hex'), g, now() - g * interval '1 s', now(), 100, 'accept', g
                  from generate_series(1, $1::int) g`);
    // each moves what lay at an address of its own to that of the service
    await many(`insert into outgoing_batches (id, currency, state, fee_rate, created_at, purpose, target)
                select 'batch_' || g, 'ETH', 'final', 1, now(), case when g % 2 = 0 then 'payout' else 'sweep' end,
                       case when g % 2 = 1 then '\\xffff'::bytea end from generate_series(1, $1::int) g`);
    await many(`insert into outgoing_inputs (currency, txid, vout, batch_id, amount, script, account_xpub_id, chain, address_index, spent_by, spent_height)
                select 'ETH', 'sender' || g, 0, 'batch_' || g, 1000, decode(lpad(to_hex(g), 40, '0'), 'hex'), 1, 0, g, 'x' || g, g / 10
                  from generate_series(1, $1::int) g`);
    await many(`insert into outgoing_attempts (batch_id, number, currency, txid, raw, fee, vbytes, lease_epoch, sequence, signed_at, height, block_hash, result, gas_paid)
                select 'batch_' || g, 1, 'ETH', 'x' || g, '', 100, 21000, 1, g, now(), g / 10, 'h', 'paid', 100 from generate_series(1, $1::int) g`);
    await many(`insert into own_outputs (currency, txid, vout, amount, script, height, block_hash)
                select 'ETH', 'x' || g, 0, 1000, '\\xffff'::bytea, g / 10, 'h' from generate_series(1, $1::int) g`);
  });
  db = filled.db;
});
afterAll(() => filled?.drop());

test('what is known to be at hundreds of addresses is read by the address', async () => {
  const scripts = Array.from({ length: ASKED }, (_, n) => Buffer.from((n * 50 + 1).toString(16).padStart(40, '0'), 'hex'));
  const pages = await touchedPages(db, (on) => knownBalances(on, 'ETH', { height: MANY, scripts }));
  expect(pages).toBeLessThan(ASKED * FOR_EACH);
});

test('the addresses of one chain are read without the orders of the others', async () => {
  const all = await evmScripts(db, { before: null, limit: MANY });
  expect(all.scripts).toHaveLength(MANY / 50);
  expect(await touchedPages(db, (on) => evmScripts(on, { before: null, limit: ASKED }))).toBeLessThan(ASKED + 50);
});
