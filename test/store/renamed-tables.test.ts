// A database of the version before the renames (db/0021), with money in it, as a restored dump of it would be: what it holds is the same
// afterwards, its audit is green, and what comes later is booked to the same accounts.
import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import { sealExisting } from '../../src/flow/merchants/seals.ts';
import { bookCapital, newOwnAddresses } from '../../src/flow/payouts/own-outputs.ts';
import { connect } from '../../src/store/postgres/connect.ts';
import { MIGRATIONS_FOLDER, migrate } from '../../src/store/postgres/migrate.ts';
import { batchesOf } from '../support/batches.ts';
import { tellFee } from '../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const RENAMES = '0021_names.sql';
const TABLES: Readonly<Record<string, string>> = {
  own_outputs: 'own_coins',
  early_payments: 'early_coins',
  unprotected_payments: 'unprotected_coins',
  reimbursement_shares: 'reimbursed_coins',
  comparisons: 'coin_checks',
  conflicting_transactions: 'rivals',
  bank_reads: 'ach_looks',
  rolled_up_balance: 'house_balance',
};
const COLUMNS: Readonly<Record<string, string>> = { part_key: 'deposit_key', begun_at: 'looked_at' };

let folder: string;
let service: ServiceOnDatabase;
let older: pg.Client;
let url: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-older-'));
  for (const name of readdirSync(MIGRATIONS_FOLDER).filter((one) => /^\d{4}_.*\.sql$/.test(one) && one < RENAMES))
    copyFileSync(join(MIGRATIONS_FOLDER, name), join(folder, name));
  service = await openServiceOnDatabase();
  const name = `test_${randomBytes(6).toString('hex')}`;
  await service.admin.query(`create database ${name}`);
  url = inject('postgresUrl').replace('/postgres?', `/${name}?`);
  await migrate({ url, folder });
  older = new pg.Client({ connectionString: url });
  await older.connect();
});
afterEach(async () => {
  const name = (await older.query('select current_database() as name')).rows[0].name;
  await older.end();
  await service.admin.query(`drop database ${name} with (force)`);
  await service.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** A customer's payment, a payout that is on its way with change to us, and capital: everything has a row that is renamed. */
async function fill(): Promise<void> {
  const batches = batchesOf(service);
  await tellFee(service.ctx);
  await batches.earn(3);
  await batches.request();
  const batch = await batches.formed();
  await batches.mined(batch, await batches.signed(batch));
  await capital(5_000_000n);
  await service.admin.query(`insert into conflicting_transactions (currency, txid) values ('LTC', repeat('0', 64))`);
  await service.admin.query('insert into bank_reads (begun_at) values (now()) on conflict do nothing');
}

/** The service's own money comes to an address of its own and is booked at final depth. */
async function capital(amountMinor: bigint): Promise<void> {
  const [address] = (await newOwnAddresses(service.ctx, 'BTC', 1)) ?? [];
  const script = Buffer.from(address?.script ?? []).toString('hex');
  service.spend(randomBytes(32).toString('hex'), [], [{ vout: 0, script, amountMinor }]);
  await service.mine(6);
  await bookCapital(service.ctx, 'BTC');
}

/** Writes every row of the service's database into the older one, under the older names. */
async function copyRows(): Promise<void> {
  await older.query('set session_replication_role = replica');
  const { rows } = await service.admin.query<{ schema: string; name: string }>(
    `select schemaname as schema, tablename as name from pg_tables
      where schemaname in ('public', 'ledger') and tablename <> 'account_kind'`,
  );
  for (const { schema, name } of rows) {
    const target = `${schema}.${TABLES[name] ?? name}`;
    // what a later version has added
    if ((await older.query('select to_regclass($1) as there', [target])).rows[0].there === null) continue;
    const found = await service.admin.query(`select coalesce(json_agg(t), '[]')::text as rows from ${schema}.${name} t`);
    const renamed = Object.entries(COLUMNS).reduce(
      (text, [now, before]) => (name === 'node_conditions' ? text : text.replaceAll(`"${now}":`, `"${before}":`)),
      found.rows[0].rows as string,
    );
    const text = renamed.replaceAll('equity:operator:', 'equity:house:');
    await older.query(`delete from ${target}`);
    await older.query(
      `insert into ${target} overriding system value select * from json_populate_recordset(null::${target}, $1::json)`,
      [text],
    );
  }
  await older.query(`select setval(pg_get_serial_sequence(c, 'id'), 1000000)
                       from unnest(array['ledger.entry', 'ledger.account', 'events', 'payments']) as t(c)`);
  await older.query('set session_replication_role = origin');
}

const balances = async (client: Pick<pg.Client, 'query'>) =>
  (await client.query('select code, amount::text from ledger.account_balance order by code')).rows;

test('a database of the version before the renames has the same balances after them, a green audit, and goes on', async () => {
  await fill();
  const before = await balances(service.admin);
  await copyRows();
  expect((await older.query(`select count(*)::int as n from ledger.account where code like 'equity:house:%'`)).rows).toEqual([
    { n: 1 },
  ]);
  expect((await migrate({ url }))[0]).toBe(RENAMES);
  expect(await balances(older)).toEqual(before);
  expect(before).toContainEqual({ code: 'equity:operator:BTC', amount: '5000000' });

  const db = connect({ url, role: 'bursar_app', maxConnections: 4, applicationName: 'test' });
  try {
    const reds = async () =>
      (await runAudit({ ...service.ctx, db })).answers.flatMap(({ id, findings }) => findings.map((one) => `${id}: ${one}`));
    expect(await sealExisting({ db, ports: service.ctx.ports })).toMatchObject({ outcome: 'done' });
    expect(await reds()).toEqual([]);
    await older.query('select ledger.roll_up(1000)');
    expect(await balances(older)).toEqual(before);
    expect(await reds()).toEqual([]);
    await older.query(
      `select ledger.post('capital:later', 'capital', '[{"a":"asset:chain:BTC","v":"7"},{"a":"equity:operator:BTC","v":"-7"}]', now())`,
    );
    expect(await balances(older)).toContainEqual({ code: 'equity:operator:BTC', amount: '5000007' });
  } finally {
    await db.close();
  }
});
