// What streams of events read: everything written since, in the order of its numbers, and who may still commit a lower number.
import type { Sql } from '../postgres/connect.ts';
import { EVENT_COLUMNS, EVENT_OBJECTS, type FoundEvent, type RawEvent, storedEvent, TOLD_SEQUENCE } from './events.ts';

/** Where a commit says who has something to do, separated by commas: one notification for the worker's jobs and for streams. */
export const WAKING_CHANNEL = 'hurry';
/** What it says with events of a merchant for whom {@link registerStreams} was called. */
export const STREAMS = 'streams';

/** Makes events of these merchants wake {@link STREAMS}; what dead processes left is deleted. @param keptSeconds unless prolonged */
export async function registerStreams(
  sql: Sql,
  process: string,
  merchants: readonly bigint[],
  keptSeconds: number,
): Promise<void> {
  await sql.query({
    name: 'register_streams',
    text: `with gone as (delete from event_streams where until < now() and process <> $1)
           insert into event_streams (merchant_id, process, until)
             select merchant, $1, now() + make_interval(secs => $3) from unnest($2::bigint[]) as m (merchant) order by 1
             on conflict (merchant_id, process) do update set until = excluded.until`,
    values: [process, merchants, keptSeconds],
  });
}

/** Undoes {@link registerStreams}. */
export async function unregisterStreams(sql: Sql, process: string, merchants: readonly bigint[]): Promise<void> {
  await sql.query({
    name: 'unregister_streams',
    text: 'delete from event_streams where process = $1 and merchant_id = any ($2)',
    values: [process, merchants],
  });
}

/** The highest number that was ever drawn for an event, committed or not; 0 before the first. */
export async function lastEventNumber(sql: Sql): Promise<bigint> {
  const { rows } = await sql.query<{ last: bigint }>({
    name: 'last_event_number',
    text: `select coalesce(pg_sequence_last_value('events_id_seq'), 0) as last`,
    values: [],
  });
  return rows[0]?.last ?? 0n;
}

/** The database transactions that write events now and have not ended. */
export async function eventWriters(sql: Sql): Promise<readonly string[]> {
  const { rows } = await sql.query<{ writer: string }>({
    name: 'event_writers',
    text: `select l.virtualtransaction as writer from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
            where l.locktype = 'advisory' and l.objsubid = 1 and l.granted
              and (l.classid::bigint << 32 | l.objid::bigint) = hashtextextended('event writers', 0)`,
    values: [],
  });
  return rows.map(({ writer }) => writer);
}

/** A database transaction that writes events. */
export type EventWriter = {
  /** Of its session's process at the server; null = it was prepared for a commit in two phases. */
  readonly pid: number | null;
  /** The name that its program gave itself. */
  readonly program: string;
  readonly sinceMs: number;
};

/** Those that write events and have been open for longer than this, the oldest first; by the database's clock, and whoever they belong to. */
export async function longEventWriters(sql: Sql, { longerThanMs, limit }: { longerThanMs: number; limit: number }) {
  const { rows } = await sql.query<{ pid: number | null; program: string | null; since: number }>({
    name: 'long_event_writers',
    text: `select l.pid, a.application_name as program, (l.objid::bigint + 1577836800)::float8 as since
             from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database()
             left join pg_stat_activity a on a.pid = l.pid
            where l.locktype = 'advisory' and l.objsubid = 2 and l.classid = hashtext('event writers since')::oid
              and l.objid::bigint + 1577836800 < extract(epoch from now()) - $1::float8 / 1000
            order by l.objid::bigint limit $2`,
    values: [longerThanMs, limit],
  });
  return rows.map(({ pid, program, since }): EventWriter => ({ pid, program: program ?? '', sinceMs: since * 1000 }));
}

export type EventNumber = {
  readonly id: bigint;
  readonly merchantId: bigint;
  /** Tells it from another event with the same number: of a database that was put back. */
  readonly mark: string;
};
type RawNumber = { id: bigint; merchant_id: bigint; mark: string };
const NUMBER = `id, merchant_id, concat_ws(' ', object_id, sequence, extract(epoch from at)) as mark`;
const numberOf = ({ id, merchant_id, mark }: RawNumber): EventNumber => ({ id, merchantId: merchant_id, mark });

/** The numbers of committed events above this one, in order, of all merchants. */
export async function eventNumbersAfter(sql: Sql, after: bigint, limit: number): Promise<readonly EventNumber[]> {
  const { rows } = await sql.query<RawNumber>({
    name: 'event_numbers_after',
    text: `select ${NUMBER} from events where id > $1 order by id limit $2`,
    values: [after, limit],
  });
  return rows.map(numberOf);
}

/** The last committed event up to this number, of all merchants; null when there is none. */
export async function lastNumberUpTo(sql: Sql, to: bigint): Promise<EventNumber | null> {
  const { rows } = await sql.query<RawNumber>({
    name: 'last_number_up_to',
    text: `select ${NUMBER} from events where id <= $1 order by id desc limit 1`,
    values: [to],
  });
  return rows[0] === undefined ? null : numberOf(rows[0]);
}

/** These events, in order. */
export async function readEvents(sql: Sql, ids: readonly bigint[]): Promise<readonly FoundEvent[]> {
  const { rows } = await sql.query<RawEvent>({
    name: 'read_events',
    text: `select ${EVENT_COLUMNS} from events e ${EVENT_OBJECTS} where e.id = any ($1) order by e.id`,
    values: [ids],
  });
  return rows.map(storedEvent);
}

/** The merchant's events with numbers above `after` and up to `to`, in order. */
export async function eventsBetween(
  sql: Sql,
  {
    merchantId,
    after,
    to,
    limit,
  }: { readonly merchantId: bigint; readonly after: bigint; readonly to: bigint; readonly limit: number },
): Promise<readonly FoundEvent[]> {
  const { rows } = await sql.query<RawEvent>({
    name: 'events_between',
    text: `select ${EVENT_COLUMNS} from (select * from events where merchant_id = $1 and id > $2 and id <= $3 order by id limit $4) e
            ${EVENT_OBJECTS} order by e.id`,
    values: [merchantId, after, to, limit],
  });
  return rows.map(storedEvent);
}

/** The merchant's last event up to this number; null when there is none. */
export async function lastEventOf(
  sql: Sql,
  merchantId: bigint,
  to: bigint,
): Promise<{ readonly objectId: string; readonly sequence: number } | null> {
  const { rows } = await sql.query<{ object_id: string; sequence: number }>({
    name: 'last_event_of',
    text: `select e.object_id, ${TOLD_SEQUENCE} as sequence from events e where e.merchant_id = $1 and e.id <= $2 order by e.id desc limit 1`,
    values: [merchantId, to],
  });
  return rows[0] === undefined ? null : { objectId: rows[0].object_id, sequence: rows[0].sequence };
}
