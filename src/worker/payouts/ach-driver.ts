// The job that pays bank accounts: reads what the bank has reported, makes a file when a banking day's business has ended, hands files over,
// and completes what can no longer come back. Any number of workers may run it: a file is worked on under a lease, and a crash anywhere leaves
// a state from which the next look goes on. A file whose hand-over ended without an answer is handed over again only when the bank has said
// that it does not have it.
import { type BankPort, type BankReport, BankTrouble, type KeptFiles } from '../../core/ach/bank-port.ts';
import { lastCutOff } from '../../core/ach/banking-days.ts';
import type { AchOrigin } from '../../core/ach/nacha-file.ts';
import { NachaMalformed, type ReadFile, readNachaFile } from '../../core/ach/nacha-reader.ts';
import type { PayoutIntent } from '../../core/payouts/intent.ts';
import { makeAchFile } from '../../flow/ach/files.ts';
import { acknowledgeFile, bookNotice, bookReturn, completeFile, refuseFile } from '../../flow/ach/progress.ts';
import type { Context } from '../../flow/context.ts';
import { openBreakers, tripBreaker } from '../../store/ledger/breakers.ts';
import {
  type AchFile,
  endAchLease,
  endedAchFiles,
  leaseAchFile,
  moveAchFile,
  noteAchLook,
  setAchOver,
} from '../../store/payouts/ach-files.ts';
import type { Job } from '../loop.ts';
import { isWhole } from './ach-comparison.ts';

export const ACH_JOB = 'ach';
const LOOK_MS = 15_000;
/** Longer than the adapters wait for the bank: after it, no hand-over of the worker that had the lease is under way. */
const LEASE_MS = 20_000;

export type AchOptions = {
  readonly bank: BankPort;
  readonly files: KeptFiles;
  readonly origin: AchOrigin;
  /** Who may have signed a payout: read before each file is made. */
  readonly intents: () => Promise<(intent: PayoutIntent, keyId: string, signature: Uint8Array) => boolean>;
  /** Names this worker in leases. */
  readonly owner: string;
  readonly onTrouble: (what: string) => void;
};

export function achJob(ctx: Context, options: AchOptions): Job {
  return {
    name: ACH_JOB,
    everyMs: LOOK_MS,
    urgent: true,
    async run() {
      const beganMs = ctx.ports.clock.now();
      await look(ctx, options, beganMs);
      await noteAchLook(ctx.db, beganMs);
      return false;
    },
  };
}

async function look(ctx: Context, options: AchOptions, nowMs: number): Promise<void> {
  const { files } = options;
  const bookReports = async (): Promise<boolean> => {
    for (const report of await files.reports()) if ((await bookReport(ctx, report, () => undefined)) === 'later') return false;
    return true;
  };
  if (!(await isWhole(ctx, { ...options, bookReports }))) return;
  const cutOffMs = await readNews(ctx, options);
  if (cutOffMs !== null) await makeFiles(ctx, options, Math.max(cutOffMs, lastCutOff(nowMs)));
  await handOver(ctx, options);
  // only when every return that the bank had reported by then is booked
  if (cutOffMs !== null) for (const name of await endedAchFiles(ctx.db, nowMs)) await completeFile(ctx, name);
}

/** Books what the bank has reported. Null when that could not be read, or not all of it be booked; else when the bank asked for what waits. */
async function readNews(ctx: Context, { bank, files, onTrouble }: AchOptions): Promise<number | null> {
  try {
    const { cutOffMs, reports } = await bank.news();
    for (const report of reports) {
      const how = await bookReport(ctx, report, onTrouble);
      if (how === 'later') return null;
      if (how === 'booked') await files.keepReport(report);
      await bank.acknowledge(report.id);
    }
    return cutOffMs ?? Number.NEGATIVE_INFINITY;
  } catch (error) {
    if (!(error instanceof BankTrouble)) throw error;
    onTrouble(`the bank cannot be asked: ${error.message}`);
    return null;
  }
}

/** `later`: it must be booked before anything that follows; `foreign`: something of it is not ours. */
type Booked = 'booked' | 'later' | 'foreign';

async function bookReport(ctx: Context, report: BankReport, onTrouble: (what: string) => void): Promise<Booked> {
  if (report.kind === 'over') await setAchOver(ctx.db, report.file);
  else if (report.kind === 'refused') await refuseFile(ctx, report.file, report.reason);
  else {
    const entries = entriesOf(report, onTrouble);
    if (entries === null) return 'later';
    let isForeign = false;
    for (const entry of entries) {
      const how = await bookEntry(ctx, entry, onTrouble);
      if (how === 'later') return 'later';
      if (how === 'foreign') isForeign = true;
    }
    if (isForeign) return 'foreign';
  }
  return 'booked';
}

