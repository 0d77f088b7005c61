// The facts for the judge about locked transactions: their payments, how far each chain was read, and the dates of the blocks at which
// payments reach their required depth.
import { heightsToDate } from '../../core/judge/late-block.ts';
import { LATE_BLOCK_AFTER_MS } from '../../core/judge/times.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { type ChainFacts, readBlocks, readChainFacts } from '../../store/transactions/case-facts.ts';
import type { LockedTransaction } from '../../store/transactions/cases.ts';
import type { Context } from '../context.ts';
import type { Facts } from './judging.ts';

/** How often a reorganisation may interrupt the reading before it fails. */
const MOST_READINGS = 5;

/** @param read how to read their payments, where not all at once */
export async function readFacts(
  ctx: Context,
  sql: Sql,
  locked: readonly LockedTransaction[],
  read: (ids: readonly string[]) => Promise<ChainFacts> = (ids) => readChainFacts(sql, ids, ctx.contestedLimitMinor),
): Promise<readonly Facts[]> {
  if (locked.length === 0) return [];
  const ids = locked.map((one) => one.transaction.id);
  for (let reading = 1; reading <= MOST_READINGS; reading++) {
    const { chains, tips, payments, unwritten } = await read(ids);
    const paymentsOf = ({ transaction }: LockedTransaction) => payments.get(transaction.id) ?? [];
    const wanted = locked.map((one) => ({
      currency: one.transaction.currency,
      heights: heightsToDate(one.transaction, paymentsOf(one), chains.get(one.transaction.currency)?.tipHeight),
      ratesAfterMs: one.transaction.windowEndsAtMs + LATE_BLOCK_AFTER_MS,
    }));
    const blocks = await readBlocks(sql, wanted, { tips, nowMs: ctx.ports.clock.now() });
    if (blocks === null) continue;
    return locked.map((one, n) => ({
      locked: one,
      payments: paymentsOf(one),
      chains,
      blocks: blocks[n] ?? new Map(),
      isUnwritten: unwritten.has(one.transaction.id),
    }));
  }
  throw new Error(`the chain reorganised ${MOST_READINGS} times while the payments of ${ids[0]} were read`);
}
