// Whether the database is the one that this installation had before it was stopped. A dump that was restored, or a copy of the server's files,
// is an earlier state: merchants may have been told of events that are not in it, and the next ones would get their numbers. The database
// shows a dump and a move by itself (its row in `database_home`); a copy at the same place is shown by what a process has noted outside of it.
import { type EventNumber, lastNumberUpTo } from '../deliveries/event-tail.ts';
import type { Database, Sql } from './connect.ts';
import { readServer, type Server } from './database-identity.ts';
import { recordReplacement, toldJustNow } from './database-replacements.ts';

/** What a process notes of its database outside of it, to recognise an earlier state. */
export type DatabaseSeen = Server & {
  readonly lineage: string;
  /** By how much the numbers of events were raised at most; 0 = the database was never put back. */
  readonly raised: number;
  readonly lastEvent: EventNumber | null;
  /** When the server's files were made, where they lie in this data folder and the file system tells: every copy of them has another. */
  readonly filesMade: string | null;
};

type Home = Server & { readonly lineage: string; readonly isOwn: boolean };
type State = { readonly home: Home | null; readonly here: Server } & Pick<DatabaseSeen, 'raised' | 'lastEvent' | 'filesMade'>;

const LAST_NUMBER = 2n ** 63n - 1n;
/**
 * Numbers go on at the seconds since then: above all that were given before, whoever has put back what, and how often. They are integers, so a
 * clock that says 2083 or later counts for nothing, and the numbers go on at those of the last time.
 */
const SECONDS_SINCE = 1_577_836_800;
const MOST_SECONDS = 2_000_000_000;
const FROM_DUMP = 'it was filled from a dump';
const FOREIGN = 'this data folder was used with another database before';
/** Events that lie further apart were not written together. */
const LONGEST_TRANSACTION_S = 120;
/** More events than an object had since a copy was made, where a clock was set back meanwhile. */
const LEAST_RAISE = 1_000_000;

/**
 * Compares the database with its own row and with what was noted. Where it is an earlier state, that is recorded, and the numbers of the events
 * that follow are raised. To be called before anything is written after a start. Any number of processes may call it at once: one finds it.
 * @param seen what was noted last, on this machine; null = nothing
 * @param filesMade see {@link DatabaseSeen}, as it is now
 * @param given what shows by itself that it was replaced under a running process
 * @returns what is to be noted from now on, and what was found by this call
 */
export async function settleDatabase(
  db: Database,
  lineage: string,
  {
    seen,
    given = null,
    filesMade = null,
  }: { readonly seen: DatabaseSeen | null; readonly given?: string | null; readonly filesMade?: string | null },
): Promise<{ readonly seen: DatabaseSeen; readonly found: string | null }> {
  const here = await readServer(db);
  return db.transaction(async (sql) => {
    await sql.query({ text: `select pg_advisory_xact_lock(hashtextextended('database home', 0))` });
    const [home, raised] = [await readHome(sql), await readRaised(sql)];
    const state: State = { home, here, raised, lastEvent: await lastEvent(sql), filesMade };
    const mine = state.home?.lineage ?? lineage;
    const known = seen?.lineage === mine || state.home === null ? seen : null;
    const own = home === null && (await isFromDump(sql)) ? [FROM_DUMP] : ownEvidence(state);
    const back = [...own, ...(await notedEvidence(sql, state, known))];
    if (state.home === null || !isAt(state.home, here)) await writeHome(sql, mine, here);
    const highest = back.length === 0 ? raised : await raiseNumbers(sql, state, known);
    const foreign = seen !== null && known === null ? FOREIGN : null;
    // what one process finds, another may have been given, and the other way round
    const first = back.length > 0 || given === null ? null : await toldJustNow(sql);
    const found = back.length > 0 ? back.join('; ') : first === null ? (given ?? foreign) : null;
    if (found !== null) await recordReplacement(sql, found);
    return { seen: { ...here, lineage: mine, raised: highest, lastEvent: state.lastEvent, filesMade }, found };
  });
}

/** What is to be noted now. @returns null where the database was put back or replaced since: see {@link settleDatabase} */
export async function databaseNow(db: Database, before: DatabaseSeen): Promise<DatabaseSeen | null> {
  const here = await readServer(db);
  // all the time, also at rest: in one transaction
  const { home, raised, last } = await db.transaction(async (sql) => ({
    home: await readHome(sql),
    raised: await readRaised(sql),
    last: await lastEvent(sql),
  }));
  if (home === null || home.lineage !== before.lineage || !isAt(home, here)) return null;
  const now = { ...here, lineage: home.lineage, raised, lastEvent: last, filesMade: before.filesMade };
  const isBehind =
    now.raised < before.raised || (now.log !== null && now.log < (before.log ?? 0n)) || numberOf(now) < numberOf(before);
  return isBehind ? null : now;
}

