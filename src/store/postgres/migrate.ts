// Brings a database to the current schema: applies db/*.sql in the order of their names, each in its own transaction, and records name and
// checksum. Binds the database to its network: payments of two networks must never be in one ledger.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import type { Network } from '../../core/currency.ts';

/** db/ of this checkout. */
export const MIGRATIONS_FOLDER: string = fileURLToPath(new URL('../../../db', import.meta.url));

// an arbitrary number, the same in every process: they queue on it
const LOCK_KEY = 7_102_201_118;
const INSUFFICIENT_PRIVILEGE = '42501';
const NEEDED =
  'the login must own the database, and the first migration needs a superuser or a login with CREATEROLE, or that an administrator has made the roles bursar_app, bursar_ledger and bursar_signer and granted them to the login';
const FILE_NAME = /^\d{4}_[a-z0-9_]+\.sql$/;

type Applied = { readonly name: string; readonly checksum: string };
type Migration = Applied & { readonly text: string };

/**
 * A refusal of a migration run, in one line: the file's name and what is wrong with it, or that the database belongs to another network or
 * was made before the first release.
 */
export class MigrationRefused extends Error {
  override readonly name = 'MigrationRefused';
}

/**
 * Applies what is missing, as the URL's own user, who must own the database and be able to create roles (or be a member of ours already).
 * Any number of processes may call it at once: they wait for each other. Forward only: a changed applied file, an applied file that is
 * gone, and a new file that sorts before an applied one are refused with its name, and a database without our first file is refused as made
 * before the first release; a right that is missing is refused with what is needed. A refusal has written nothing.
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
    if (options.network !== undefined) refuseOther(options.network, await networkOf(client));
    const missing = compare(migrations, await appliedTo(client));
    for (const migration of missing) await apply(client, migration);
    if (options.network !== undefined) await writeNetwork(client, options.network);
    return missing.map(({ name }) => name);
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    throw code === INSUFFICIENT_PRIVILEGE ? new MigrationRefused(`DATABASE_URL: ${message}: ${NEEDED}`) : error;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function refuseOther(network: Network, found: Network | null): void {
  if (found === null || found === network) return;
  throw new MigrationRefused(
    `the database belongs to ${found}, but BURSAR_NETWORK is ${network}${network === 'sandbox' ? ' (or not set)' : ''}: ` +
      `set BURSAR_NETWORK=${found}, or use another database (DATABASE_URL or BURSAR_DATA_DIR)`,
  );
}

/** The network that a database belongs to; null when it is new. Reads only. */
export async function networkOf(client: pg.Client): Promise<Network | null> {
  if (!(await hasTable(client, 'public.network'))) return null;
  const { rows } = await client.query<{ name: Network }>('select name from network');
  return rows[0]?.name ?? null;
}

/** Writes the network for good. */
async function writeNetwork(client: pg.Client, network: Network): Promise<void> {
  await client.query({ text: 'insert into network (name) values ($1) on conflict do nothing', values: [network] });
}

async function hasTable(client: pg.Client, name: string): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>({
    text: 'select to_regclass($1) is not null as there',
    values: [name],
  });
  return rows[0]?.there === true;
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

/** The files that a database does not have yet, by name. Reads only. Throws MigrationRefused where {@link migrate} would. */
export async function pendingMigrations(client: pg.Client, folder: string): Promise<readonly string[]> {
  return compare(readMigrations(folder), await appliedTo(client)).map(({ name }) => name);
}

async function appliedTo(client: pg.Client): Promise<readonly Applied[]> {
  if (!(await hasTable(client, 'migration.applied'))) return [];
  return (await client.query<Applied>('select name, checksum from migration.applied order by name collate "C"')).rows;
}

/** The files that are missing, in their order. Throws MigrationRefused when the others are not what was applied. */
function compare(migrations: readonly Migration[], applied: readonly Applied[]): readonly Migration[] {
  const known = new Map(migrations.map((migration) => [migration.name, migration]));
  refuseUnreleased(migrations, applied);
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

/** Every database of a released version has our first file. */
function refuseUnreleased(migrations: readonly Migration[], applied: readonly Applied[]): void {
  const [first] = applied;
  if (first === undefined || applied.some(({ name }) => name === migrations[0]?.name)) return;
  throw new MigrationRefused(
    `the database was made by a version from before the first release (db/${first.name}), which this version cannot continue: ` +
      'use an empty database (DATABASE_URL), or in the sandbox remove the data folder (BURSAR_DATA_DIR); ' +
      'if it has received real payments, keep the version that made it',
  );
}

async function apply(client: pg.Client, migration: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(
      `create schema if not exists migration;
       create table if not exists migration.applied (name text primary key, checksum text not null, applied_at timestamptz not null default now())`,
    );
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
