// Waits until the service has done everything that is due: a control whose effect must be visible answers after this. It only hurries the
// workers and watches the database; which process does the work does not matter.
import type { UtxoCode } from '../../core/currency.ts';
import type { Context } from '../../flow/context.ts';
import { createBatch } from '../../store/postgres/batch.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { type AskedReading, areRead, hurry, isJudged, isSettled } from '../../store/transactions/due.ts';

/** How long a database that is there but does not answer may delay a caller. */
export const SILENT_MS = 10_000;
const LOOK_EVERY_MS = 15;
const HURRY_EVERY_MS = 500;
/** The last check of all gets this much time too. */
const LEAST_MS = 500;
/** Transactions that the judge cannot decide, or that others keep it busy with, delay nobody for longer than this. */
const JUDGE_WITHIN_MS = 2_000;

type Waiting = Pick<Context, 'db' | 'ports'>;

/** Callers that wait at the same time share one statement. */
const readings = new WeakMap<Sql, (asked: AskedReading) => Promise<boolean>>();
function isRead(sql: Sql, asked: AskedReading): Promise<boolean> {
  const ask = readings.get(sql) ?? createBatch(1, (all: readonly AskedReading[]) => areRead(sql, all));
  readings.set(sql, ask);
  return ask(asked);
}

/**
 * Waits until everything that is due now has been done once: chains read, transactions judged, rule 8's look-ups, deep scans.
 * @param timeoutMs real time after which it gives up (a node may be slow, a worker not running)
 * @returns whether everything was done
 * @throws when the database has not answered for ten seconds, or not until the time was up
 */
export function settle(ctx: Waiting, timeoutMs: number): Promise<boolean> {
  const sinceMs = ctx.ports.clock.now();
  return until(ctx, () => isSettled(ctx.db, sinceMs), { timeoutMs });
}

/**
 * Waits until these chains were read after this moment, as far as they can be, and a short time until the results were judged.
 * @param timeoutMs real time after which it gives up
 * @returns whether they were read
 * @throws as settle
 */
export async function untilRead(ctx: Waiting, currencies: readonly UtxoCode[], timeoutMs: number): Promise<boolean> {
  // a pass of this very millisecond may have begun before what is waited for
  const sinceMs = ctx.ports.clock.now() + 1;
  const jobs = [...currencies.map((currency) => `chain ${currency}`), 'judge'];
  if (!(await until(ctx, () => isRead(ctx.db, { currencies, sinceMs }), { timeoutMs, jobs }))) return false;
  await until(ctx, () => isJudged(ctx.db), { timeoutMs: JUDGE_WITHIN_MS, jobs: ['judge'] });
  return true;
}

/** @param how.jobs which of the workers' jobs to hurry; every urgent one when absent */
async function until(
  ctx: Waiting,
  isSo: () => Promise<boolean>,
  { timeoutMs, jobs = [] }: { readonly timeoutMs: number; readonly jobs?: readonly string[] },
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  let answeredAt = performance.now();
  for (let hurried = Number.NEGATIVE_INFINITY; ; ) {
    const patience = Math.min(deadline, answeredAt + SILENT_MS);
    try {
      if (performance.now() - hurried >= HURRY_EVERY_MS) {
        await answered(hurry(ctx.db, jobs), patience);
        hurried = performance.now();
      }
      if (await answered(isSo(), patience)) return true;
      answeredAt = performance.now();
      if (answeredAt >= deadline) return false;
    } catch (error) {
      // a database that refuses for a moment (it is being restarted) is asked again
      if (performance.now() >= patience) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

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
