// Books what the bank reports. Each report stays with the bank until it is booked and kept in our folder; one that cannot be booked yet is set
// aside and told, and holds back only the completion of the files that it may concern.
import { type BankPort, type BankReport, BankTrouble, type KeptFiles } from '../../../core/ach/bank-port.ts';
import { beginsAsNacha, isDispute, NachaMalformed, type ReadFile, readNachaFile } from '../../../core/ach/nacha-reader.ts';
import { stopByInv20 } from '../../../flow/ach/checks.ts';
import {
  acknowledgeFile,
  bookNotice,
  bookRefusal,
  bookReturn,
  fileOf,
  isAboutOurs,
  returnedFile,
  stopOnRefused,
} from '../../../flow/ach/progress.ts';
import type { Context } from '../../../flow/context.ts';
import { areInOpenFile, hasReturned, wasExecuted } from '../../../store/ach/entries.ts';
import { setAchOver } from '../../../store/ach/files.ts';
import { listed } from '../../alarm.ts';
import { type Placed, whereFileIs } from './file-places.ts';

export type Reporting = {
  readonly bank: BankPort;
  readonly files: KeptFiles;
  readonly onTrouble: (what: string) => void;
  /** Called when a report is booked, before the bank is told so. */
  readonly reached?: (step: 'ach-read') => Promise<void>;
};

/** What one reading of the bank's reports leaves. */
export type ReadReports = {
  /** When the bank asked for what waits; null = it did not. */
  readonly cutOffMs: number | null;
  /** Files that may have returns which are not booked: they are not completed. `all` = no one can say which. */
  readonly held: ReadonlySet<string> | 'all';
  /** Files that a report which is not booked, or is being written, names: the bank may have them. */
  readonly reported: ReadonlySet<string>;
  /** What keeps a report from being booked, one sentence each. */
  readonly setAside: readonly string[];
};

/** `waits`: it must be booked later; `of` are the files that it may concern. `booked`: as a copy of it is kept, where what else it says is booked. */
type Waits = {
  readonly how: 'waits';
  readonly of: readonly string[] | 'all';
  readonly why: string;
  readonly booked?: BankReport;
};
type Booked = { readonly how: 'booked' } | Waits;
const BOOKED: Booked = { how: 'booked' };

/** Books the bank's reports. Null when they could not be read. */
export async function readReports(ctx: Context, { bank, files, onTrouble, reached }: Reporting): Promise<ReadReports | null> {
  try {
    const { cutOffMs, reports } = await bank.news();
    const waiting: Waits[] = [];
    const place = (file: string): Promise<Placed> => whereFileIs(ctx, bank, file);
    const begun: string[] = [];
    for await (const report of reports) {
      if (report.kind === 'begun') {
        // it comes to rest within a minute: that is nothing to tell
        begun.push(report.file);
        continue;
      }
      const booked = await bookReport(ctx, report, { onTrouble, place });
      if (booked.how === 'waits') {
        onTrouble(booked.why);
        waiting.push(booked);
        // a person takes it away, and a database that is put back must learn of what was booked all the same
        if (booked.booked !== undefined) await files.keepReport(booked.booked);
        continue;
      }
      await reached?.('ach-read');
      await files.keepReport(report);
      await bank.acknowledge(report.id);
    }
    const concerned = waiting.map(({ of }) => of);
    const reported = new Set([...begun, ...concerned.flatMap((of) => (of === 'all' ? [] : of))]);
    const held = concerned.includes('all') ? 'all' : reported;
    return { cutOffMs, held, reported, setAside: waiting.map(({ why }) => why) };
  } catch (error) {
    if (!(error instanceof BankTrouble)) throw error;
    onTrouble(`the bank cannot be asked: ${error.message}`);
    return null;
  }
}

/** Books again what our folder has kept of the bank's reports. @returns why one of them waits; null = none does */
export async function bookKeptReports(ctx: Context, files: KeptFiles): Promise<string | null> {
  const booking = { onTrouble: () => undefined, place: null, refused: new Set<string>() };
  for await (const report of await files.reports()) {
    const booked = await bookReport(ctx, report, booking);
    if (booked.how === 'waits') return booked.why;
    if (report.kind === 'refused') booking.refused.add(report.file);
  }
  return null;
}

type Booking = {
  readonly onTrouble: (what: string) => void;
  /** Where one of our files is. Null for a report that was kept: it was compared and told when it came. */
  readonly place: ((file: string) => Promise<Placed>) | null;
  /** Of kept reports: files that an earlier one refuses. */
  readonly refused?: ReadonlySet<string>;
};

