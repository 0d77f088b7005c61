// The job that pays bank accounts: reads what the bank has reported, makes a file when a banking day's business has ended, hands files over,
// and completes what can no longer come back. Any number of workers may run it: a file is worked on under a lease, and a crash anywhere leaves
// a state from which the next look goes on. A file whose hand-over ended without an answer is handed over again only when the bank has said
// that it does not have it.

import { type BankPort, BankTrouble, type KeptFiles } from '../../../core/ach/bank-port.ts';
import { lastCutOff } from '../../../core/ach/banking-days.ts';
import type { AchOrigin } from '../../../core/ach/nacha-file.ts';
import type { AskTrust } from '../../../core/payouts/intent.ts';
import { LEASE_MS } from '../../../core/payouts/states.ts';
import { type AchChecks, stopByInv20, whyNotHandedOver } from '../../../flow/ach/checks.ts';
import { makeAchFile } from '../../../flow/ach/files.ts';
import { acknowledgeFile, bookRefusal, completeFile, withdrawAlike } from '../../../flow/ach/progress.ts';
import type { Context } from '../../../flow/context.ts';
import { unfiledAchPayouts } from '../../../store/ach/entries.ts';
import { type AchFile, endAchLease, endedAchFiles, leaseAchFile, moveAchFile, noteAchLook } from '../../../store/ach/files.ts';
import { noteHandedOver } from '../../../store/ach/hand-overs.ts';
import { openBreakers } from '../../../store/ledger/breakers.ts';
import { isComparedSince } from '../../../store/payouts/comparisons.ts';
import type { Job } from '../../loop.ts';
import type { Telling } from '../driver-options.ts';
import { tried } from '../tried.ts';
import { bookKeptReports, type ReadReports, readReports } from './bank-reports.ts';
import { isWhole } from './comparison.ts';
import { forgottenFiles } from './file-places.ts';

export const ACH_JOB = 'ach';
const LOOK_MS = 15_000;
/** The same while no file is under way: banks and their days are slower than that. */
const REST_MS = 60_000;
const SPREAD = 0.1;
/** A file that lies where the bank takes it from for longer is told. */
const TAKEN_WITHIN_MS = 4 * 3_600_000;

/** What has just become so when a process dies there: in the order of a payout's way. */
export const ACH_STEPS = [
  'ach-made',
  'ach-kept',
  'ach-leaving',
  'ach-handed',
  'ach-acknowledged',
  'ach-read',
  'ach-completed',
] as const;
export type AchStep = (typeof ACH_STEPS)[number];

export type AchOptions = Telling & {
  readonly bank: BankPort;
  readonly files: KeptFiles;
  readonly origin: AchOrigin;
  /** Who may have signed a payout: asked before each file is made or handed over. Null while nobody says it. */
  readonly intents: AskTrust;
  /** Names this worker in leases. */
  readonly owner: string;
  /** Called with each step that was reached, before the next: tests stop a process there (main/sandbox/failpoints). */
  readonly reached?: (step: AchStep) => Promise<void>;
};

/**
 * The job that makes bank files at the cut-off hour, hands them over and reads what the bank says. It looks often only while something is
 * under way.
 */
export function achJob(ctx: Context, options: AchOptions): Job {
  let isUnderWay = true;
  return {
    name: ACH_JOB,
    everyMs: (chance) => (isUnderWay ? LOOK_MS : REST_MS) * (1 - SPREAD * chance),
    urgent: true,
    async run() {
      const beganMs = ctx.ports.clock.now();
      isUnderWay = true;
      const { setAside, handled } = await look(ctx, options, beganMs);
      isUnderWay = setAside === null || handled > 0;
      // what a look before the comparison leaves in the database would pass for one of the state that was put back
      if (await isComparedSince(ctx.db, 'USD')) await noteAchLook(ctx.db, beganMs, setAside);
      return false;
    },
  };
}

type Looked = {
  /** What is set aside of the bank's reports; null when they were not read. */
  readonly setAside: readonly string[] | null;
  /** How many files were worked on. */
  readonly handled: number;
};

