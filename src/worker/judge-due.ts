// The job that lets the judge decide whatever is due, many transactions in one database transaction. Any number of workers may run it: the
// row lock of each transaction decides who is first, and the second skips it or finds nothing to do.
import type { Context } from '../flow/context.ts';
import { decidePortion, decideTogether } from '../flow/transactions/decide.ts';
import { MOST_PAYMENTS } from '../flow/transactions/decision-lines.ts';
import { PAYMENTS_AT_ONCE } from '../flow/transactions/judging.ts';
import { type Sql, transactionByIndex } from '../store/postgres/connect.ts';
import { type DueTransaction, dueTransactions, MOST_DUE } from '../store/transactions/due.ts';
import { createKnownCases, type KnownPayments, MuchChanged, readAhead } from '../store/transactions/known-payments.ts';
import { hasMorePayments, recordUndecided } from '../store/transactions/undecided-transactions.ts';

/** What is decided in one database transaction at most. */
const TRANSACTIONS_TOGETHER = 200;
const PAYMENTS_TOGETHER = 2_000;
/** How many payments of a large transaction one database transaction handles: fewer when that takes long. */
const PORTION = { least: 100, most: PAYMENTS_AT_ONCE };
const LONG_MS = 400;
/** What of a large transaction is read at once before it is decided. */
const READ_AHEAD = 10_000;
/** While other work is due, a large transaction rests this many times as long as its last portion took. */
const REST = 4;

type OnTrouble = (transactionId: string, error: unknown) => void;

type Outcome = {
  /** Something is due that could not be decided just now: another session holds it. */
  onLeft?(): void;
  /** All that was due has been decided: looking again at once would find only what was announced anyway. */
  onAll?(): void;
};

/**
 * @param mostPayments a transaction with more payments is set aside
 * @returns the function that decides what is due; it returns whether anything was decided: there may be more
 */
