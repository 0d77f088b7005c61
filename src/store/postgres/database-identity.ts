// Whether the database is still the one that a process has read. A failover, or a dump or snapshot that is put back, replaces it under a
// process that lives on, by a state without the last writes: what was derived from the lost state then counts no longer. Who keeps such
// state notes the generation with it, and compares.
import type pg from 'pg';

type Numbers = Readonly<Record<string, bigint>>;
/** What is compared, by name. */
export type Seen = {
  /** Stays as it is. */
  readonly same?: Readonly<Record<string, string | null>>;
  /** Never falls as long as the server runs; one that crashed may forget the last of it. */
  readonly rising?: Numbers;
  /** Never falls, not even by a crash. */
  readonly durable?: Numbers;
};

export type DatabaseIdentity = {
  /** How many times the database may have become another one since this process began. */
  readonly generation: number;
  /**
   * Begins to look at the database. The function it returns is to be called with what was seen, if anything.
   * @throws DatabaseReplaced (that function) when the database may have become another one since the look began
   */
  look(): (seen?: Seen) => void;
  /** The sessions that were open broke: another server may answer the next one. */
  sessionLost(): void;
  /** `evidence`: what shows that it is another one; null = only its sessions broke. */
  onChanged(callback: (evidence: string | null) => void): void;
};

/** What was read belongs to another database than what came before; whoever tries again begins anew. */
export class DatabaseReplaced extends Error {}

/** An identity of which nothing was seen yet: the first look sets what later ones are compared with. */
export function createIdentity(): DatabaseIdentity {
  let generation = 0;
  let before: Required<Seen> = { same: {}, rising: {}, durable: {} };
  let replacements = 0;
  const callbacks: ((evidence: string | null) => void)[] = [];

  function changed(evidence: string | null): void {
    generation++;
    for (const callback of callbacks) callback(evidence);
  }

  return {
    get generation() {
      return generation;
    },
    look() {
      const began = { generation, replacements, before };
      return (seen = {}) => {
        const evidence = began.replacements === replacements ? differenceOf(began.before, seen) : null;
        if (evidence !== null) {
          replacements++;
          before = { same: {}, rising: {}, durable: {} };
          changed(evidence);
        }
        if (generation !== began.generation) throw new DatabaseReplaced('the database may be another one: all is read again');
        before = {
          same: { ...before.same, ...known(seen.same) },
          rising: highest(before.rising, seen.rising),
          durable: highest(before.durable, seen.durable),
        };
      };
    },
    sessionLost() {
      before = { ...before, rising: {} };
      changed(null);
    },
    onChanged: (callback) => void callbacks.push(callback),
  };
}

function differenceOf(before: Required<Seen>, { same, rising, durable }: Seen): string | null {
  for (const [name, value] of Object.entries(known(same))) {
    const last = before.same[name];
    if (last !== undefined && last !== value) return `${name} ${last} became ${value}`;
  }
  return fallenOf(before.durable, durable) ?? fallenOf(before.rising, rising);
}

function fallenOf(before: Numbers, now: Numbers = {}): string | null {
  for (const [name, value] of Object.entries(now)) {
    const last = before[name];
    if (last !== undefined && value < last) return `${name} went back from ${last} to ${value}`;
  }
  return null;
}

function highest(before: Numbers, now: Numbers = {}): Numbers {
  const rising = Object.entries(now).filter(([name, value]) => value > (before[name] ?? -1n));
  return rising.length === 0 ? before : { ...before, ...Object.fromEntries(rising) };
}

/** What a server does not report says nothing against its being the same. */
function known(same: Seen['same'] = {}): Readonly<Record<string, string | null>> {
  return Object.fromEntries(Object.entries(same).filter(([, value]) => value !== null));
}

/** Of the server: its cluster, its timeline (another one after each promotion), the database, and how much of its log is on disk. */
const SERVER = `
  select (select system_identifier::text from pg_control_system()) as cluster, d.oid::text as database,
         case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_flush_lsn()), 8) end as timeline,
         case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::text end as log
    from pg_database d where d.datname = current_database()`;
/** A server may refuse these functions. */
const DATABASE_ONLY = `
  select null as cluster, d.oid::text as database, null as timeline, null as log from pg_database d where d.datname = current_database()`;
type ServerRow = {
  readonly cluster: string | null;
  readonly database: string;
  readonly timeline: string | null;
  readonly log: string | null;
};
/** Which database of which server, and how much of its log is on disk. What the server does not tell is null. */
export type Server = Omit<ServerRow, 'log'> & { readonly log: bigint | null };

/** The database that a session leads to. */
export async function readServer(session: { query(text: pg.QueryConfig): Promise<{ rows: unknown[] }> }): Promise<Server> {
  const { rows } = await session.query({ text: SERVER }).catch((error: Error & { severity?: string }) => {
    if (error.severity !== 'ERROR') throw error;
    return session.query({ text: DATABASE_ONLY });
  });
  const [row] = rows as ServerRow[];
  if (row === undefined) throw new Error('the database is not in the list of its server');
  return { ...row, log: row.log === null ? null : BigInt(row.log) };
}

/** Asks a new session which database it leads to. @throws DatabaseReplaced when it is another one than before */
export async function identify(identity: DatabaseIdentity, client: Pick<pg.ClientBase, 'query'>): Promise<void> {
  const check = identity.look();
  const { cluster, database, timeline, log } = await readServer(client);
  check({ same: { cluster, database, timeline }, durable: log === null ? {} : { 'the log position': log } });
}