async function bookReport(ctx: Context, report: BankReport, booking: Booking): Promise<Booked> {
  if (report.kind === 'begun') return { how: 'waits', of: [report.file], why: `${report.id} of the bank is being written` };
  if (report.kind === 'over') {
    await setAchOver(ctx.db, report.file);
    return BOOKED;
  }
  if (report.kind === 'had' || report.kind === 'refused') {
    // what failed by it would be given back although it is paid
    if (report.kind === 'refused' && (await hasReturned(ctx.db, report.file)))
      return booking.place === null ? BOOKED : contradicts(report);
    const waits = await beforeItLeft(ctx, report.id, [report.file], booking);
    if (waits !== null) return waits;
    // an operator has booked since that the bank has executed it: what it says anew counts, what it had said does not
    if (report.kind === 'refused' && booking.place === null && (await wasExecuted(ctx.db, report.file))) return BOOKED;
    if (report.kind === 'refused') return aboutFile(report, await bookRefusal(ctx, report.file, report.reason));
    await tellRefused(ctx, report.file, booking);
    return aboutFile(report, (await acknowledgeFile(ctx, report.file)) ? 'booked' : 'unknown');
  }
  if (report.kind === 'unreadable' || !beginsAsNacha(report.content)) {
    const why = report.kind === 'unreadable' ? report.reason : 'it is no NACHA file';
    return {
      how: 'waits',
      of: report.kind === 'unreadable' && report.mayReturn === true ? 'all' : [],
      why: `${report.id} of the bank says nothing that can be booked: ${why}; look at it and take it away`,
    };
  }
  return bookNacha(ctx, report, booking);
}

function contradicts({ id, file }: Extract<BankReport, { readonly file: string }>): Booked {
  const why = `${id} of the bank refuses file ${file}, of which it has sent an entry back, so it has executed it: ask the bank, and take the report away`;
  return { how: 'waits', of: [file], why };
}

/**
 * What the bank says of a file that it cannot have counts for nothing: the report is old, somebody else's or forged, and booked it would end
 * payouts that nobody has paid, or give back what may still be paid. Null where it has all of these files, or none of them is ours.
 */
async function beforeItLeft(ctx: Context, id: string, about: readonly string[], { place }: Booking): Promise<Booked | null> {
  if (place === null) return null;
  const places = new Map<string, Placed>();
  for (const file of new Set(about)) places.set(file, await place(file));
  const [early] = [...places].find(([, at]) => at === 'here') ?? [];
  const [waiting] = [...places].find(([, at]) => at === 'outgoing') ?? [];
  if (early !== undefined) {
    const why = `${id} of the bank is about file ${early}, which was never handed over as far as the bank's list shows: ask the bank, and take the report away (where the bank has the file all the same, its list was lost: docs/custody.md says what to do then, in this order)`;
    await stopByInv20(ctx, ctx.db, [why]);
    return { how: 'waits', of: about, why };
  }
  if (waiting === undefined) return null;
  const why = `${id} of the bank is about file ${waiting}, which still lies where the bank takes it from: ask the bank, and take the report away, or the file if the bank has it`;
  return { how: 'waits', of: about, why };
}

/** How it ends for a currency that no exchange trades any more. */
const NEVER_AGAIN =
  ' (where there will be none again: BURSAR_RATE_SOURCES can name two addresses of yours that answer one as exchanges do)';

function aboutFile({ id, file }: Extract<BankReport, { readonly file: string }>, how: 'booked' | 'unknown' | 'unpriced'): Booked {
  if (how === 'booked') return BOOKED;
  if (how === 'unpriced') return { how: 'waits', of: [file], why: `${id} of the bank waits for a rate${NEVER_AGAIN}` };
  return { how: 'waits', of: [], why: `${id} of the bank is about a file ${file}, and there is none; give it the right name` };
}

async function bookNacha(
  ctx: Context,
  report: Extract<BankReport, { readonly kind: 'nacha' }>,
  booking: Booking,
): Promise<Booked> {
  const entries = entriesOf(report);
  if (entries instanceof NachaMalformed) {
    const why = `${report.id} of the bank cannot be read, and nothing is completed before it is: ${entries.message}`;
    return { how: 'waits', of: 'all', why };
  }
  const waits = await beforeItLeft(ctx, report.id, await returnedFiles(ctx, entries, booking), booking);
  if (waits !== null) return waits;
  const unpriced: ReadFile['entries'][number][] = [];
  const disputed = entries.filter(({ returned }) => returned !== null && isDispute(returned.code));
  const unclear: ReadFile['entries'][number][] = [];
  for (const entry of entries) {
    if (report.leftOut?.includes(nameOf(entry)) === true) continue;
    const how = disputed.includes(entry) ? 'booked' : await bookEntry(ctx, entry, booking);
    if (how === 'unpriced') unpriced.push(entry);
    if (how === 'unclear') unclear.push(entry);
  }
  // whoever takes it away for one of them must know of the others
  const waiting = [
    await aboutUnpriced(ctx, report.id, unpriced),
    aboutUnclear(report.id, unclear),
    await aboutDisputes(ctx, report.id, disputed, booking),
  ].filter((one) => one !== null);
  if (waiting.length === 0) return BOOKED;
  const concerned = waiting.map(({ of }) => of);
  const of = concerned.includes('all') ? 'all' : concerned.flat();
  const why = waiting.map((one) => one.why).join('; and ');
  // a copy that waits for a rate would hold up all payouts by ach at the next start; its report waits, and holds up only what it concerns
  return { how: 'waits', of, why, booked: { ...report, leftOut: [...unclear, ...unpriced].map(nameOf) } };
}