export function createJudgeDue(
  ctx: Context,
  onTrouble: OnTrouble,
  outcome: Outcome = {},
  mostPayments = MOST_PAYMENTS,
): () => Promise<boolean> {
  /** Decides these in one database transaction; returns how many were decided. */
  async function judge(ids: readonly string[]): Promise<number> {
    try {
      const { decided, failed } = await transactionByIndex(ctx.db, (sql) =>
        attempt(sql, (watched) => decideTogether(ctx, watched, ids)),
      );
      for (const { id, error } of failed) await putAside(id, error);
      return decided.length;
    } catch (error) {
      if (!(error instanceof UndecidedError)) throw error;
      const [id, another] = ids;
      if (another === undefined) {
        await putAside(id as string, error.cause);
        return 0;
      }
      // one of them cannot be written: halving finds it, and the others go on without it
      const half = Math.ceil(ids.length / 2);
      const first = await judge(ids.slice(0, half));
      return first + (await judge(ids.slice(half)));
    }
  }

  let portion = PORTION.most;
  let known = createKnownCases();
  let generation = 0;

  /** A row of a database that was replaced may have had the same version and another content. */
  function knownOf(id: string): KnownPayments {
    if (generation !== ctx.db.identity.generation) known = createKnownCases();
    generation = ctx.db.identity.generation;
    return known.of(id);
  }

  async function refuseTooMany(id: string): Promise<void> {
    if (!(await hasMorePayments(ctx.db, id, mostPayments))) return;
    const reason = `it has more than ${mostPayments} payments, which the judge does not decide`;
    throw new UndecidedError('not decided', { cause: new Error(reason) });
  }

  /**
   * Decides a portion of one that has very many payments; returns whether something was done. Where much has changed that is read before
   * any row is locked, in a turn of its own.
   */
  async function judgePortion(id: string): Promise<boolean> {
    const check = ctx.db.identity.look();
    const payments = knownOf(id);
    // what is read does not get less with smaller portions, only more often
    let began = performance.now();
    const onRead = (): void => {
      began = performance.now();
    };
    const options = { known: payments, portion, most: 2 * PORTION.most, onRead };
    try {
      if (payments.size + options.most > mostPayments) await refuseTooMany(id);
      const answer = await ctx.db
        .transaction(async (sql) => {
          const state = await attempt(sql, (watched) => decidePortion(ctx, watched, id, options));
          check();
          return state !== 'busy';
        })
        .catch((error) => {
          if (error instanceof UndecidedError && error.cause instanceof MuchChanged) return null;
          throw error;
        });
      if (answer === null) {
        await refuseTooMany(id);
        await readAhead(ctx.db, id, payments, READ_AHEAD);
        return true;
      }
      portion =
        performance.now() - began > LONG_MS
          ? Math.max(PORTION.least, Math.floor(portion / 2))
          : Math.min(PORTION.most, portion * 2);
      return answer;
    } catch (error) {
      known.forget(id);
      if (!(error instanceof UndecidedError)) throw error;
      await putAside(id, error.cause);
      return false;
    }
  }

  async function putAside(id: string, error: unknown): Promise<void> {
    onTrouble(id, error);
    await recordUndecided(ctx.db, { transactionId: id, reason: reasonOf(error), atMs: ctx.ports.clock.now() });
  }

  /** Until when each large transaction rests. */
  let rests = new Map<string, number>();

  /** A portion of the large transaction that has rested longest; none while all of them rest and something else is due. */
  async function judgeLarge(ids: readonly string[], hasOthers: boolean): Promise<boolean> {
    rests = new Map(ids.map((id) => [id, rests.get(id) ?? 0]));
    for (const [id, until] of [...rests].sort(([, a], [, b]) => a - b)) {
      const began = performance.now();
      if (hasOthers && until > began) return false;
      const isDone = await judgePortion(id);
      const now = performance.now();
      rests.set(id, now + REST * (now - began));
      if (isDone) return true;
    }
    return false;
  }

  return async () => {
    const due = await dueTransactions(ctx.db);
    const large = due.filter(({ isLarge }) => isLarge).map(({ id }) => id);
    let decided = 0;
    for (const ids of together(due.filter(({ isLarge }) => !isLarge))) decided += await judge(ids);
    if (decided > 0 && decided === due.length && decided < MOST_DUE) outcome.onAll?.();
    const isPortion = await judgeLarge(large, large.length < due.length);
    const progress = decided > 0 || isPortion;
    if (due.length > 0 && !progress) outcome.onLeft?.();
    return progress;
  };
}

/** Groups that are decided together. */
function together(due: readonly DueTransaction[]): readonly (readonly string[])[] {
  const parts: string[][] = [];
  let payments = 0;
  for (const one of due) {
    const part = parts.at(-1);
    payments += one.payments;
    if (part === undefined || part.length === TRANSACTIONS_TOGETHER || payments > PAYMENTS_TOGETHER) {
      parts.push([one.id]);
      payments = one.payments;
    } else part.push(one.id);
  }
  return parts;
}

/** The judge, or the database, has refused a decision; any other failure (such as a broken connection) is no fault of a transaction. */
class UndecidedError extends Error {}

/** Whoever opened the database transaction tries it again as a whole: a serialization failure, a deadlock. */
const TRIED_AGAIN = new Set(['40001', '40P01']);

async function attempt<T>(sql: Sql, work: (sql: Sql) => Promise<T>): Promise<T> {
  let isAnswering = true;
  try {
    return await work({
      query: (statement) =>
        sql.query<never>(statement).catch((error) => {
          const { severity, code } = error as { severity?: string; code?: string };
          isAnswering = severity === 'ERROR' && !TRIED_AGAIN.has(code ?? '');
          throw error;
        }),
    });
  } catch (error) {
    throw isAnswering ? new UndecidedError('not decided', { cause: error }) : error;
  }
}

const LONGEST_REASON = 500;

function reasonOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, LONGEST_REASON);
}
