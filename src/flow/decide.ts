// The one way in which a transaction changes: lock its row, load what the chain and the rates say, let the judge decide (and the merchant's
// word, where there is one), write the difference. Called by every verb of transaction-life and by the worker's judge job.

import { requiredConfirmations } from '../core/confirmations.ts';
import { CURRENCY_CODES, type CurrencyCode } from '../core/currency.ts';
import {
  type Balances,
  BalancesNeeded,
  type Case,
  type CaseTransaction,
  type ChainView,
  type Coin,
  DAY_MS,
  type DatedBlock,
} from '../core/judge/case.ts';
import { judge, type Verdict } from '../core/judge/judge.ts';
import type { TransactionStatus } from '../core/transaction-states.ts';
import { lockTransaction, readBlocks, readChainViews, readCoins } from '../store/cases.ts';
import type { Sql } from '../store/connect.ts';
import { lockBalances } from '../store/ledger.ts';
import { writeCase } from '../store/verdicts.ts';
import type { Context } from './context.ts';

type Facts = {
  readonly transaction: CaseTransaction;
  readonly coins: readonly Coin[];
  readonly chains: ReadonlyMap<CurrencyCode, ChainView>;
  readonly blocks: ReadonlyMap<number, DatedBlock>;
};

/**
 * Decides one transaction inside an open database transaction.
 * @param options.word what the merchant says, applied after everything that was due; may throw a Refusal, which undoes all of it
 * @returns the transaction afterwards; null when there is none (of that merchant)
 */
export async function decide(
  ctx: Context,
  sql: Sql,
  id: string,
  options: { readonly merchantId?: bigint; readonly word?: (it: Case) => void } = {},
): Promise<CaseTransaction | null> {
  const transaction = await lockTransaction(sql, id, options.merchantId ?? null);
  if (transaction === null) return null;
  let nowMs = ctx.ports.clock.now();
  const facts = await readFacts(ctx, sql, transaction, nowMs);
  let outcome: { it: Case; verdict: Verdict };
  try {
    outcome = decideOn(ctx, facts, nowMs, null, options.word);
  } catch (error) {
    if (!(error instanceof BalancesNeeded)) throw error;
    const currencies = CURRENCY_CODES.filter((code) => facts.coins.some((coin) => coin.currency === code));
    const balances = await lockBalances(sql, transaction.merchantId, currencies);
    // the merchant's entries are dated in the order in which they are made
    nowMs = ctx.ports.clock.now();
    outcome = decideOn(ctx, facts, nowMs, balances, options.word);
  }
  const { it, verdict } = outcome;
  const changed = it.coins.filter((coin, index) => !sameCoin(coin, facts.coins[index] as Coin));
  await writeCase(sql, {
    before: transaction.status,
    transaction: it.transaction,
    coins: changed,
    steps: it.steps,
    verdict,
    nowMs,
  });
  return it.transaction;
}

async function readFacts(ctx: Context, sql: Sql, transaction: CaseTransaction, nowMs: number): Promise<Facts> {
  // the clocks before the payments: a watcher that catches up in between makes a payment look gone for shorter, never for longer
  const chains = await readChainViews(sql, ctx.contestedLimitMinor);
  const coins = await readCoins(sql, transaction.id);
  const heights = heightsOf(transaction, coins, chains);
  const ratesAfterMs = transaction.windowEndsAtMs + DAY_MS;
  return { transaction, coins, chains, blocks: await readBlocks(sql, transaction.currency, { heights, ratesAfterMs, nowMs }) };
}

/** From where rule 4 can be reached within one verdict. */
const CONFIRMABLE: ReadonlySet<TransactionStatus> = new Set([
  'started',
  'pending',
  'timedout',
  'timedout_checked',
  'declined',
  'review',
]);

/** The heights at which payments reach their R: rule 24 asks how these blocks are dated. */
function heightsOf(transaction: CaseTransaction, coins: readonly Coin[], chains: ReadonlyMap<CurrencyCode, ChainView>): number[] {
  if (!CONFIRMABLE.has(transaction.status)) return [];
  const { depth } = requiredConfirmations(transaction.currency, transaction.usdMinor);
  const tip = chains.get(transaction.currency)?.tipHeight ?? 0;
  const heights = coins.flatMap((coin) =>
    coin.height === null ? [] : [coin.height, coin.height + depth - 1, coin.height + 99, coin.height + 239],
  );
  return [...new Set([tip, ...heights])].filter((height) => height <= tip);
}

function decideOn(
  ctx: Context,
  facts: Facts,
  nowMs: number,
  balances: Balances | null,
  word: ((it: Case) => void) | undefined,
): { it: Case; verdict: Verdict } {
  const it: Case = {
    transaction: { ...facts.transaction },
    coins: facts.coins.map((coin) => ({ ...coin })),
    nowMs,
    chains: facts.chains,
    blocks: facts.blocks,
    feeBps: ctx.feeBps,
    settlementMs: ctx.settlementSeconds * 1000,
    balances,
    refundOpen: false,
    steps: [],
  };
  let verdict = judge(it);
  if (word !== undefined) {
    word(it);
    verdict = judge(it);
  }
  return { it, verdict };
}

function sameCoin(a: Coin, b: Coin): boolean {
  return (Object.keys(a) as (keyof Coin)[]).every((key) => a[key] === b[key]);
}
