// The one way in which transactions change: lock their rows, load what the chains and the rates show, let the judge decide each (and apply
// the merchant's decision, if there is one), write the differences. One at a time for the operations of transaction-life, many together for
// the worker.

import { CURRENCY_CODES, type CurrencyCode } from '../core/currency.ts';
import { type Balances, BalancesNeeded, type CaseTransaction } from '../core/judge/case.ts';
import { lockBalances, lockFreeBalances } from '../store/ledger/ledger.ts';
import type { Sql } from '../store/postgres/connect.ts';
import { lockTransactions } from '../store/transactions/cases.ts';
import { type KnownPayments, readKnown } from '../store/transactions/known-payments.ts';
import { type Judged, writeCases } from '../store/transactions/verdicts.ts';
import type { Context } from './context.ts';
import { readFacts } from './facts.ts';
import { decideInTurns, decideOn, type Facts, type MerchantDecision } from './judging.ts';

/**
 * Decides one transaction inside an open database transaction.
 * @param options.word the merchant's decision, applied after everything that was due; may throw a Refusal, which undoes all of it
 * @returns the transaction afterwards; null when the merchant has none with this id
 */
export async function decide(
  ctx: Context,
  sql: Sql,
  id: string,
  options: { readonly merchantId?: bigint; readonly word?: MerchantDecision } = {},
): Promise<CaseTransaction | null> {
  const locked = await lockTransactions(sql, [id], { wait: true, merchantId: options.merchantId ?? null });
  const { contestedLimitMinor } = ctx;
  const [facts] = await readFacts(ctx, sql, locked, () => readKnown(sql, id, new Map(), { contestedLimitMinor }));
  if (facts === undefined) return null;
  const decision = options.word === undefined ? {} : { decision: options.word };
  let judged: Judged;
  try {
    judged = await decideInTurns(ctx, facts, null, decision);
  } catch (error) {
    if (!(error instanceof BalancesNeeded)) throw error;
    const wanted = { merchantId: facts.locked.transaction.merchantId, currencies: currenciesOf(facts) };
    const balances = await lockBalances(sql, wanted.merchantId, wanted.currencies);
    judged = await decideInTurns(ctx, facts, balances, decision);
  }
  await writeCases(sql, [judged]);
  return judged.transaction;
}

export type Together = {
  readonly decided: readonly string[];
  /** Skipped and still due: another session holds their row or their merchant's balance. */
  readonly busy: readonly string[];
  /** The judge could not decide them. */
  readonly failed: readonly { readonly id: string; readonly error: unknown }[];
};

/**
 * Decides many transactions inside one open database transaction, each as if it were alone, and writes them together. It waits for no row:
 * transactions that another session holds are left for later. Credits of one merchant are decided one after the other on its balances.
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

/**
 * Decides a portion of one transaction of very many payments inside one open database transaction: when some are left, it is due again at
 * once. It waits for no row, and yields to other work of this process.
 * @param options.known the payments read so far: only the missing and changed ones are read
 * @param options.portion the largest number of payments to handle
 * @param options.most the largest number of payments to read
 * @throws MuchChanged when more have changed: then they must be read first
 * @returns false when another session holds its row or its merchant's balance: it is still due
 */
export async function decidePortion(
  ctx: Context,
  sql: Sql,
  id: string,
  { known, portion, most }: { readonly known: KnownPayments; readonly portion: number; readonly most: number },
): Promise<boolean> {
  const { contestedLimitMinor } = ctx;
  const locked = await lockTransactions(sql, [id], { wait: false });
  const [facts] = await readFacts(ctx, sql, locked, () => readKnown(sql, id, known, { contestedLimitMinor, most }));
  if (facts === undefined) return false;
  let judged: Judged;
  try {
    judged = await decideInTurns(ctx, facts, null, { portion });
  } catch (error) {
    if (!(error instanceof BalancesNeeded)) throw error;
    const balances = (await lockFreeBalances(sql, wantedBalances([facts]))).get(facts.locked.transaction.merchantId);
    if (balances === undefined) return false;
    judged = await decideInTurns(ctx, facts, balances, { portion });
  }
  await writeCases(sql, [judged]);
  return true;
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

/** The judge writes into the balances: the next verdict must not see what a failed one has written there. */
function copyOf(balances: Balances): Balances {
  return new Map([...balances].map(([currency, balance]) => [currency, { ...balance }]));
}
