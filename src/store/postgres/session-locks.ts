// Locks that a session holds, not a transaction: they elect one of all processes. One session holds all locks of a process, from the first
// to the last. A session with locks gives signs of life by a timer: one that has given none for long belongs to a frozen process.
import pg from 'pg';

/** Held until released, or until its session ends (the process died, the connection broke): it elects, it does not protect. */
export type SessionLock = {
  /** Whether we hold it now; tries to take it when we do not. */
  acquire(): Promise<boolean>;
  /**
   * Whether we now hold it together with others; nobody can while one process holds it alone, and while it is shared nobody can hold it
   * alone.
   */
  share(): Promise<boolean>;
  /** No longer holds it alone; a shared hold stays shared. */
  yield(): Promise<void>;
  /**
   * For a process that could not acquire it: ends the holder's session when that has given no sign of life for so long that its process
   * must be frozen or its machine gone. Returns whether it was ended; then the lock is free, and whatever its holder still does must be
   * fenced off otherwise.
   */
  terminateStaleHolder(): Promise<boolean>;
  release(): Promise<void>;
};

/** By the server's clock: when the session that holds a lock alone gave its last sign of life, if that is long ago. */
const SILENT = `
  select a.pid, a.state_change::text as since
    from (select hashtextextended($1, 0) as key) k
    join pg_locks l on l.locktype = 'advisory' and l.objsubid = 1 and l.mode = 'ExclusiveLock' and l.granted
     and l.database = (select oid from pg_database where datname = current_database())
     and l.classid::bigint = (k.key >> 32) & 4294967295 and l.objid::bigint = k.key & 4294967295
    join pg_stat_activity a on a.pid = l.pid
   where a.state = 'idle' and a.state_change < clock_timestamp() - make_interval(secs => $2::float8 / 1000)`;
const SIGNS_IN_SILENCE = 3;
/** How often one that wants the lock looks at a silent holder, in the time after which that is ended. */
const LOOKS_IN_SILENCE = 6;

type Holder = { readonly name: string; held: boolean; shared: boolean; readonly onLost: () => void };

export type SessionLocks = {
  /** Makes a lock by its name; `onLost` runs when the session broke while it held something. */
  lock(name: string, onLost?: () => void): SessionLock;
  /** Gives the session up with all its locks: it may lead to a server that is not ours any more. */
  drop(): void;
};

/**
 * @param options.silentMs a session that holds a lock and has given no sign of life for this long may be ended by a process that wants the
 * lock
 * @param options.onBroken runs when the session broke, whether or not it held something
 */