/** What names a return in its report: two of one number and name are not the same where their amounts differ. */
const nameOf = ({ returned, id, cents }: ReadFile['entries'][number]): string => `${returned?.trace} ${id} ${cents}`;

async function aboutUnpriced(ctx: Context, id: string, unpriced: ReadFile['entries']): Promise<Waits | null> {
  const [first] = unpriced;
  if (first === undefined) return null;
  const why = `${id} of the bank waits for a rate (trace number ${first.returned?.trace}), and must stay until then${NEVER_AGAIN}`;
  return { how: 'waits', of: await filesOf(ctx, unpriced), why };
}

function aboutUnclear(id: string, unclear: ReadFile['entries']): Waits | null {
  if (unclear.length === 0) return null;
  const traces = listed(
    unclear.map(({ returned }) => returned?.trace ?? ''),
    ', ',
  );
  const why = `${id} of the bank returns trace number ${traces} with another name or amount than was paid, and nothing is completed before somebody has asked the bank which payout came back: take the report away then, or lay the right one in its place`;
  return { how: 'waits', of: 'all', why };
}

/** Who has the money then is for the banks to say, and for a person to settle. */
async function aboutDisputes(ctx: Context, id: string, disputed: ReadFile['entries'], { place }: Booking): Promise<Waits | null> {
  const [first] = disputed;
  if (first === undefined || place === null) return null;
  const why = `${id} of the bank says that a return is disputed (trace number ${first.returned?.trace}, ${first.returned?.code}), which moves nothing here: ask the bank who has the money, settle it, and take the report away (where the money has come back, the bank sends the return itself)`;
  return { how: 'waits', of: await filesOf(ctx, disputed), why };
}

async function filesOf(ctx: Context, entries: ReadFile['entries']): Promise<readonly string[]> {
  const named = entries.map((entry) => ({ trace: entry.returned?.trace ?? '', reference: entry.id }));
  return (await Promise.all(named.map((one) => fileOf(ctx, one)))).filter((file) => file !== null);
}

/** The files that have one of these entries, where the bank may not have all of them. */
async function returnedFiles(ctx: Context, entries: ReadFile['entries'], { place }: Booking): Promise<readonly string[]> {
  const returned = entries.flatMap((entry) =>
    entry.returned === null ? [] : [{ ...entry.returned, reference: entry.id, cents: entry.cents }],
  );
  if (place === null || !(await areInOpenFile(ctx.db, returned))) return [];
  const files: string[] = [];
  for (const one of returned) {
    const file = await returnedFile(ctx, one);
    if (file !== null) files.push(file);
  }
  return files;
}

function entriesOf(report: Extract<BankReport, { readonly kind: 'nacha' }>): ReadFile['entries'] | NachaMalformed {
  try {
    return readNachaFile(report.content).entries;
  } catch (error) {
    if (!(error instanceof NachaMalformed)) throw error;
    return error;
  }
}

/** @returns `unclear`: it concerns a payout of ours, and nobody knows which, or what of it came back */
async function bookEntry(
  ctx: Context,
  entry: ReadFile['entries'][number],
  booking: Booking,
): Promise<'booked' | 'unpriced' | 'unclear'> {
  if (entry.change !== null) {
    const notice = { ...entry.change, reference: entry.id };
    const isOurs = await bookNotice(ctx, notice);
    await tellRefused(ctx, await fileOf(ctx, notice), booking);
    booking.onTrouble(
      `the bank asks for other details of ${isOurs ? '' : 'an unknown '}trace number ${entry.change.trace} (${entry.change.code})`,
    );
    return 'booked';
  }
  if (entry.returned === null) {
    booking.onTrouble(`entry ${entry.trace} in a report of the bank is no return`);
    return 'booked';
  }
  const returned = { ...entry.returned, reference: entry.id, cents: entry.cents, error: entry.returned.code };
  const how = await bookReturn(ctx, returned, { stopsOnUnknown: booking.place !== null });
  if (how === 'unknown') {
    booking.onTrouble(
      `the bank returns trace number ${returned.trace}, which is not what was paid: nothing of it is booked, and payouts are stopped`,
    );
    return booking.place !== null && (await isAboutOurs(ctx, returned)) ? 'unclear' : 'booked';
  }
  if (how === 'booked' || booking.place === null) await tellRefused(ctx, await fileOf(ctx, returned), booking);
  return how === 'unpriced' ? 'unpriced' : 'booked';
}

/** A file that was refused was executed all the same. A database that was put back may have forgotten that this has stopped payouts. */
async function tellRefused(ctx: Context, file: string | null, { onTrouble, place, refused }: Booking): Promise<void> {
  if (file === null || (place === null && refused?.has(file) !== true)) return;
  const finding = await stopOnRefused(ctx, file, place !== null);
  if (finding !== null) onTrouble(finding);
}
