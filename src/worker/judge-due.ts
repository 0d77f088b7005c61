// The job that lets the judge decide whatever is due, several transactions at a time. Any number of workers may run it: the row lock of
// each transaction decides who is first, and the second finds nothing left to do.
import type { Context } from '../flow/context.ts';
import { reconsider } from '../flow/transaction-life.ts';
import { dueTransactions } from '../store/due.ts';

const BATCH = 200;
const AT_ONCE = 4;
/** A transaction whose decision failed is left alone for this long, so that it does not stand in the way of the others. */
const REST_MS = 30_000;

export function createJudgeDue(ctx: Context, onTrouble: (transactionId: string, error: unknown) => void): () => Promise<boolean> {
  const resting = new Map<string, number>();
  return async () => {
    const nowMs = ctx.ports.clock.now();
    for (const [id, untilMs] of resting) if (untilMs <= nowMs) resting.delete(id);
    const ids = await dueTransactions(ctx.db, { limit: BATCH, except: [...resting.keys()] });
    const queue = ids[Symbol.iterator]();
    async function work(): Promise<void> {
      for (const id of queue) {
        try {
          await reconsider(ctx, id);
        } catch (error) {
          resting.set(id, nowMs + REST_MS);
          onTrouble(id, error);
        }
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    return ids.length > 0;
  };
}