const numberOf = ({ lastEvent }: DatabaseSeen): bigint => lastEvent?.id ?? 0n;

const lastEvent = (sql: Sql): Promise<EventNumber | null> => lastNumberUpTo(sql, LAST_NUMBER);

/** The place is the same, and nobody has written the row since but the one that it names. */
function isAt(home: Home, here: Server): boolean {
  return home.isOwn && differences(home, here).length === 0;
}

/** What a server does not report says nothing against its being the same. */
function differences(before: Server, now: Server): string[] {
  return (['cluster', 'database', 'timeline'] as const).flatMap((name) => {
    const [was, is] = [before[name], now[name]];
    return was === null || is === null || was === is ? [] : [`${name} ${was} became ${is}`];
  });
}

function ownEvidence({ home, here }: State): string[] {
  if (home === null) return [];
  return [...(home.isOwn ? [] : [FROM_DUMP]), ...differences(home, here)];
}

/**
 * A database of before it had its row: filling it from a dump writes all events in one database transaction, which writers of events at two times
 * never share. One that has written any since is not known by it, and needs not be: what was told then has its numbers.
 */
async function isFromDump(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ is_one: boolean }>({
    name: 'events_of_one_transaction',
    text: `select f.xmin = l.xmin as is_one
             from (select xmin, at from events order by id limit 1) f, (select xmin, at from events order by id desc limit 1) l
            where abs(extract(epoch from l.at - f.at)) > $1`,
    values: [LONGEST_TRANSACTION_S],
  });
  return rows[0]?.is_one === true;
}

/** An earlier state at the same place. What another process has found since the note was made is not found again. */
async function notedEvidence(sql: Sql, state: State, seen: DatabaseSeen | null): Promise<string[]> {
  if (seen === null) return [];
  if (state.home === null) return state.lastEvent === null ? [] : ['it is from before it was known here'];
  if (state.raised > seen.raised) return [];
  if (state.raised < seen.raised) return ['it is from before it was put back the last time'];
  const { here } = state;
  if (differences(seen, here).length > 0) return [];
  if (here.log !== null && seen.log !== null && here.log < seen.log)
    return [`the log position went back from ${seen.log} to ${here.log}`];
  // a copy of all, this note too, that was put back
  if (seen.filesMade !== null && state.filesMade !== null && seen.filesMade !== state.filesMade)
    return ["the server's files are a copy of those that were here"];
  if (seen.lastEvent === null) return [];
  const there = await lastNumberUpTo(sql, seen.lastEvent.id);
  return there?.id === seen.lastEvent.id && there.mark === seen.lastEvent.mark ? [] : [`event ${seen.lastEvent.mark} is gone`];
}

async function raiseNumbers(sql: Sql, { raised, lastEvent }: State, seen: DatabaseSeen | null): Promise<number> {
  const { rows } = await sql.query<{ added: number }>({
    name: 'raise_event_numbers',
    text: `insert into raised_event_numbers (after_event, added)
             select $1, greatest(case when seconds < ${MOST_SECONDS} then seconds else 0 end, $2::integer + ${LEAST_RAISE})::integer
               from (select floor(extract(epoch from clock_timestamp())) - ${SECONDS_SINCE} as seconds) now
             returning added`,
    values: [lastEvent?.id ?? 0n, Math.max(raised, seen?.raised ?? 0)],
  });
  return rows[0]?.added ?? 0;
}

async function readRaised(sql: Sql): Promise<number> {
  const { rows } = await sql.query<{ added: number | null }>({
    name: 'read_raised',
    text: 'select max(added) as added from raised_event_numbers',
    values: [],
  });
  return rows[0]?.added ?? 0;
}

type RawHome = Omit<Home, 'isOwn' | 'log'> & { readonly is_own: boolean };
const HOME = {
  name: 'read_database_home',
  text: 'select lineage, cluster, database, timeline, written = xmin as is_own from database_home',
  values: [],
};

const homeOf = (raw: RawHome | undefined): Home | null =>
  raw === undefined
    ? null
    : {
        lineage: raw.lineage,
        cluster: raw.cluster,
        database: raw.database,
        timeline: raw.timeline,
        log: null,
        isOwn: raw.is_own,
      };

async function readHome(sql: Sql): Promise<Home | null> {
  return homeOf((await sql.query<RawHome>(HOME)).rows[0]);
}

async function writeHome(sql: Sql, lineage: string, { cluster, database, timeline }: Server): Promise<void> {
  await sql.query({
    name: 'write_database_home',
    text: `insert into database_home (lineage, cluster, database, timeline, written) values ($1, $2, $3, $4, pg_current_xact_id()::xid)
             on conflict (one) do update set cluster = excluded.cluster, database = excluded.database, timeline = excluded.timeline,
                                             written = excluded.written`,
    values: [lineage, cluster, database, timeline],
  });
}
