// What an operator has delivered again: everything that an endpoint was sent and did not take.
import { ATTEMPTS_KEPT_MS } from '../../core/webhooks.ts';
import { deliverGivenUp, hurryWaiting, type MadeDue } from '../../store/deliveries/failing.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';

const AT_ONCE = 1_000;

/**
 * Makes due at once, with all their attempts, what waits for an endpoint and what was given up while its attempts are kept. In small steps:
 * one that ends in the middle has done a part of it, and may be done again.
 * @returns how many events
 */
export async function redeliverAll(
  ctx: Context,
  webhook: bigint,
): Promise<{ readonly waiting: number; readonly givenUp: number }> {
  const sinceMs = ctx.ports.clock.now() - ATTEMPTS_KEPT_MS;
  const waiting = await inSteps(ctx, (sql, after) => hurryWaiting(sql, { webhook, after, limit: AT_ONCE }));
  const givenUp = await inSteps(ctx, (sql, after) => deliverGivenUp(sql, { webhook, after, limit: AT_ONCE, sinceMs }));
  return { waiting, givenUp };
}

async function inSteps(ctx: Context, step: (sql: Sql, after: bigint) => Promise<MadeDue>): Promise<number> {
  let count = 0;
  for (let after: bigint | null = 0n; after !== null; ) {
    const from: bigint = after;
    const made: MadeDue = await ctx.db.transaction((sql) => step(sql, from));
    count += made.count;
    after = made.last;
  }
  return count;
}