async function look(ctx: Context, options: AchOptions, nowMs: number): Promise<Looked> {
  const { files } = options;
  const bookReports = () => bookKeptReports(ctx, files);
  if (!(await isWhole(ctx, { ...options, bookReports }))) return { setAside: null, handled: 0 };
  const forgotBefore = await whySilent(ctx, options);
  const read = await tried<ReadReports | null>(options, 'what the bank reports', () => readReports(ctx, options), null);
  if (read !== null) {
    const cutOffMs = Math.max(read.cutOffMs ?? Number.NEGATIVE_INFINITY, lastCutOff(nowMs));
    await tried(options, 'making bank files', () => makeFiles(ctx, options, cutOffMs), undefined);
  }
  // what nobody can read may be all that says that the bank has a file, where our list has forgotten it
  const mayBeReported = (name: string, wasAsked: boolean): boolean =>
    read === null || read.reported.has(name) || (wasAsked && read.held === 'all');
  const handled = await handOver(ctx, { ...options, mayBeReported });
  if (read === null) return { setAside: null, handled };
  const waits = await completeEnded(ctx, options, { held: read.held, nowMs, forgotBefore });
  return { setAside: [...read.setAside, ...waits], handled };
}

/**
 * Completes files of which the bank sends nothing back any more: only when every return that it had reported by then is booked, and never because
 * a folder says nothing that is not mounted or was put back, before its reports were read or after that.
 * @param forgotBefore why nothing that the bank did not report counts
 * @returns what is in the way, in words
 */
async function completeEnded(
  ctx: Context,
  options: AchOptions,
  { held, nowMs, forgotBefore }: Pick<ReadReports, 'held'> & { readonly nowMs: number; readonly forgotBefore: string | null },
): Promise<readonly string[]> {
  if (held === 'all') return [];
  const ended = (await endedAchFiles(ctx.db, nowMs)).filter((name) => !held.has(name));
  if (ended.length === 0) return [];
  const forgotten = forgotBefore ?? (await whySilent(ctx, options));
  if (forgotten !== null) {
    const why = `payouts of bank file ${ended.join(', ')} are not completed: ${forgotten}`;
    options.onTrouble(why);
    return [why];
  }
  for (const name of ended) await tried(options, `bank file ${name}`, () => complete(ctx, options, name), undefined);
  return [];
}

async function complete(ctx: Context, { reached }: AchOptions, name: string): Promise<void> {
  await completeFile(ctx, name);
  await reached?.('ach-completed');
}

async function makeFiles(ctx: Context, options: AchOptions, cutOffMs: number): Promise<void> {
  const { files, onTrouble } = options;
  if ((await unfiledAchPayouts(ctx.db, { untilMs: cutOffMs, nowMs: ctx.ports.clock.now() })).length === 0) return;
  for (let made = 'made'; made === 'made'; ) {
    const checks = await checksOf(options);
    if (checks === null) {
      onTrouble(`payouts by ach wait: ${UNTOLD}`);
      return;
    }
    made = await makeAchFile(ctx, { ...checks, cutOffMs, kept: await files.names(), onTrouble });
    if (made === 'made') await options.reached?.('ach-made');
    if (made === 'too_many_files') onTrouble('payouts by ach wait for tomorrow: a day has 36 files');
    if (made === 'no_traces') onTrouble('payouts by ach wait: each trace number of our bank was given within a year');
  }
}

/** What each payout is compared with: read anew, for keys and copies may have been added. */
async function checksOf({ origin, intents, files }: AchOptions): Promise<AchChecks | null> {
  const isIntended = await intents();
  return isIntended === null ? null : { origin, isIntended, keptFiles: await filesByReference(files) };
}
const UNTOLD = 'the signer does not say which APIs are trusted';

async function filesByReference(files: KeptFiles): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, string[]>();
  for (const name of await files.names())
    for (const reference of await files.references(name)) found.set(reference, [...(found.get(reference) ?? []), name]);
  return found;
}

/** With whether the bank may have reported something of a file that is not booked: it may say that the bank has it. */
type HandOver = AchOptions & { readonly mayBeReported: (name: string, wasAsked: boolean) => boolean };

/** @returns how many files it has worked on */
async function handOver(ctx: Context, options: HandOver): Promise<number> {
  const { clock } = ctx.ports;
  for (const seen: string[] = []; ; ) {
    const nowMs = clock.now();
    const leased = await leaseAchFile(ctx.db, { owner: options.owner, nowMs, untilMs: nowMs + LEASE_MS, not: seen });
    if (leased === null) return seen.length;
    const file = { ...leased, bytes: ctx.ports.sealing.open(leased.bytes, leased.name) };
    seen.push(file.name);
    await tried(options, `bank file ${file.name}`, () => handOverOne(ctx, options, file), undefined);
  }
}

async function handOverOne(ctx: Context, options: HandOver, file: AchFile): Promise<void> {
  const trouble = await drive(ctx, options, file);
  if (trouble !== null) options.onTrouble(`bank file ${file.name}: ${trouble}`);
  await endAchLease(ctx.db, file, trouble);
}

