// Which bank files certainly lay where the bank takes them from: a folder that does not know one of them any more is not the one that it was.
import type { DatedFile } from '../../core/ach/bank-port.ts';
import type { Sql } from '../postgres/connect.ts';

/** Notes that a file lies where the bank takes it from; the first time counts. */
export async function noteHandedOver(sql: Sql, name: string, atMs: number): Promise<void> {
  await sql.query({
    name: 'note_ach_handed_over',
    text: 'update ach_files set handed_at = $2 where name = $1 and handed_at is null',
    values: [name, new Date(atMs)],
  });
}

/** The files that were handed over last, whatever became of them, newest first. */
export async function lastHandedOver(sql: Sql, limit: number): Promise<readonly DatedFile[]> {
  const { rows } = await sql.query<{ name: string; handed_at: Date }>({
    name: 'last_ach_handed_over',
    text: 'select name, handed_at from ach_files where handed_at is not null order by handed_at desc, name desc limit $1',
    values: [limit],
  });
  return rows.map(({ name, handed_at }) => ({ name, atMs: handed_at.getTime() }));
}

/** Notes why nothing by ach goes on; what was noted of the bank's reports before is left out meanwhile. */
export async function noteAchStands(sql: Sql, why: string): Promise<void> {
  await sql.query({
    name: 'note_ach_stands',
    text: 'update bank_reads set set_aside = array[$1] where set_aside <> array[$1]',
    values: [why],
  });
}

/** What is in the way of files that the bank does not certainly have, one sentence each, oldest first. */
export async function troubledAchFiles(sql: Sql): Promise<readonly string[]> {
  const { rows } = await sql.query<{ name: string; trouble: string }>({
    name: 'troubled_ach_files',
    text: `select name, trouble from ach_files where state in ('built', 'uploading', 'unknown') and trouble is not null order by created_at`,
    values: [],
  });
  return rows.map(({ name, trouble }) => `bank file ${name}: ${trouble}`);
}

/** Whether nothing that nobody holds waits to be put into a bank file, or handed over with one; so too while a breaker stops all of it. */
export async function isAllHandedOver(sql: Sql, untilMs: number): Promise<boolean> {
  const { rows } = await sql.query<{ done: boolean }>({
    name: 'is_all_handed_over',
    text: `select exists (select from breakers where cleared_at is null)
               or not exists (select from payouts where method = 'ach' and step = 'queued' and held_reason is null and created_at <= $1)
                  and not exists (select from ach_files where state in ('built', 'uploading', 'unknown')) as done`,
    values: [new Date(untilMs)],
  });
  return rows[0]?.done === true;
}

/** The bank has a file that it had refused. @param days of its returns begin; null: nothing of it is left that could come back */
export async function setAchExecuted(
  sql: Sql,
  name: string,
  atMs: number,
  days: { readonly settlesOn: string; readonly returnsEndMs: number } | null,
): Promise<void> {
  await sql.query({
    name: 'set_ach_executed',
    text: `update ach_files set state = 'acked', handed_at = coalesce(handed_at, $2), settles_on = greatest(settles_on, $3::date), returns_end = greatest(returns_end, $4), is_over = false
            where name = $1`,
    values: [name, new Date(atMs), days?.settlesOn ?? null, days === null ? null : new Date(days.returnsEndMs)],
  });
}
