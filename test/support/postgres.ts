// A real, migrated, empty database for a test: a clone of the run's template. Called by every test that touches SQL.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { connect, type Database } from '../../src/store/connect.ts';
import { TEMPLATE } from './names.ts';

/**
 * Makes a database of its own. `url` logs in as the superuser (for what a test must do besides the service), `db` acts as role
 * bursar_app. `drop` closes `db` and removes the database.
 */
export async function freshDatabase(): Promise<{ url: string; db: Database; drop(): Promise<void> }> {
  const admin = inject('postgresUrl');
  const name = `test_${randomBytes(6).toString('hex')}`;
  await once(admin, `create database ${name} template ${TEMPLATE}`);
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
