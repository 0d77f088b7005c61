// How the tests ask the judge: with a case made of the test's facts, and again with the balances where they are needed, as the store does.
// Asking changes nothing; the caller applies the answer.
import type { PaymentMethod } from '../../src/core/currency.ts';
import {
  type Balances,
  BalancesNeeded,
  type Case,
  type CaseTransaction,
  type ChainView,
  type Payment,
  type Refund,
} from '../../src/core/judge/case.ts';
import { judge, type Verdict } from '../../src/core/judge/judge.ts';
import { heightsToDate } from '../../src/core/judge/late-block.ts';
import { isAfterDay } from '../../src/core/judge/payments.ts';
import type { Rate } from '../../src/core/rate.ts';
import type { Books } from './books.ts';
import type { Chain } from './chain-truth.ts';

export type Asked = { readonly it: Case; readonly verdict: Verdict };

/** What a judged transaction holds at the moment of asking. */
export type Facts = {
  readonly transaction: CaseTransaction;
  readonly payments: readonly Payment[];
  readonly nowMs: number;
  readonly chains: ReadonlyMap<PaymentMethod, Chain>;
  /** For each chain with several nodes: up to which block two of them agree. */
  readonly agreed: ReadonlyMap<PaymentMethod, NonNullable<ChainView['agreed']>>;
  /** The rate of the transaction's currency at a moment, when one is known. */
  readonly rateAt: (atMs: number) => Rate | null;
  readonly books: Books;
  readonly feeBps: number;
  readonly settlementMs: number;
  /** Reimbursements of whose end the judge has taken no note. */
  readonly refunds: readonly Refund[];
};

/**
 * The judge's verdict; where the merchant decides something about the case, the one after it.
 * @param portionLeft of how many payments it may note something; left out: of any number
 */
export function askJudge(facts: Facts, decide?: (it: Case) => void, portionLeft?: number): Asked {
  const once = (balances: Balances | null): Asked => {
    const it = caseOf(facts, balances);
    if (portionLeft !== undefined) it.portionLeft = portionLeft;
    let verdict = judge(it);
    if (decide !== undefined) {
      decide(it);
      verdict = judge(it);
    }
    return { it, verdict };
  };
  try {
    return once(null);
  } catch (error) {
    if (!(error instanceof BalancesNeeded)) throw error;
    return once(facts.books.balances(facts.transaction.merchantId));
  }
}

function caseOf(facts: Facts, balances: Balances | null): Case {
  const { transaction, payments, chains, agreed } = facts;
  const { viewTimes, view } = chains.get(transaction.currency) as Chain;
  return {
    transaction: { ...transaction },
    payments: payments.map((payment) => ({ ...payment })),
    nowMs: facts.nowMs,
    chains: new Map(
      [...chains].map(([code, one]) => {
        const upTo = agreed.get(code);
        return [code, upTo === undefined ? one.view : { ...one.view, agreed: upTo }];
      }),
    ),
    // no others than the service reads
    blocks: new Map(
      heightsToDate(transaction, payments, view.tipHeight).flatMap((height) => {
        const timeMs = viewTimes.get(height);
        if (timeMs === undefined) return [];
        return [[height, { timeMs, rate: isAfterDay(transaction, { timeMs }) ? facts.rateAt(timeMs) : null }]];
      }),
    ),
    feeBps: facts.feeBps,
    settlementMs: facts.settlementMs,
    balances,
    refunds: facts.refunds.map((refund) => ({ ...refund })),
    steps: [],
  };
}