/** Null for a file that cannot be read: it stays with the bank, and is told until a person has looked at it. */
function entriesOf(
  report: Extract<BankReport, { readonly kind: 'nacha' }>,
  onTrouble: (what: string) => void,
): ReadFile['entries'] | null {
  try {
    return readNachaFile(report.content).entries;
  } catch (error) {
    if (!(error instanceof NachaMalformed)) throw error;
    onTrouble(`${report.id} of the bank cannot be read: ${error.message}`);
    return null;
  }
}

async function bookEntry(ctx: Context, entry: ReadFile['entries'][number], onTrouble: (what: string) => void): Promise<Booked> {
  if (entry.change !== null) {
    const isOurs = await bookNotice(ctx, entry.change);
    onTrouble(
      `the bank asks for other details of ${isOurs ? '' : 'an unknown '}trace number ${entry.change.trace} (${entry.change.code})`,
    );
    return isOurs ? 'booked' : 'foreign';
  }
  if (entry.returned === null) {
    onTrouble(`entry ${entry.trace} in a report of the bank is no return`);
    return 'foreign';
  }
  const how = await bookReturn(ctx, { ...entry.returned, cents: entry.cents });
  if (how === 'unpriced') onTrouble(`the return of trace number ${entry.returned.trace} waits for a rate`);
  if (how === 'unknown')
    onTrouble(`the bank returns trace number ${entry.returned.trace}, which is not ours: payouts are stopped`);
  return how === 'unpriced' ? 'later' : how === 'unknown' ? 'foreign' : 'booked';
}

async function makeFiles(ctx: Context, { files, origin, intents, onTrouble }: AchOptions, cutOffMs: number): Promise<void> {
  const isIntended = await intents();
  for (let made = 'made'; made === 'made'; ) {
    made = await makeAchFile(ctx, { origin, cutOffMs, kept: await files.names(), isIntended });
    if (made === 'too_many_files') onTrouble('payouts by ach wait for tomorrow: a day has 36 files');
  }
}

async function handOver(ctx: Context, options: AchOptions): Promise<void> {
  const { clock } = ctx.ports;
  for (const seen: string[] = []; ; ) {
    const nowMs = clock.now();
    const leased = await leaseAchFile(ctx.db, { owner: options.owner, nowMs, untilMs: nowMs + LEASE_MS, not: seen });
    if (leased === null) return;
    const file = { ...leased, bytes: ctx.ports.sealing.open(leased.bytes, leased.name) };
    seen.push(file.name);
    const trouble = await drive(ctx, options, file);
    if (trouble !== null) options.onTrouble(`bank file ${file.name}: ${trouble}`);
    await endAchLease(ctx.db, file, trouble);
  }
}

/** Takes one file as far as the bank lets it. Returns what is in its way. */
async function drive(ctx: Context, options: AchOptions, file: AchFile): Promise<string | null> {
  let { state } = file;
  try {
    // its worker died, or stopped for longer than a call may take: the bank may have it
    if (state === 'uploading' && (await moveAchFile(ctx.db, file, 'uploading', 'unknown'))) state = 'unknown';
    if (state === 'unknown') {
      const said = await options.bank.ask(file);
      if (said.state !== 'never') return settled(ctx, file, said);
      if (!(await moveAchFile(ctx.db, file, 'unknown', 'built'))) return null;
      state = 'built';
    }
    if (state !== 'built' || (await openBreakers(ctx.db)).length > 0) return null;
    if (!(await options.files.keep(file))) return stopOnOther(ctx, file);
    if (!(await moveAchFile(ctx.db, file, 'built', 'uploading'))) return null;
    return await settled(ctx, file, await options.bank.handOver(file));
  } catch (error) {
    if (!(error instanceof BankTrouble)) throw error;
    return askedAfterwards(ctx, options, file, error);
  }
}

type Said = Awaited<ReturnType<BankPort['handOver']>> | Awaited<ReturnType<BankPort['ask']>>;

/** `accepted` and `duplicate` both mean that the bank has it. */
async function settled(ctx: Context, { name }: AchFile, said: Said): Promise<string | null> {
  if (said.state === 'refused') {
    await refuseFile(ctx, name, said.reason);
    return `the bank refused it: ${said.reason}`;
  }
  await acknowledgeFile(ctx, name);
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
  await tripBreaker(ctx.db, { name: 'payouts', by: ['INV-20'], findings: [finding], atMs: ctx.ports.clock.now() });
  return finding;
}
