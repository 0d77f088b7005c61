// Connections to PostgreSQL: a pool whose sessions act as the service's role, and transactions that run a whole closure again after a
// serialization failure, a deadlock or a plan that the server refuses. All SQL is in this folder's layer; callers never see a client outside
// a closure.
import pg from 'pg';
import { createIdentity, type DatabaseIdentity, identify } from './database-identity.ts';
import { type Listen, openListening } from './listen.ts';
import { openSessionLocks, type SessionLock } from './session-locks.ts';
import { openSessionTimeouts, type SessionTimeouts } from './session-timeouts.ts';

// int8 as bigint, numeric as text (callers make bigint of it), timestamps as Date
pg.types.setTypeParser(20, (text) => BigInt(text));

/** What store functions run statements on: the pool, or one transaction. */
export type Sql = {
  query<R extends pg.QueryResultRow>(statement: pg.QueryConfig): Promise<pg.QueryResult<R>>;
  /** It is a transaction that plans as {@link TransactionOptions.byIndex} says. */
  readonly isByIndex?: boolean;
};

export type TransactionOptions = {
  /**
   * Every statement in it is short and finds its rows by an index: each is planned once in a session, for whatever values, and the plan is
   * kept. It must then not read a table whole, since that may have been small when it was planned.
   */
  readonly byIndex?: boolean;
  /** Milliseconds that one statement of it may take, where it is more than the pool allows: a reading of much. */
  readonly statementMs?: number;
  /**
   * Its first statement only reads or locks: it is sent together with `begin`. Should that fail, the statement was one by itself, and the
   * closure ends there.
   */
  readonly readsFirst?: boolean;
};

export type Database = Sql & {
  /**
   * Runs the closure in one transaction (READ COMMITTED); rolls back when it throws. Nothing inside may call the outside. Statements that it
   * begins without waiting for each other (`Promise.all`) are sent together, and the server runs them one after the other, in that order.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Receives notifications, all of them on one session besides the pool; reconnects by itself. */
  readonly listen: Listen;
  /** A lock that only one of all processes can hold; one session besides the pool holds all locks of this process. `onLost`: it broke. */
  sessionLock(name: string, onLost?: () => void): SessionLock;
  /** Whether it is still the database that was read before. */
  readonly identity: DatabaseIdentity;
  close(): Promise<void>;
};

export type ConnectOptions = {
  readonly url: string;
  /** The role of the sessions: `bursar_app` for the service, `bursar_signer` for what the signer checks; null to stay the login user (migrations). */
  readonly role: string | null;
  readonly maxConnections: number;
  readonly applicationName: string;
  /**
   * Milliseconds within which a free session and the answer to a statement must come. By default an answer must come within 40 s, and a free
   * session may take any time. The server ends the statement somewhat earlier (by default after 30 s); if it does not even do that, the
   * connection is closed, and it is unknown whether the statement had its effect.
   */
  readonly answersWithinMs?: number;
  /**
   * Every statement is short and finds its rows by an index. A plan is kept until its tables are analysed: one made while they were small
   * must not read them whole when they have grown.
   */
  readonly byIndex?: boolean;
  /**
   * For a process that keeps what it has read: each new session is asked which database it leads to, and the first one to another database
   * than before fails with DatabaseReplaced.
   */
  readonly checksIdentity?: boolean;
  /**
   * A process that holds a lock and gives no sign of life for this many milliseconds counts as frozen, and so does a server that gives none to who
   * listens to it within twice as many (default 30 s).
   */
  readonly silentMs?: number;
};

/** Runs the closure in one transaction whose statements find their rows by an index ({@link TransactionOptions.byIndex}). */
export function transactionByIndex<T>(
  db: Database,
  work: (sql: Sql) => Promise<T>,
  options: Pick<TransactionOptions, 'readsFirst'> = {},
): Promise<T> {
  return db.transaction(work, { ...options, byIndex: true });
}

/**
 * A statement that is planned once where plans go by indexes ({@link TransactionOptions.byIndex}). Elsewhere it has no name and is planned each
 * time: a plan made while a table was small would read it whole for each thing that is looked up.
 */
