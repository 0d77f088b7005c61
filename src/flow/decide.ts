// The one way in which transactions change: lock their rows, load what the chains and the rates say, let the judge decide each (and the
// merchant's word, where there is one), write the differences. One alone for the verbs of transaction-life, many together for the worker.

import { requiredDepth } from '../core/confirmations.ts';
import { CURRENCY_CODES, type CurrencyCode } from '../core/currency.ts';
import {
  type Balances,
  BalancesNeeded,
  type Case,
  type CaseTransaction,
  type ChainView,
  DAY_MS,
  type DatedBlock,
  type Payment,
} from '../core/judge/case.ts';
import { judge } from '../core/judge/judge.ts';
import type { TransactionStatus } from '../core/transaction-states.ts';
import { lockBalances, lockFreeBalances } from '../store/ledger/ledger.ts';
import type { Sql } from '../store/postgres/connect.ts';
import { readBlocks, readChainFacts } from '../store/transactions/case-facts.ts';
import { type LockedTransaction, lockTransactions } from '../store/transactions/cases.ts';
import { type Judged, writeCases } from '../store/transactions/verdicts.ts';
import type { Context } from './context.ts';

type Facts = {
  readonly locked: LockedTransaction;
  readonly payments: readonly Payment[];
  readonly chains: ReadonlyMap<CurrencyCode, ChainView>;
  readonly blocks: ReadonlyMap<number, DatedBlock>;
};
type Word = (it: Case) => void;

/**
 * Decides one transaction inside an open database transaction.
 * @param options.word what the merchant says, applied after everything that was due; may throw a Refusal, which undoes all of it
 * @returns the transaction afterwards; null when there is none (of that merchant)
 */
export async function decide(
  ctx: Context,
  sql: Sql,
  id: string,
  options: { readonly merchantId?: bigint; readonly word?: Word } = {},
): Promise<CaseTransaction | null> {
  const locked = await lockTransactions(sql, [id], { wait: true, merchantId: options.merchantId ?? null });
  const [facts] = await readFacts(ctx, sql, locked);
  if (facts === undefined) return null;
  let judged: Judged;
  try {
    judged = decideOn(ctx, facts, null, options.word);
  } catch (error) {
    if (!(error instanceof BalancesNeeded)) throw error;
    const wanted = { merchantId: facts.locked.transaction.merchantId, currencies: currenciesOf(facts) };
    const balances = await lockBalances(sql, wanted.merchantId, wanted.currencies);
    judged = decideOn(ctx, facts, balances, options.word);
  }
  await writeCases(sql, [judged]);
  return judged.transaction;
}

export type Together = {
  readonly decided: readonly string[];
  /** Left alone, still due: somebody else holds their row or their merchant's balance. */
  readonly busy: readonly string[];
  /** The judge could not decide them. */
  readonly failed: readonly { readonly id: string; readonly error: unknown }[];
};

/**
 * Decides many transactions inside one open database transaction, each as if it were alone, and writes them together. It waits for no row: what
 * somebody else holds is left for later. Credits of one merchant are decided one after the other on its balances.
 */
export async function decideTogether(ctx: Context, sql: Sql, ids: readonly string[]): Promise<Together> {
  const locked = await lockTransactions(sql, ids, { wait: false });
  const judged: Judged[] = [];
  const owed: Facts[] = [];
  const busy = new Set(ids);
  const failed: { id: string; error: unknown }[] = [];
  for (const { transaction } of locked) busy.delete(transaction.id);
  for (const facts of await readFacts(ctx, sql, locked)) {
    try {
      judged.push(decideOn(ctx, facts, null));
    } catch (error) {
      if (error instanceof BalancesNeeded) owed.push(facts);
      else failed.push({ id: facts.locked.transaction.id, error });
    }
  }
  const merchants = await lockFreeBalances(sql, wantedBalances(owed));
  for (const facts of owed) {
    const { id, merchantId } = facts.locked.transaction;
    const balances = merchants.get(merchantId);
    if (balances === undefined) {
      busy.add(id);
      continue;
    }
    try {
      const before = copyOf(balances);
      judged.push(decideOn(ctx, facts, before));
      merchants.set(merchantId, before);
    } catch (error) {
      failed.push({ id, error });
    }
  }
  await writeCases(sql, judged);
  return { decided: judged.map((one) => one.transaction.id), busy: [...busy], failed };
}

