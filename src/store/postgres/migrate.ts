// Brings a database to the current schema: applies db/*.sql in the order of their names, each in its own transaction, and records name and
// checksum; and binds it to its network.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { Network } from '../../core/currency.ts';
import { networksOf, writeNetwork } from './network.ts';

/** db/ of this checkout. */
export const MIGRATIONS_FOLDER: string = fileURLToPath(new URL('../../../db/', import.meta.url));

// an arbitrary number, the same in every process: they queue on it
const LOCK_KEY = 7_102_201_118;
const INSUFFICIENT_PRIVILEGE = '42501';
const NEEDED =
  'the login must own the database, and the first migration needs a superuser or a login with CREATEROLE, or that an administrator has made the roles bursar_app and bursar_ledger and granted both to the login';
const FILE_NAME = /^\d{4}_[a-z0-9_]+\.sql$/;

type Migration = { readonly name: string; readonly text: string; readonly checksum: string };

/** A refusal of a migration run, in one line: the file's name and what is wrong with it, or that the database belongs to another network. */
export class MigrationRefused extends Error {
  override readonly name = 'MigrationRefused';
}

/**
 * Applies what is missing, as the URL's own user, who must own the database and be able to create roles (or be a member of ours already).
 * Any number of processes may call it at once: they wait for each other. Forward only: a changed applied file, an applied file that is
 * gone, and a new file that sorts before an applied one are refused with its name; a right that is missing is refused with what is needed.
 * @param options.network the network whose books these are: a database of another one is refused before anything is written, and a new one
 * belongs to this one from now on. Left out: the first caller with a network decides
 * @returns the names of the files applied by this call
 */
export async function migrate(options: {
  readonly url: string;
  readonly folder?: string;
  readonly network?: Network;
}): Promise<readonly string[]> {
  const migrations = readMigrations(options.folder ?? MIGRATIONS_FOLDER);
  const client = new pg.Client({ connectionString: options.url, application_name: 'bursar migrate' });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query({ text: 'select pg_advisory_lock($1)', values: [LOCK_KEY] });
    if (options.network === undefined) return await applyMissing(client, migrations);
    refuseOther(options.network, await networksOf(client));
    const applied = await applyMissing(client, migrations);
    await writeNetwork(client, options.network);
    return applied;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    throw code === INSUFFICIENT_PRIVILEGE ? new MigrationRefused(`DATABASE_URL: ${message}: ${NEEDED}`) : error;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function refuseOther(network: Network, found: readonly Network[] | null): void {
  if (found === null || found.includes(network)) return;
  throw new MigrationRefused(
    `the database belongs to ${found.join(' or ')}, but BURSAR_NETWORK is ${network}${network === 'sandbox' ? ' (or not set)' : ''}: ` +
      `set BURSAR_NETWORK=${found.join(' or ')}, or use another database (DATABASE_URL or BURSAR_DATA_DIR)`,
  );
}

function readMigrations(folder: string): readonly Migration[] {
  return readdirSync(folder)
    .filter((name) => FILE_NAME.test(name))
    .sort()
    .map((name) => {
      const text = readFileSync(new URL(name, `file://${folder.endsWith('/') ? folder : `${folder}/`}`), 'utf8');
      return { name, text, checksum: createHash('sha256').update(text).digest('hex') };
    });
}

/** The files that a database does not have yet, by name. Reads only. */
export async function pendingMigrations(client: pg.Client, folder: string): Promise<readonly string[]> {
  const { rows } = await client.query<{ there: boolean }>("select to_regclass('migration.applied') is not null as there");
  const applied =
    rows[0]?.there === true ? (await client.query<{ name: string }>('select name from migration.applied')).rows : [];
  const names = new Set(applied.map(({ name }) => name));
  return readMigrations(folder).flatMap(({ name }) => (names.has(name) ? [] : [name]));
}

async function applyMissing(client: pg.Client, migrations: readonly Migration[]): Promise<readonly string[]> {
  await client.query(
    `create schema if not exists migration;
     create table if not exists migration.applied (name text primary key, checksum text not null, applied_at timestamptz not null default now())`,
  );
  const { rows } = await client.query<{ name: string; checksum: string }>(
    'select name, checksum from migration.applied order by name',
  );
  const missing = compare(migrations, rows);
  for (const migration of missing) await apply(client, migration);
  return missing.map(({ name }) => name);
}

function compare(migrations: readonly Migration[], applied: readonly { name: string; checksum: string }[]): readonly Migration[] {
  const known = new Map(migrations.map((migration) => [migration.name, migration]));
  for (const { name, checksum } of applied) {
    const migration = known.get(name);
    if (migration === undefined) {
      throw new MigrationRefused(`db/${name} was applied to this database, but is not in this version: start the newer version`);
    }
    if (migration.checksum !== checksum) {
      throw new MigrationRefused(
        `db/${name} was changed after it had been applied to this database: put it back and add a new file`,
      );
    }
  }
  const last = applied.at(-1)?.name ?? '';
  const done = new Set(applied.map(({ name }) => name));
  const missing = migrations.filter(({ name }) => !done.has(name));
  const early = missing.find(({ name }) => name < last);
  if (early !== undefined) {
    throw new MigrationRefused(
      `db/${early.name} is new but sorts before db/${last}, which was already applied: give it a higher number`,
    );
  }
  return missing;
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(migration.text);
    await client.query({
      text: 'insert into migration.applied (name, checksum) values ($1, $2)',
      values: [migration.name, migration.checksum],
    });
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    const { code, message } = error as { code?: string; message: string };
    throw Object.assign(new Error(`db/${migration.name}: ${message}`, { cause: error }), { code });
  }
}
