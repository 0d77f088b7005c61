// Who may decide on a transaction outside the worker, and when. Such a decision reads and copies the payments of its transaction, and
// anybody may pay one in very many: so of large transactions one is decided at a time in a process, and above a number of payments none.
import { Refusal, type RefusalCode } from '../../core/refusal.ts';
import { countUpTo } from '../../store/transactions/replaced-payments.ts';
import type { CheckRow } from '../../store/transactions/transactions.ts';
import { createConcurrencyLimit } from '../concurrency-limit.ts';
import type { Context } from '../context.ts';

/** A transaction with more payments is not decided, neither by the worker nor by a call: nobody pays a price so, and each portion costs something for every payment. */
export const MOST_PAYMENTS = 100_000;
/** One with more payments is decided alone. */
const LARGE = 1_000;

// together at most 8 * 1,000 + 100,000 payments are in memory
const inSmallLine = createConcurrencyLimit({ atOnce: 8, ofOne: 4, waiting: 2_000 });
const inLargeLine = createConcurrencyLimit({ atOnce: 1, ofOne: 1, waiting: 16 });

export type Decider = {
  /** Whose decision it is; null = the operator's. */
  readonly merchantId: bigint | null;
  /** Refuses a large transaction by what is stored of it, before its payments are read. */
  readonly refuseEarly?: ((stored: CheckRow) => void) | undefined;
  /** The refusal of a transaction with too many payments. */
  readonly refusal?: RefusalCode | undefined;
  /** Other than {@link MOST_PAYMENTS}; null = any number. */
  readonly mostPayments?: number | null | undefined;
};

/**
 * Runs the decision on a transaction when it is its turn.
 * @returns its result; null when the merchant has no such transaction
 * @throws Refusal overloaded when too many large ones wait, or with an idempotency key, which holds a connection, when one is being decided;
 *   `decider.refusal` when it has too many payments
 */
export async function inTurn<T>(ctx: Context, id: string, decider: Decider, decision: () => Promise<T>): Promise<T | null> {
  const { merchantId, refuseEarly, refusal, mostPayments = MOST_PAYMENTS } = decider;
  const caller = merchantId ?? 0n;
  const small = await inSmallLine(caller, async () => {
    if ((await countUpTo(ctx.db, id, LARGE)) > LARGE) return null;
    return { result: await decision() };
  });
  if (small !== null) return small.result;
  const stored = await ctx.batches.check(id);
  if (stored === null || (merchantId !== null && stored.merchantId !== merchantId)) return null;
  refuseEarly?.(stored);
  const large = async () => {
    if (mostPayments !== null && (await countUpTo(ctx.db, id, mostPayments)) > mostPayments) throw tooMany(refusal, mostPayments);
    return decision();
  };
  return inLargeLine(caller, large, ctx.afterwards === undefined);
}

function tooMany(refusal: RefusalCode | undefined, most: number): Error {
  const message = `The transaction has more than ${most} payments, which are not decided: the operator of this server must look at it.`;
  return refusal === undefined ? new Error(message) : new Refusal(refusal, { message });
}