export const plannedByIndex = (sql: Sql, name: string): { readonly name?: string } => (sql.isByIndex === true ? { name } : {});

const RETRIED = new Set(['40001', '40P01']);
const MAX_TRIES = 5;
const LONGEST_STATEMENT_MS = 30_000;
/** The same, and the time for the server's refusal: a connection that is silent for longer leads nowhere. */
const LONGEST_ANSWER_MS = 40_000;
const SILENT_MS = 30_000;
/** The server's sessions are limited: an unused one is closed soon. */
const IDLE_MS = 10_000;
/** What a session plans by indexes. */
const BY_INDEX = ['enable_seqscan=off', 'enable_bitmapscan=off', 'jit=off'];
/** The same for one transaction, in one round trip. */
const BEGIN_BY_INDEX = [
  'begin',
  'set local plan_cache_mode=force_generic_plan',
  ...BY_INDEX.map((one) => `set local ${one}`),
].join('; ');

/** Opens a pool; nothing is connected until the first statement. */
export function connect(options: ConnectOptions): Database {
  const { answersWithinMs } = options;
  const answerMs = answersWithinMs ?? LONGEST_ANSWER_MS;
  // the server's own limit comes first: its refusal says that nothing has happened, and the connection survives
  const statementMs = answersWithinMs === undefined ? LONGEST_STATEMENT_MS : Math.ceil(answersWithinMs * 0.9);
  const plans = options.byIndex === true ? BY_INDEX.map((one) => ` -c ${one}`).join('') : '';
  const limits = `-c statement_timeout=${statementMs} -c idle_in_transaction_session_timeout=60000${plans}`;
  const base = {
    connectionString: options.url,
    application_name: options.applicationName,
    options: options.role === null ? limits : `${limits} -c role=${options.role}`,
  };
  // a session that listens or locks runs few statements: the driver's own timer for each is enough there
  const alone = { ...base, connectionTimeoutMillis: answerMs, query_timeout: answerMs };
  const timeouts = openSessionTimeouts(answerMs);
  const identity = createIdentity();
  const pool = new pg.Pool({
    ...base,
    ...(answersWithinMs === undefined ? { Client: connectingWithin(answerMs) } : { connectionTimeoutMillis: answersWithinMs }),
    max: options.maxConnections,
    idleTimeoutMillis: IDLE_MS,
    pipeline: true,
    ...(options.checksIdentity === true ? { verify: verifier(identity, timeouts) } : {}),
  });
  pool.on('error', () => undefined); // an idle connection broke: the pool replaces it, statements on it fail by themselves
  pool.on('connect', (client) => client.on('error', () => undefined)); // the same for one that is in use between two statements

  // like pool.query, but a statement that the server refuses does not close the connection
  function query<R extends pg.QueryResultRow>(statement: pg.QueryConfig, outdated = 0): Promise<pg.QueryResult<R>> {
    return new Promise((resolve, reject) => {
      pool.connect((error, client, release) => {
        if (client === undefined) {
          reject(error ?? new Error('the pool gave no connection'));
          return;
        }
        timeouts.asked(client);
        client.query<R>(statement, (failure, result) => {
          timeouts.answered(client);
          release(failure !== null && (isConnectionLost(failure) || isPlanOutdated(failure)));
          if (!failure) resolve(result);
          else if (isPlanOutdated(failure) && outdated < options.maxConnections) resolve(query(statement, outdated + 1));
          else reject(failure);
        });
      });
    });
  }

  async function once<T>(
    work: (sql: Sql) => Promise<T>,
    { byIndex: isByIndex = false, statementMs: longMs, readsFirst }: TransactionOptions,
  ): Promise<T> {
    const client = await pool.connect();
    let outdated: Error | undefined;
    let refused: unknown;
    let isOver = false;
    async function send<R extends pg.QueryResultRow>(statement: pg.QueryConfig): Promise<pg.QueryResult<R>> {
      timeouts.asked(client, longMs === undefined ? answerMs : longMs + answerMs - statementMs);
      try {
        const result = await client.query<R>(statement);
        // what was refused before is taken back, and the transaction goes on
        if (statement.text.startsWith('rollback to savepoint')) refused = undefined;
        return result;
      } catch (error) {
        if (isPlanOutdated(error)) outdated = error;
        refused ??= error;
        throw isAborted(error) ? refused : error;
      } finally {
        timeouts.answered(client);
      }
    }
    const begun = send({ text: isByIndex ? BEGIN_BY_INDEX : 'begin' });
    begun.catch(() => undefined);
    const session: Sql = {
      isByIndex,
      async query<R extends pg.QueryResultRow>(statement: pg.QueryConfig) {
        // whoever was begun together with what failed would be by himself now
        if (isOver) throw new Error('the database transaction is over');
        return (await Promise.all([send<R>(statement), begun]))[0];
      },
    };
    async function end(text: 'commit' | 'rollback'): Promise<string> {
      isOver = true;
      return (await send({ text })).command;
    }
    let broken: Error | undefined;
    try {
      if (readsFirst !== true) await begun;
      if (longMs !== undefined) await session.query({ text: `set local statement_timeout = ${longMs}` });
      const result = await work(session);
      // it is aborted, whatever the closure makes of it
      if (outdated !== undefined) throw outdated;
      // of a transaction that is aborted PostgreSQL makes a rollback, and calls that no error
      if ((await end('commit')) !== 'COMMIT') throw refused;
      return result;
    } catch (error) {
      broken = outdated;
      await end('rollback').catch((failure: Error) => {
        broken = failure;
      });
      throw outdated ?? error;
    } finally {
      client.release(broken);
    }
  }

  const { silentMs = SILENT_MS } = options;
  const listening = openListening(alone, { silentMs, onBroken: identity.sessionLost });
  // as the login itself: a role may neither see nor end the sessions of its login
  const locks = openSessionLocks({ ...alone, options: limits }, { silentMs, onBroken: identity.sessionLost });
  identity.onChanged((evidence) => {
    if (evidence === null) return;
    // these sessions may still lead to the database that was replaced
    listening.reopen();
    locks.drop();
  });
  return {
    query: (statement) => query(statement),
    identity,
    async transaction(work, transactionOptions = {}) {
      for (let attempt = 1, outdated = 0; ; ) {
        try {
          return await once(work, transactionOptions);
        } catch (error) {
          if (isPlanOutdated(error)) {
            if (outdated++ === options.maxConnections) throw error;
            continue;
          }
          const code = (error as { code?: string }).code;
          if (code === undefined || !RETRIED.has(code) || attempt++ === MAX_TRIES) throw error;
        }
      }
    },
    listen: listening.listen,
    sessionLock: locks.lock,
    async close() {
      await pool.end();
      timeouts.close();
    },
  };
}

