// What a start needs from a PostgreSQL server before our schema exists, its version and a database by name; and whether it takes writes.
import pg from 'pg';
import type { Sql } from './connect.ts';

/** Whether new transactions may write: not where the server is a standby, or was made read-only. */
export async function takesWrites(db: Sql): Promise<boolean> {
  const { rows } = await db.query<{ writes: boolean }>({
    text: "select current_setting('transaction_read_only') = 'off' as writes",
  });
  return rows[0]?.writes === true;
}

/** The server's version as it writes it (`18.4`) and as a number (180004). Throws what the connection threw. */
export async function serverVersion(url: string, withinMs: number): Promise<{ readonly text: string; readonly number: number }> {
  const rows = await ask<{ text: string; number: string }>(
    { connectionString: url, connectionTimeoutMillis: withinMs },
    { text: "select current_setting('server_version') as text, current_setting('server_version_num') as number" },
  );
  return { text: rows[0]?.text ?? '', number: Number(rows[0]?.number) };
}

/** Creates the database when it is missing; `url` is that of another database of the server. */
export async function ensureDatabase(url: string, name: string): Promise<void> {
  const found = await ask({ connectionString: url }, { text: 'select 1 from pg_database where datname = $1', values: [name] });
  if (found.length === 0) await ask({ connectionString: url }, { text: `create database ${name}` });
}

/** The roles that sessions of the service take: its own, and the signer's, which only reads. */
const SESSION_ROLES = ['bursar_app', 'bursar_signer'] as const;

/**
 * Creates the service's login when it is missing: a member of the roles that its sessions take and of nothing else, so that leaving a role
 * (`reset role`) gains nothing. `url` is an administrator's.
 */
export async function ensureServiceLogin(url: string, login: string): Promise<void> {
  const member = 'select 1 from pg_auth_members m where m.member = to_regrole($1) and m.roleid = to_regrole($2)';
  for (const role of SESSION_ROLES) {
    const found = await ask({ connectionString: url }, { text: member, values: [login, role] });
    if (found.length > 0) continue;
    // the migrations make the same roles where they do not exist yet
    await ensureRole(url, role, 'nologin');
    await ensureRole(url, login, 'login');
    await ask({ connectionString: url }, { text: `grant ${role} to ${login}` });
  }
}

async function ensureRole(url: string, role: string, can: 'login' | 'nologin'): Promise<void> {
  const known = await ask({ connectionString: url }, { text: 'select 1 from pg_roles where rolname = $1', values: [role] });
  if (known.length === 0) await ask({ connectionString: url }, { text: `create role ${role} ${can}` });
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
