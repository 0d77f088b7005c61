// A real, migrated, empty database for a test: a clone of the run's template.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { connect, type Database } from '../../src/store/postgres/connect.ts';
import { TEMPLATE } from './names.ts';

// to write every page of the template to the log, as PostgreSQL does by itself, takes five times as long as to copy its files
const COPIES_FILES = 'strategy file_copy';

/**
 * Creates a separate database. `url` logs in as the superuser (for what a test must do besides the service), `db` acts as role bursar_app.
 * `drop` closes `db` and removes the database.
 */
export async function freshDatabase(): Promise<TestDatabase> {
  const name = newName();
  await once(inject('postgresUrl'), `create database ${name} template ${TEMPLATE} ${COPIES_FILES}`);
  return opened(name);
}

/** A copy of a database as it is now: what a dump, or a replica that is behind, holds. Every session of the original is ended once. */
export async function copyDatabase(url: string): Promise<TestDatabase> {
  const admin = inject('postgresUrl');
  const from = new URL(url.replace(/^postgres(ql)?:/, 'http:')).pathname.slice(1);
  const name = newName();
  // a template must have no sessions, and those that listen come back
  await once(admin, `alter database ${from} allow_connections false`);
  await once(admin, `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '${from}'`);
  await once(admin, `create database ${name} template ${from} ${COPIES_FILES}`);
  await once(admin, `alter database ${from} allow_connections true`);
  return opened(name);
}

export type TestDatabase = { readonly url: string; readonly db: Database; drop(): Promise<void> };
const newName = (): string => `test_${randomBytes(6).toString('hex')}`;

function opened(name: string): TestDatabase {
  const admin = inject('postgresUrl');
  const url = admin.replace('/postgres?', `/${name}?`);
  const db = connect({ url, role: 'bursar_app', maxConnections: 10, applicationName: 'test' });
  return {
    url,
    db,
    async drop() {
      await db.close();
      await once(admin, `drop database ${name} with (force)`);
    },
  };
}

async function once(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