/** A pool has one limit for a new session and for a free one; these have one for the connection only. */
function connectingWithin(connectionTimeoutMillis: number): typeof pg.Client {
  return new Proxy(pg.Client, { construct: (Client, [config]) => new Client({ ...config, connectionTimeoutMillis }) });
}

/** What a pool asks a new session before it gives it to somebody. */
function verifier(identity: DatabaseIdentity, timeouts: SessionTimeouts) {
  return (client: pg.PoolClient, done: (error?: Error) => void): void => {
    timeouts.asked(client);
    identify(identity, client)
      .finally(() => timeouts.answered(client))
      .then(() => done(), done);
  };
}

/** Whether a statement was refused because one before it in its transaction had been, which may have been to parse it. */
const isAborted = (error: unknown): boolean => ['25P02', '26000'].includes((error as { code?: string }).code ?? '');

/** Whether an error means that its connection is unusable: the server's own refusals have a severity, and only FATAL ends a session. */
function isConnectionLost(error: Error): boolean {
  const { severity } = error as { severity?: string };
  return severity !== 'ERROR';
}

/**
 * Whether a session refuses a statement for ever that it has planned before: the types of its result are others since, after tables were made
 * again under the same names (`pg_restore --clean`). It was not run; another session plans it anew.
 */
function isPlanOutdated(error: unknown): error is Error {
  const { code, routine } = error as { code?: string; routine?: string };
  return code === '0A000' && routine === 'RevalidateCachedQuery';
}
