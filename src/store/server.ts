// What the start asks of a PostgreSQL server before anything of ours is in it: its version, and a database by name. Called by src/main and
// the tests' global setup.
import pg from 'pg';

/** The server's version as it writes it (`18.4`) and as a number (180004). Throws what the connection threw. */
export async function serverVersion(url: string, withinMs: number): Promise<{ readonly text: string; readonly number: number }> {
  const rows = await ask<{ text: string; number: string }>(
    { connectionString: url, connectionTimeoutMillis: withinMs },
    { text: "select current_setting('server_version') as text, current_setting('server_version_num') as number" },
  );
  return { text: rows[0]?.text ?? '', number: Number(rows[0]?.number) };
}

/** Makes the database when it is missing; `url` is that of another database of the server. */
export async function ensureDatabase(url: string, name: string): Promise<void> {
  const found = await ask({ connectionString: url }, { text: 'select 1 from pg_database where datname = $1', values: [name] });
  if (found.length === 0) await ask({ connectionString: url }, { text: `create database ${name}` });
}

async function ask<R extends pg.QueryResultRow>(config: pg.ClientConfig, statement: pg.QueryConfig): Promise<readonly R[]> {
  const client = new pg.Client({ ...config, application_name: 'bursar start' });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<R>(statement)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}