function wantedBalances(owed: readonly Facts[]): ReadonlyMap<bigint, readonly CurrencyCode[]> {
  const wanted = new Map<bigint, Set<CurrencyCode>>();
  for (const facts of owed) {
    const { merchantId } = facts.locked.transaction;
    wanted.set(merchantId, new Set([...(wanted.get(merchantId) ?? []), ...currenciesOf(facts)]));
  }
  return new Map([...wanted].map(([merchantId, currencies]) => [merchantId, [...currencies]]));
}

function currenciesOf({ payments }: Facts): readonly CurrencyCode[] {
  const among = new Set(payments.map((payment) => payment.currency));
  return CURRENCY_CODES.filter((code) => among.has(code));
}

/** The judge writes into the balances: what a verdict that fails has written there must not be seen by the next one. */
function copyOf(balances: Balances): Balances {
  return new Map([...balances].map(([currency, balance]) => [currency, { ...balance }]));
}

/** How often a chain may turn back while its facts are read. */
const MOST_READINGS = 5;

async function readFacts(ctx: Context, sql: Sql, locked: readonly LockedTransaction[]): Promise<readonly Facts[]> {
  if (locked.length === 0) return [];
  const ids = locked.map((one) => one.transaction.id);
  for (let reading = 1; reading <= MOST_READINGS; reading++) {
    const { chains, tips, payments } = await readChainFacts(sql, ids, ctx.contestedLimitMinor);
    const coinsOf = ({ transaction }: LockedTransaction) => payments.get(transaction.id) ?? [];
    const wanted = locked.map((one) => ({
      currency: one.transaction.currency,
      heights: heightsOf(one.transaction, coinsOf(one), chains),
      ratesAfterMs: one.transaction.windowEndsAtMs + DAY_MS,
    }));
    const blocks = await readBlocks(sql, wanted, { tips, nowMs: ctx.ports.clock.now() });
    if (blocks === null) continue;
    return locked.map((one, n) => ({ locked: one, payments: coinsOf(one), chains, blocks: blocks[n] ?? new Map() }));
  }
  throw new Error(`the chain turned back ${MOST_READINGS} times while the payments of ${ids[0]} were read`);
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
function heightsOf(
  transaction: CaseTransaction,
  payments: readonly Payment[],
  chains: ReadonlyMap<CurrencyCode, ChainView>,
): readonly number[] {
  const tip = chains.get(transaction.currency)?.tipHeight;
  if (!CONFIRMABLE.has(transaction.status) || tip === undefined) return [];
  const { depth } = requiredDepth(transaction.currency, transaction.usdMinor);
  const heights = new Set<number>();
  for (const { currency, height } of payments) {
    if (currency !== transaction.currency) continue;
    heights.add(tip);
    if (height !== null) for (const at of [height, height + depth - 1, height + 99, height + 239]) heights.add(at);
  }
  return [...heights].filter((height) => height <= tip);
}

function decideOn(ctx: Context, facts: Facts, balances: Balances | null, word?: Word): Judged {
  const { locked } = facts;
  const it: Case = {
    transaction: { ...locked.transaction },
    payments: facts.payments.map((payment) => ({ ...payment })),
    // with the balances locked the merchant's entries are dated in the order in which they are made
    nowMs: ctx.ports.clock.now(),
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
  const changed = it.payments.filter((payment, index) => !sameFields(payment, facts.payments[index] as Payment));
  return { before: locked, transaction: it.transaction, payments: changed, steps: it.steps, verdict, nowMs: it.nowMs };
}

function sameFields(a: Payment, b: Payment): boolean {
  return (Object.keys(a) as (keyof Payment)[]).every((key) => a[key] === b[key]);
}
