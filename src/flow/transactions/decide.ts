// The one way in which transactions change: lock their rows, load what the chains and the rates show, let the judge decide each (and apply
// the merchant's decision, if there is one), write the differences. One at a time for the operations of transaction-life, many together for
// the worker.

import { balanceOf, CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import { type Balances, BalancesNeeded, type CaseTransaction } from '../../core/judge/case.ts';
import { lockBalances, lockFreeBalances } from '../../store/ledger/ledger.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { lockTransactions } from '../../store/transactions/cases.ts';
import { type KnownPayments, MuchChanged, readAhead, readKnown } from '../../store/transactions/known-payments.ts';
import { writeDecisions } from '../../store/transactions/payment-decisions.ts';
import { type Judged, writeCases } from '../../store/transactions/verdicts.ts';
import type { Context } from '../context.ts';
import { type Decider, inTurn } from './decision-lines.ts';
import { readFacts } from './facts.ts';
import { decideInTurns, decideOn, type Facts, type MerchantDecision, PAYMENTS_AT_ONCE } from './judging.ts';

type Alone = Omit<Decider, 'merchantId'> & {
  readonly merchantId?: bigint;
  /** The merchant's decision, applied after everything that was due; may throw a Refusal, which undoes all of it. */
  readonly decision?: MerchantDecision;
  /** Writes more in the same database transaction, once the decision is written. */
  readonly written?: (sql: Sql, transaction: CaseTransaction) => Promise<void>;
};

/**
 * Decides one transaction when it is its turn (decision-lines.ts). Of one of very many payments everything that is due is decided before,
 * in portions of a database transaction each, so that the last one is short.
 * @returns the transaction afterwards; null when the merchant has none with this id
 * @throws Refusal as {@link inTurn}, and what the decision refuses
 */
export function decide(ctx: Context, id: string, options: Alone = {}): Promise<CaseTransaction | null> {
  return inTurn(ctx, id, { ...options, merchantId: options.merchantId ?? null }, () => decideAlone(ctx, id, options));
}

async function decideAlone(ctx: Context, id: string, options: Alone): Promise<CaseTransaction | null> {
  const known: KnownPayments = new Map();
  await readAhead(ctx.db, id, known);
  if (known.size > PAYMENTS_AT_ONCE) await decideDue(ctx, id, known, options.merchantId);
  return ctx.db.transaction((sql) => decideLocked(ctx, sql, id, known, options));
}

/** The most portions that are decided before; somebody who pays again and again would otherwise delay the decision without end. */
const MOST_PORTIONS = 500;

async function decideDue(ctx: Context, id: string, known: KnownPayments, merchantId: bigint | undefined): Promise<void> {
  const portion = { known, portion: PAYMENTS_AT_ONCE, most: 2 * PAYMENTS_AT_ONCE, wait: true, merchantId: merchantId ?? null };
  for (let n = 0; n < MOST_PORTIONS; n++) {
    try {
      if ((await ctx.db.transaction((sql) => decidePortion(ctx, sql, id, portion))) !== 'more') return;
    } catch (error) {
      if (!(error instanceof MuchChanged)) throw error;
      await readAhead(ctx.db, id, known);
    }
  }
}

async function decideLocked(
  ctx: Context,
  sql: Sql,
  id: string,
  known: KnownPayments,
  options: Alone,
): Promise<CaseTransaction | null> {
  const locked = await lockTransactions(sql, [id], { wait: true, merchantId: options.merchantId ?? null });
  const { contestedLimitMinor } = ctx;
  const read = () => readFacts(ctx, sql, locked, () => readKnown(sql, id, known, { contestedLimitMinor }));
  let [facts] = await read();
  while (facts?.isUnwritten) {
    await writeDecisions(sql, id, PAYMENTS_AT_ONCE);
    [facts] = await read();
  }
  if (facts === undefined) return null;
  const decision = options.decision === undefined ? {} : { decision: options.decision };
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
  await options.written?.(sql, judged.transaction);
  return judged.transaction;
}

export type Together = {
  readonly decided: readonly string[];
  /** Skipped and still due: another session holds their row or their merchant's balance, or an earlier verdict is not written yet. */
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
    if (facts.isUnwritten) {
      busy.add(facts.locked.transaction.id);
      continue;
    }
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

export type Portion = {
  /** The payments read so far: only the missing and changed ones are read. */
  readonly known: KnownPayments;
  /** The largest number of payments to handle. */
  readonly portion: number;
  /** The largest number of payments to read. */
  readonly most: number;
  /** Whether to wait for a row that another session holds. */
  readonly wait?: boolean;
  readonly merchantId?: bigint | null;
  /** Called when everything is read that the decision needs. */
  readonly onRead?: () => void;
};

/**
 * Decides a portion of one transaction of very many payments inside one open database transaction, and yields to other work of this
 * process. Where an earlier verdict is not written to all of its payments, it writes some of them and decides nothing.
 * @throws MuchChanged when more have changed than may be read: then they must be read first
 * @returns `more`: it is due again at once; `busy`: another session holds its row or its merchant's balance, or there is no such
 *   transaction
 */
export async function decidePortion(
  ctx: Context,
  sql: Sql,
  id: string,
  { known, portion, most, wait = false, merchantId = null, onRead = () => undefined }: Portion,
): Promise<'more' | 'done' | 'busy'> {
  const { contestedLimitMinor } = ctx;
  const locked = await lockTransactions(sql, [id], { wait, merchantId });
  const [facts] = await readFacts(ctx, sql, locked, () => readKnown(sql, id, known, { contestedLimitMinor, most }));
  if (facts === undefined) return 'busy';
  onRead();
  if (facts.isUnwritten) {
    await writeDecisions(sql, id, portion);
    return 'more';
  }
  let judged: Judged;
  try {
    judged = await decideInTurns(ctx, facts, null, { portion });
  } catch (error) {
    if (!(error instanceof BalancesNeeded)) throw error;
    const { merchantId: owner } = facts.locked.transaction;
    const balances = wait
      ? await lockBalances(sql, owner, currenciesOf(facts))
      : (await lockFreeBalances(sql, wantedBalances([facts]))).get(owner);
    if (balances === undefined) return 'busy';
    judged = await decideInTurns(ctx, facts, balances, { portion });
  }
  await writeCases(sql, [judged]);
  return judged.more ? 'more' : 'done';
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
  const among = new Set(payments.map((payment) => balanceOf(payment.currency)));
  return CURRENCY_CODES.filter((code) => among.has(code));
}

/** The judge writes into the balances: the next verdict must not see what a failed one has written there. */
function copyOf(balances: Balances): Balances {
  return new Map([...balances].map(([currency, balance]) => [currency, { ...balance }]));
}
