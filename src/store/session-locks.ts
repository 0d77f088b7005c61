// Locks that a session holds, not a transaction: they elect one of all processes. All of a process are held by one session, opened when the
// first is asked for and ended with the last. Called by connect.ts.
import pg from 'pg';

/** Held until released, or until its session ends (the process died, the connection broke): it elects, it does not protect. */
export type SessionLock = {
  /** Whether we hold it now; tries to take it when we do not. */
  acquire(): Promise<boolean>;
  /** Whether we are now one of those who hold it together; nobody is while one holds it alone, and while there are others nobody can. */
  share(): Promise<boolean>;
  /** Holds it alone no more; what is shared stays shared. */
  yield(): Promise<void>;
  release(): Promise<void>;
};

type Holder = { readonly name: string; held: boolean; shared: boolean; readonly onLost: () => void };

/** @returns what makes a lock by its name; its `onLost` is told when the session broke while it held something */
export function openSessionLocks(config: pg.ClientConfig): (name: string, onLost?: () => void) => SessionLock {
  let session: pg.Client | null = null;
  let turn: Promise<unknown> = Promise.resolve();
  const holders = new Set<Holder>();

  /** One statement at a time: what is asked for waits until what came before it is known. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  }

  function dropped(client: pg.Client): void {
    if (session !== client) return;
    session = null;
    const lost = [...holders];
    holders.clear();
    for (const one of lost) {
      one.held = false;
      one.shared = false;
    }
    for (const one of lost) one.onLost();
  }

  async function open(): Promise<pg.Client> {
    const client = new pg.Client({ ...config, keepAlive: true });
    client.on('error', () => dropped(client));
    client.on('end', () => dropped(client));
    await client.connect();
    session = client;
    return client;
  }

  /** Whether the session, if it is still the same, said yes. */
  async function ask(statement: string, name: string): Promise<boolean> {
    const client = session ?? (await open());
    try {
      const { rows } = await client.query<{ done: boolean }>(`select ${statement}(hashtextextended($1, 0)) as done`, [name]);
      return session === client && rows[0]?.done === true;
    } catch (error) {
      // what the session holds now nobody knows: it is given up with all it may hold
      dropped(client);
      client.end().catch(() => undefined);
      throw error;
    }
  }

  function keep(one: Holder): void {
    if (one.held || one.shared) holders.add(one);
    else holders.delete(one);
  }

  /** A session never stands in its own way, so those of one process are kept apart here. */
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
      await client.end();
      return;
    }
    if (held) await ask('pg_advisory_unlock', mine.name);
    if (shared) await ask('pg_advisory_unlock_shared', mine.name);
  }

  return (name, onLost = () => undefined) => {
    const mine: Holder = { name, held: false, shared: false, onLost };
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
      release: () => inTurn(() => giveBack(mine)),
    };
  };
}
