// Where no worker runs beside a test, its currencies must count as looked at for as long as the test takes: a currency that nobody watches is not sold.
import type { Sql } from '../../src/store/postgres/connect.ts';

export async function markWatched(sql: Sql): Promise<void> {
  await sql.query({ text: `update node_conditions set looked_at = clock_timestamp() + interval '1 day'` });
}
