// A database with very many rows, read as the service reads it: what a statement touches there shows whether an index leads it.
import { connect, type Database, type Sql } from '../../src/store/postgres/connect.ts';
import { freshDatabase, type TestDatabase } from './postgres.ts';

/**
 * `db` plans by index, as the service does; `base.db` may read tables whole. `drop` closes both.
 * @param fill writes rows that no constraint and no trigger looks at
 */
export async function filledDatabase(
  fill: (sql: Sql) => Promise<unknown>,
): Promise<{ readonly base: TestDatabase; readonly db: Database; drop(): Promise<void> }> {
  const base = await freshDatabase();
  const operator = connect({ url: base.url, role: null, maxConnections: 1, applicationName: 'test' });
  await operator.transaction(async (sql) => {
    await sql.query({ text: 'set local session_replication_role = replica' });
    await fill(sql);
  });
  await operator.query({ text: 'analyze' });
  await operator.close();
  const db = connect({ url: base.url, role: 'bursar_app', maxConnections: 2, applicationName: 'test', byIndex: true });
  return {
    base,
    db,
    async drop() {
      await db.close();
      await base.drop();
    },
  };
}
