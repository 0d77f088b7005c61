// The facts for the judge about locked transactions: their payments, how far each chain was read, and the dates of the blocks at which
// payments reach their required depth.
import { requiredDepth, requiredDepthsOfTiers } from '../../core/confirmations.ts';
import type { PaymentMethod } from '../../core/currency.ts';
import type { CaseTransaction, ChainView, Payment } from '../../core/judge/case.ts';
import { LATE_BLOCK_AFTER_MS } from '../../core/judge/times.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
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
      heights: heightsOf(one.transaction, paymentsOf(one), chains),
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

/** The statuses from which one verdict can reach rule 4. */
const CONFIRMABLE: ReadonlySet<TransactionStatus> = new Set([
  'started',
  'pending',
  'timedout',
  'timedout_checked',
  'declined',
  'review',
]);

/** The heights at which payments reach their required depth: rule 24 needs the dates of these blocks. */
function heightsOf(
  transaction: CaseTransaction,
  payments: readonly Payment[],
  chains: ReadonlyMap<PaymentMethod, ChainView>,
): readonly number[] {
  const tip = chains.get(transaction.currency)?.tipHeight;
  if (!CONFIRMABLE.has(transaction.status) || tip === undefined) return [];
  const price = requiredDepth(transaction.currency, transaction.usdMinor);
  // what is late needs the depth of what it was worth when it arrived, alone or together
  const depths = [price, ...requiredDepthsOfTiers(transaction.currency)].map(({ depth }) => depth);
  const own = payments.filter(({ currency }) => currency === transaction.currency);
  const mined = new Set(own.map(({ height }) => height));
  const heights = new Set<number>(own.length === 0 ? [] : [tip]);
  for (const height of mined) if (height !== null) for (const depth of [1, ...depths, 100, 240]) heights.add(height + depth - 1);
  return [...heights].filter((height) => height <= tip);
}
