// How much of a database a piece of work reads: a plan shows it the same on every machine, which the time it takes does not.
import type { Database, Sql } from '../../src/store/postgres/connect.ts';

type Plan = { 'Shared Hit Blocks': number; 'Shared Read Blocks': number };

/** How many pages of 8 KB the statements that read touch when this work runs. */
export async function touchedPages(db: Database, work: (on: Database) => Promise<unknown>): Promise<number> {
  let touched = 0;
  const on = (sql: Sql): Sql => ({
    async query(statement) {
      if (!/^\s*(select|with)/.test(statement.text)) return sql.query(statement);
      const { rows } = await sql.query<{ 'QUERY PLAN': [{ Plan: Plan }] }>({
        text: `explain (analyze, buffers, timing off, format json) ${statement.text}`,
        values: statement.values ?? [],
      });
      const { Plan: plan } = (rows[0] as (typeof rows)[number])['QUERY PLAN'][0];
      touched += plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
      return sql.query(statement) as never;
    },
  });
  await work({ ...db, ...on(db), transaction: (inner) => db.transaction((sql) => inner(on(sql))) } as Database);
  return touched;
}
