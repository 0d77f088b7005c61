// The entries of forgotten bank files that were booked as paid to nobody known: which payout each has paid after all, and what came back of them.
import { atLeastZero, minus, sum } from '../../core/money.ts';
import type { AskedAbout } from '../../core/payouts/lost-questions.ts';
import { askedAbout } from '../payouts/after-restore/lost-questions.ts';
import type { Sql } from '../postgres/connect.ts';

/** What is one entry: a trace number may stand in another file too. */
type Place = { readonly file: string; readonly trace: string };
export type LostEntry = Place & {
  readonly cents: bigint;
  /** What names its payout in the file. */
  readonly reference: string;
  /** The payout that it has paid, as a person has found; of several the first. */
  readonly paid: string | null;
  /** The code of the bank's return. */
  readonly returned: string | null;
};
type Row = Omit<LostEntry, 'cents'> & { cents: string };
const COLUMNS = 'l.file, l.trace, l.cents, l.reference, l.paid, l.returned';
const entryFrom = (row: Row): LostEntry => ({ ...row, cents: BigInt(row.cents) });

/** Notes the entries of a file that were booked as lost; `paid`: the payouts that some of them have paid, by trace number. */
export async function insertLostEntries(
  sql: Sql,
  file: string,
  entries: readonly Pick<LostEntry, 'trace' | 'reference' | 'cents'>[],
  paid: ReadonlyMap<string, string>,
): Promise<void> {
  await sql.query({
    name: 'insert_lost_ach_entries',
    text: `insert into lost_ach_entries (file, trace, reference, cents, paid)
             select $1, t.trace, t.reference, t.cents, t.paid from unnest($2::text[], $3::text[], $4::numeric[], $5::text[]) as t(trace, reference, cents, paid)`,
    values: [
      file,
      entries.map(({ trace }) => trace),
      entries.map(({ reference }) => reference),
      entries.map(({ cents }) => cents),
      entries.map(({ trace }) => paid.get(trace) ?? null),
    ],
  });
}

export type OpenLostEntry = LostEntry & {
  /** In cents, without what it was found to have paid. */
  readonly left: bigint;
  /** The payouts to the same account about which a person was asked because of it, and those that it has paid. */
  readonly asked: readonly AskedAbout[];
  /** Whether a payout was requested before it was booked as lost; of no payout: false. */
  readonly isSince: boolean;
};

/** SQL: the ids of the payouts that a lost entry `l` has paid, as a person has found. */
export const PAID_BY_LOST = `select l.paid as id where l.paid is not null
  union select q.payout_id from lost_questions q join ledger.entry n on n.key = 'adopted:' || q.payout_id
         where q.currency = 'USD' and q.txid = l.file and q.place = l.trace`;

/**
 * Those that have paid more than the payouts that are known to be paid by them, that did not come back, and whose file was not refused; what was booked
 * first comes first. Locked, with their files before them: what the bank says meanwhile waits.
 */
export async function openLostEntries(sql: Sql, payoutId: string | null): Promise<readonly OpenLostEntry[]> {
  await sql.query({
    name: 'lock_open_lost_ach_files',
    text: `select from ach_files where state <> 'refused' and name in (
             select l.file from lost_ach_entries l left join payouts p on p.id = l.paid
              where l.returned is null and (l.paid is null or p.amount < l.cents)) order by name for share`,
    values: [],
  });
  const { rows } = await sql.query<Row & { isSince: boolean; merchantId: bigint | null; amount: string | null }>({
    name: 'open_lost_ach_entries',
    // in the order in which the database has booked them: a clock may have been set
    text: `select ${COLUMNS}, p.merchant_id as "merchantId", p.amount, coalesce(b.id > (select id from ledger.entry where key = 'po:' || $1 || ':hold'), false) as "isSince"
             from lost_ach_entries l join ach_files f on f.name = l.file left join payouts p on p.id = l.paid cross join
                  lateral (select min(e.id) as id from ledger.entry e where e.key in ('unknown:usd:' || l.file, 'unknown:usd:' || l.file || ':executed')) b
            where (l.paid is null or p.amount < l.cents) and l.returned is null and f.state <> 'refused' order by b.id, l.trace for update of l`,
    values: [payoutId],
  });
  if (rows.length === 0) return [];
  const askedBecauseOf = await askedAbout(
    sql,
    'USD',
    rows.map(({ file }) => file),
  );
  return rows.map(({ isSince, merchantId, amount, ...row }) => {
    const { paid, cents } = entryFrom(row);
    const because = askedBecauseOf({ txid: row.file, place: row.trace });
    const first =
      paid === null || merchantId === null || because.some(({ payoutId }) => payoutId === paid)
        ? []
        : [{ payoutId: paid, merchantId, amount: BigInt(amount ?? 0), isPaid: true }];
    const asked = [...first, ...because];
    const known = sum(asked.flatMap((one) => (one.isPaid ? [one.amount] : [])));
    return { ...entryFrom(row), isSince, asked, left: atLeastZero(minus(cents, known)) };
  });
}