export function openSessionLocks(
  config: pg.ClientConfig,
  { silentMs, onBroken }: { readonly silentMs: number; readonly onBroken: () => void },
): SessionLocks {
  const signEveryMs = silentMs / SIGNS_IN_SILENCE;
  const lookEveryMs = silentMs / LOOKS_IN_SILENCE;
  let signs: NodeJS.Timeout | undefined;
  let session: pg.Client | null = null;
  let turn: Promise<unknown> = Promise.resolve();
  const holders = new Set<Holder>();

  /** One statement at a time: each waits until the result of the one before is known. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  }

  function dropped(client: pg.Client): void {
    if (session !== client) return;
    session = null;
    clearInterval(signs);
    const lost = [...holders];
    holders.clear();
    for (const one of lost) {
      one.held = false;
      one.shared = false;
    }
    onBroken();
    for (const one of lost) one.onLost();
  }

  async function open(): Promise<pg.Client> {
    const client = new pg.Client({ ...config, keepAlive: true });
    client.on('error', () => dropped(client));
    client.on('end', () => dropped(client));
    await client.connect();
    session = client;
    signs = setInterval(() => void inTurn(giveSign).catch(() => undefined), signEveryMs).unref();
    return client;
  }

  async function giveSign(): Promise<void> {
    if (session !== null) await query(session, { name: 'sign_of_life', text: 'select 1' });
  }

  async function query<R extends pg.QueryResultRow>(client: pg.Client, statement: pg.QueryConfig): Promise<readonly R[]> {
    try {
      return (await client.query<R>(statement)).rows;
    } catch (error) {
      // it is unknown what the session holds now: it is given up with all its locks
      dropped(client);
      client.end().catch(() => undefined);
      throw error;
    }
  }

  /** Runs a statement; whether the session, if it is still the same, answered true. */
  async function ask(statement: string, name: string): Promise<boolean> {
    const client = session ?? (await open());
    const text = `select ${statement}(hashtextextended($1, 0)) as done`;
    const rows = await query<{ done: boolean }>(client, { text, values: [name] });
    return session === client && rows[0]?.done === true;
  }

  /** Ends a silent holder once it has been silent for longer than one sign of life takes: the server itself may have been frozen. */
  function createStaleHolderTerminator(name: string): () => Promise<boolean> {
    let lookedMs = Number.NEGATIVE_INFINITY;
    let seen: { readonly who: string; readonly atMs: number } | null = null;
    return async () => {
      const nowMs = performance.now();
      if (session === null || nowMs - lookedMs < lookEveryMs) return false;
      lookedMs = nowMs;
      const values = [name, silentMs];
      const [silent] = await query<{ pid: number; since: string }>(session, { name: 'silent_holder', text: SILENT, values });
      const who = silent === undefined ? null : `${silent.pid} ${silent.since}`;
      if (who === null || who !== seen?.who) {
        seen = who === null ? null : { who, atMs: nowMs };
        return false;
      }
      if (nowMs - seen.atMs < 2 * lookEveryMs) return false;
      seen = null;
      const text = `select pg_terminate_backend(s.pid) as done from (${SILENT}) s where s.pid || ' ' || s.since = $3`;
      const [ended] = await query<{ done: boolean }>(session, { name: 'end_silent_holder', text, values: [...values, who] });
      return ended?.done === true;
    };
  }

  function keep(one: Holder): void {
    if (one.held || one.shared) holders.add(one);
    else holders.delete(one);
  }

  /** A session never blocks itself, so the locks of one process are kept apart here. */
  function isElsewhere(mine: Holder, how: 'alone' | 'together'): boolean {
    return [...holders].some((one) => one !== mine && one.name === mine.name && (one.held || how === 'alone'));
  }

  async function giveBack(mine: Holder): Promise<void> {
    const { held, shared } = mine;
    mine.held = false;
    mine.shared = false;
    keep(mine);
    const client = session;
    if (client === null) return;
    if (holders.size === 0) {
      session = null;
      clearInterval(signs);
      await client.end();
      return;
    }
    if (held) await ask('pg_advisory_unlock', mine.name);
    if (shared) await ask('pg_advisory_unlock_shared', mine.name);
  }

  function drop(): void {
    const client = session;
    if (client === null) return;
    dropped(client);
    client.end().catch(() => undefined);
  }

  function lock(name: string, onLost: () => void = () => undefined): SessionLock {
    const mine: Holder = { name, held: false, shared: false, onLost };
    const terminateStaleHolder = createStaleHolderTerminator(name);
    return {
      acquire: async () =>
        mine.held ||
        inTurn(async () => {
          if (mine.held) return true;
          mine.held = !isElsewhere(mine, 'alone') && (await ask('pg_try_advisory_lock', name));
          keep(mine);
          return mine.held;
        }),
      share: async () =>
        mine.shared ||
        inTurn(async () => {
          if (mine.shared) return true;
          mine.shared = !isElsewhere(mine, 'together') && (await ask('pg_try_advisory_lock_shared', name));
          keep(mine);
          return mine.shared;
        }),
      yield: () =>
        inTurn(async () => {
          if (!mine.held) return;
          mine.held = false;
          keep(mine);
          await ask('pg_advisory_unlock', name);
        }),
      terminateStaleHolder: () => inTurn(terminateStaleHolder),
      release: () => inTurn(() => giveBack(mine)),
    };
  }
  return { lock, drop };
}
