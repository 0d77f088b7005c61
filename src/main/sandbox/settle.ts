// Waits until the service has done everything that is due: a control whose effect must be visible answers after this. It only hurries the
// workers and watches the database; which process does the work does not matter.
import type { PaymentMethod } from '../../core/currency.ts';
import type { Context } from '../../flow/context.ts';
import { isAchLooked } from '../../store/ach/files.ts';
import { isAllHandedOver } from '../../store/ach/hand-overs.ts';
import { areTried, DELIVERIES_JOB } from '../../store/deliveries/deliveries.ts';
import { areSettled } from '../../store/lightning/settlements.ts';
import { createBatch } from '../../store/postgres/batch.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { type AskedReading, areRead, isJudged, isSettled, wakeJobs } from '../../store/transactions/due.ts';
import { ACH_JOB } from '../../worker/payouts/ach/driver.ts';

/** How long a database that is there but does not answer may delay a caller. */
export const SILENT_MS = 10_000;
const LOOK_EVERY_MS = 15;
/** The longer something takes, the less often it is looked for: after this share of the time so far. */
const LOOK_SHARE = 0.3;
const HURRY_EVERY_MS = 500;
/** The last check of all gets this much time too. */
const LEAST_MS = 500;
/** Transactions that the judge cannot decide, or that others keep it busy with, delay nobody for longer than this. */
const JUDGE_WITHIN_MS = 2_000;
/** Receivers that are away or slow delay nobody for longer than this. */
const DELIVERIES_WITHIN_MS = 1_000;
/** A new block wakes its chain's watcher, and whoever records something the judge: they are hurried only where that was not enough. */
const HURRIED_AFTER_MS = 60;

type Waiting = Pick<Context, 'db' | 'ports'>;
type Since = { readonly sinceMs: number; readonly isAnnounced: boolean; readonly invoices?: readonly string[] };

/** Callers that wait at the same time share one statement. */
const readings = new WeakMap<Sql, (asked: AskedReading) => Promise<boolean>>();
function isRead(sql: Sql, asked: AskedReading): Promise<boolean> {
  const ask = readings.get(sql) ?? createBatch(1, (all: readonly AskedReading[]) => areRead(sql, all));
  readings.set(sql, ask);
  return ask(asked);
}

/**
 * Waits until everything that is due now has been done once: chains read, transactions judged, rule 8's look-ups, deep scans; and for a
 * short time until what is due for webhooks has been tried, since a receiver may be away.
 * @param timeoutMs real time after which it gives up (a node may be slow, a worker not running)
 * @returns whether everything was done
 * @throws when the database has not answered for ten seconds, or not until the time was up
 */
export async function settle(ctx: Waiting, timeoutMs: number): Promise<boolean> {
  const sinceMs = ctx.ports.clock.now();
  const isDone = await until(ctx, () => isSettled(ctx.db, sinceMs), { timeoutMs });
  const tried = { timeoutMs: DELIVERIES_WITHIN_MS, jobs: [DELIVERIES_JOB], hurryAfterMs: HURRIED_AFTER_MS };
  await until(ctx, () => areTried(ctx.db, sinceMs), tried);
  return isDone;
}

/**
 * Waits until these chains were read after this moment, as far as they can be, and a short time until the results were judged.
 * @param timeoutMs real time after which it gives up
 * @param since.sinceMs instead of after this moment, after this time
 * @param since.isAnnounced their nodes have announced what is to be read
 * @param since.invoices payment hashes that are to be recorded as paid: nothing else need be read then
 * @returns whether they were read
 * @throws as settle
 */
export async function untilRead(
  ctx: Waiting,
  currencies: readonly PaymentMethod[],
  timeoutMs: number,
  since: Since = { sinceMs: ctx.ports.clock.now(), isAnnounced: false },
): Promise<boolean> {
  // a pass of this very millisecond may have begun before what we wait for
  const sinceMs = since.sinceMs + 1;
  const jobs = currencies.map((currency) => `chain ${currency}`);
  const reading = { timeoutMs, jobs, hurryAfterMs: since.isAnnounced ? HURRIED_AFTER_MS : 0 };
  const { invoices = [] } = since;
  const isDone = async (): Promise<boolean> =>
    (invoices.length > 0 && (await areSettled(ctx.db, invoices))) || isRead(ctx.db, { currencies, sinceMs });
  if (!(await until(ctx, isDone, reading))) return false;
  const judge = { timeoutMs: JUDGE_WITHIN_MS, jobs: ['judge'], hurryAfterMs: HURRIED_AFTER_MS };
  await until(ctx, () => isJudged(ctx.db), judge);
  return true;
}

/**
 * Waits until a worker has looked at the bank once after this moment.
 * @param timeoutMs real time after which it gives up
 * @returns whether it has
 */
export function untilBankRead(ctx: Waiting, timeoutMs: number): Promise<boolean> {
  // a look of this very millisecond may have begun before what we wait for
  const sinceMs = ctx.ports.clock.now() + 1;
  return until(ctx, () => isAchLooked(ctx.db, sinceMs), { timeoutMs, jobs: [ACH_JOB] });
}

/**
 * Waits until what may be paid to bank accounts now has been handed over. A look alone is not enough: after a start the signer may not answer
 * yet, or the files may not have been compared.
 * @param timeoutMs real time after which it gives up (a bank that does not answer, a file that waits for a merchant)
 */
export async function untilHandedOver(ctx: Waiting, timeoutMs: number): Promise<void> {
  const untilMs = ctx.ports.clock.now();
  await until(ctx, () => isAllHandedOver(ctx.db, untilMs), { timeoutMs, jobs: [ACH_JOB], hurryAfterMs: HURRIED_AFTER_MS });
}

type Patience = {
  readonly timeoutMs: number;
  /** Which of the workers' jobs to hurry; every urgent one when absent. */
  readonly jobs?: readonly string[];
  /** How long to wait before they are hurried (default 0). */
  readonly hurryAfterMs?: number;
};

async function until(
  ctx: Waiting,
  isSo: () => Promise<boolean>,
  { timeoutMs, jobs = [], hurryAfterMs = 0 }: Patience,
): Promise<boolean> {
  const beganMs = performance.now();
  const deadline = beganMs + timeoutMs;
  let answeredAt = performance.now();
  for (let hurried = performance.now() + hurryAfterMs - HURRY_EVERY_MS; ; ) {
    const patience = Math.min(deadline, answeredAt + SILENT_MS);
    try {
      if (performance.now() - hurried >= HURRY_EVERY_MS) {
        await answered(wakeJobs(ctx.db, jobs), patience);
        hurried = performance.now();
        await pause(LOOK_EVERY_MS);
      }
      if (await answered(isSo(), patience)) return true;
      answeredAt = performance.now();
      if (answeredAt >= deadline) return false;
    } catch (error) {
      // a database that refuses for a moment (it is being restarted) is asked again
      if (performance.now() >= patience) throw error;
    }
    await pause(Math.max(LOOK_EVERY_MS, (performance.now() - beganMs) * LOOK_SHARE));
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The database's answer, if it comes by then. */
async function answered<T>(asking: Promise<T>, byMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('the database does not answer')), Math.max(LEAST_MS, byMs - performance.now()));
  });
  try {
    return await Promise.race([asking, late]);
  } finally {
    clearTimeout(timer);
  }
}
