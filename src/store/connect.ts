// The way into PostgreSQL: a pool whose sessions act as the service's role, and transactions that run a whole closure again after a
// serialization failure or a deadlock. All SQL lives in this folder; callers never see a client outside a closure.
import pg from 'pg';

// int8 as bigint, numeric as text (callers make bigint of it), timestamps as Date
pg.types.setTypeParser(20, (text) => BigInt(text));

/** What store functions run statements on: the pool, or one transaction. */
export type Sql = {
  query<R extends pg.QueryResultRow>(statement: pg.QueryConfig): Promise<pg.QueryResult<R>>;
};

export type Database = Sql & {
  /** Runs the closure in one transaction (READ COMMITTED); rolls back when it throws. No call to the outside inside. */
  transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T>;
  /** A session of its own that listens to notifications; reconnects by itself. `onLost` is told when messages may have been missed. */
  listen(channels: readonly string[], onMessage: (channel: string, payload: string) => void, onLost: () => void): Promise<() => Promise<void>>;
  close(): Promise<void>;
};

export type ConnectOptions = {
  readonly url: string;
  /** The role of the sessions: `bursar_app` for the service; null to stay the login user (migrations). */
  readonly role: string | null;
  readonly maxConnections: number;
  readonly applicationName: string;
};

const RETRIED = new Set(['40001', '40P01']);
const MAX_TRIES = 5;

/** Opens a pool; nothing is connected until the first statement. */
export function connect(options: ConnectOptions): Database {
  const base = {
    connectionString: options.url,
    application_name: options.applicationName,
    options: `-c statement_timeout=30000 -c idle_in_transaction_session_timeout=60000${options.role === null ? '' : ` -c role=${options.role}`}`,
  };
  const pool = new pg.Pool({ ...base, max: options.maxConnections, idleTimeoutMillis: 60_000 });
  pool.on('error', () => undefined); // an idle connection broke: the pool replaces it, statements on it fail by themselves

  async function once<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    const client = await pool.connect();
    let broken: Error | undefined;
    try {
      await client.query('begin');
      const result = await work(client);
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback').catch((failure: Error) => {
        broken = failure;
      });
      throw error;
    } finally {
      client.release(broken);
    }
  }

  return {
    query: (statement) => pool.query(statement),
    async transaction(work) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await once(work);
        } catch (error) {
          const code = (error as { code?: string }).code;
          if (code === undefined || !RETRIED.has(code) || attempt === MAX_TRIES) throw error;
        }
      }
    },
    async listen(channels, onMessage, onLost) {
      return openListener(base, channels, onMessage, onLost);
    },
    close: () => pool.end(),
  };
}

async function openListener(
  config: pg.ClientConfig,
  channels: readonly string[],
  onMessage: (channel: string, payload: string) => void,
  onLost: () => void,
): Promise<() => Promise<void>> {
  let client: pg.Client | null = null;
  let closed = false;
  async function open(): Promise<void> {
    const next = new pg.Client({ ...config, keepAlive: true });
    next.on('notification', (message) => onMessage(message.channel, message.payload ?? ''));
    next.on('error', () => undefined);
    next.on('end', () => {
      if (closed) return;
      onLost();
      void reopen();
    });
    await next.connect();
    for (const channel of channels) await next.query(`listen ${channel}`);
    client = next;
  }
  async function reopen(): Promise<void> {
    while (!closed) {
      try {
        await open();
        onLost();
        return;
      } catch {
        await new Promise((resolve) => {
          setTimeout(resolve, 500).unref();
        });
      }
    }
  }
  await open();
  return async () => {
    closed = true;
    await client?.end();
  };
}