export type PaidByLost = {
  readonly trace: string;
  readonly payoutId: string;
  readonly amount: bigint;
  /** It has not come back. */
  readonly isPaid: boolean;
};

/** The payouts that the lost entries of a file have paid, as a person has found, but those of entries that the bank has returned. */
export async function paidByLost(sql: Sql, file: string): Promise<readonly PaidByLost[]> {
  const { rows } = await sql.query<Omit<PaidByLost, 'amount'> & { amount: string }>({
    name: 'paid_by_lost_ach',
    text: `select l.trace, p.id as "payoutId", p.amount, p.status = 'completed' as "isPaid"
             from lost_ach_entries l cross join lateral (${PAID_BY_LOST}) of join payouts p on p.id = of.id
            where l.file = $1 and l.returned is null order by l.trace, p.id`,
    values: [file],
  });
  return rows.map(({ amount, ...row }) => ({ ...row, amount: BigInt(amount) }));
}

/** Files as they are stored, by name: apart from their entries, of which each file has up to 1,000. */
export async function storedAchFiles(sql: Sql, names: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>> {
  const { rows } = await sql.query<{ name: string; bytes: Buffer }>({
    name: 'stored_ach_files',
    text: 'select name, bytes from ach_files where name = any ($1)',
    values: [names],
  });
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
}

/** The lost entries of a file. Who changes them locks the file first. */
export async function lostEntriesOf(sql: Sql, file: string): Promise<readonly LostEntry[]> {
  const { rows } = await sql.query<Row>({
    name: 'lost_ach_entries_of',
    text: `select ${COLUMNS} from lost_ach_entries l where l.file = $1 order by l.trace`,
    values: [file],
  });
  return rows.map(entryFrom);
}

/** The lost entry that a bank names; of several of one trace number the newest. @param reference empty where nothing names its payout */
export async function readLostEntry(sql: Sql, trace: string, reference: string): Promise<LostEntry | null> {
  const { rows } = await sql.query<Row>({
    name: 'read_lost_ach_entry',
    text: `select ${COLUMNS} from lost_ach_entries l join ach_files f on f.name = l.file
            where l.trace = $1 and $2 in ('', l.reference) order by f.created_at desc limit 1`,
    values: [trace, reference],
  });
  return rows[0] === undefined ? null : entryFrom(rows[0]);
}

/** The entry because of which a person was asked about a payout, where the bank has sent it back, or refused its file. */
export async function returnedOf(sql: Sql, payoutId: string): Promise<LostEntry | null> {
  const { rows } = await sql.query<Row>({
    name: 'returned_lost_ach_entry',
    text: `select ${COLUMNS} from lost_questions q join lost_ach_entries l on l.file = q.txid and l.trace = q.place join ach_files f on f.name = l.file
            where q.payout_id = $1 and q.currency = 'USD' and (l.returned is not null or f.state = 'refused')`,
    values: [payoutId],
  });
  return rows[0] === undefined ? null : entryFrom(rows[0]);
}

/** Of a file's entries that paid nobody known a person is asked once more; payouts that wait for him stay asked about. */
export async function askAgain(sql: Sql, file: string): Promise<void> {
  await sql.query({
    name: 'ask_again_lost_ach',
    text: `delete from lost_questions q using lost_ach_entries l
            where q.currency = 'USD' and q.txid = $1 and l.file = q.txid and l.trace = q.place and l.paid is null
              and not exists (select from payouts where id = q.payout_id and step = 'held')`,
    values: [file],
  });
}

/** A payout was found to be paid by an entry; null: its file was refused, so it has paid nobody. */
export async function setPaidBy(sql: Sql, { file, trace }: Place, payoutId: string | null): Promise<void> {
  await sql.query({
    name: 'set_lost_ach_paid',
    text: 'update lost_ach_entries set paid = $3 where file = $1 and trace = $2',
    values: [file, trace, payoutId],
  });
}

/** The bank has sent an entry back. @param code of NACHA's returns, as R03 */
export async function setLostReturned(sql: Sql, { file, trace }: Place, code: string): Promise<void> {
  await sql.query({
    name: 'set_lost_ach_returned',
    text: 'update lost_ach_entries set returned = $3 where file = $1 and trace = $2',
    values: [file, trace, code],
  });
}

/** The same for what has paid a payout. */
export async function setPaidReturned(sql: Sql, payoutId: string, code: string): Promise<void> {
  await sql.query({
    name: 'set_paid_lost_ach_returned',
    text: 'update lost_ach_entries set returned = $2 where paid = $1 and returned is null',
    values: [payoutId, code],
  });
}