/** Takes one file as far as the bank lets it. Returns what is in its way. */
async function drive(ctx: Context, options: HandOver, file: AchFile): Promise<string | null> {
  let { state } = file;
  try {
    // its worker died, or stopped for longer than a call may take: the bank may have it
    if (state === 'uploading' && (await moveAchFile(ctx.db, file, 'uploading', 'unknown'))) state = 'unknown';
    // whatever is stored, the bank may have what our folder has a copy of
    if (state === 'built' && (await options.files.names()).includes(file.name)) {
      if (!(await moveAchFile(ctx.db, file, 'built', 'unknown'))) return null;
      state = 'unknown';
    }
    const wasAsked = state === 'unknown';
    if (wasAsked) {
      const said = await options.bank.ask(file);
      if (said.state !== 'never') return settled(ctx, file, said);
      const forgotten = await whyForgotten(ctx, options);
      if (forgotten !== null) return forgotten;
      if (!(await moveAchFile(ctx.db, file, 'unknown', 'built'))) return null;
      state = 'built';
    }
    if (state !== 'built' || (await openBreakers(ctx.db)).length > 0) return null;
    if (options.mayBeReported(file.name, wasAsked))
      return 'what the bank has reported, and may say that it has the file, waits to be booked';
    const checks = await checksOf(options);
    if (checks === null) return UNTOLD;
    const against = await whyNotHandedOver(ctx, checks, file);
    if (against !== null) return against;
    const alike = await withdrawAlike(ctx, file.name);
    if (alike.length > 0)
      return `it is withdrawn, and its payouts have failed: ${alike.join(', ')} may be what a forgotten bank file has paid, and a person is asked when it is requested again`;
    const forgotten = await whyForgotten(ctx, options);
    if (forgotten !== null) return forgotten;
    if (!(await options.files.keep(file))) return stopOnOther(ctx, file);
    await options.reached?.('ach-kept');
    if (!(await moveAchFile(ctx.db, file, 'built', 'uploading'))) return null;
    await options.reached?.('ach-leaving');
    const said = await options.bank.handOver(file);
    await options.reached?.('ach-handed');
    const trouble = await settled(ctx, file, said);
    await options.reached?.('ach-acknowledged');
    return trouble;
  } catch (error) {
    if (!(error instanceof BankTrouble)) throw error;
    return askedAfterwards(ctx, options, file, error);
  }
}

/** Why nothing that the bank says of a file counts, and nothing is handed over to it; null when it does. */
async function whyForgotten(ctx: Context, { bank }: AchOptions): Promise<string | null> {
  const [name] = await forgottenFiles(ctx, bank);
  if (name === undefined) return null;
  return `the bank's folder does not know ${name}, which was handed over (handed/): is it mounted, was it put back? (where it was lost: docs/custody.md says what to do, in this order)`;
}

/** Why nothing follows from what the bank does not report; null when it does. */
async function whySilent(ctx: Context, options: AchOptions): Promise<string | null> {
  try {
    return await whyForgotten(ctx, options);
  } catch (error) {
    if (!(error instanceof BankTrouble)) throw error;
    return `the bank cannot be asked what it was given: ${error.message}`;
  }
}

type Said = Awaited<ReturnType<BankPort['handOver']>> | Awaited<ReturnType<BankPort['ask']>>;

/** `accepted` and `duplicate` both mean that the bank has it; `waiting`, that it may still take it. */
async function settled(ctx: Context, file: AchFile, said: Said): Promise<string | null> {
  if (said.state === 'refused') {
    await bookRefusal(ctx, file.name, said.reason);
    return `the bank refused it: ${said.reason}`;
  }
  if (said.state === 'waiting') {
    await noteHandedOver(ctx.db, file.name, ctx.ports.clock.now());
    await moveAchFile(ctx.db, file, 'uploading', 'unknown');
    return said.forMs > TAKEN_WITHIN_MS ? `the bank has not taken it for ${Math.floor(said.forMs / 3_600_000)} hours` : null;
  }
  await acknowledgeFile(ctx, file.name);
  return null;
}

/** Our connection has ended without an answer: the bank is asked once at once, and with every look until it says. */
async function askedAfterwards(ctx: Context, options: AchOptions, file: AchFile, error: BankTrouble): Promise<string | null> {
  await moveAchFile(ctx.db, file, 'uploading', 'unknown');
  try {
    const said = await options.bank.ask(file);
    return said.state === 'never' ? error.message : await settled(ctx, file, said);
  } catch (again) {
    if (!(again instanceof BankTrouble)) throw again;
    return error.message;
  }
}

async function stopOnOther(ctx: Context, { name }: AchFile): Promise<string> {
  const finding = `our folder has another bank file ${name}: the database is older than what was handed over`;
  await stopByInv20(ctx, ctx.db, [finding]);
  return finding;
}
