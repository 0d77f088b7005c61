// One transaction before the judge: builds the case from its facts, asks the judge at once or in turns, and collects what the verdict
// changed. Does not access the database.
import type { PaymentMethod } from '../../core/currency.ts';
import type { Balances, Case, ChainView, DatedBlock, Payment } from '../../core/judge/case.ts';
import { judge, judgeInTurns, type Verdict } from '../../core/judge/judge.ts';
import { isLive } from '../../core/judge/payments.ts';
import { createTurns, inParts, type Turns } from '../../store/postgres/in-parts.ts';
import type { LockedTransaction } from '../../store/transactions/cases.ts';
import { isDecided, isLookedAt } from '../../store/transactions/judged-columns.ts';
import type { Judged } from '../../store/transactions/verdicts.ts';
import type { Context } from '../context.ts';

export type Facts = {
  readonly locked: LockedTransaction;
  readonly payments: readonly Payment[];
  readonly chains: ReadonlyMap<PaymentMethod, ChainView>;
  readonly blocks: ReadonlyMap<number, DatedBlock>;
  /** An earlier verdict is not written to all of its payments yet: they are not what was decided, and may not be judged. */
  readonly isUnwritten: boolean;
};
/** The largest number of payments that one database transaction writes: watchers wait for rows that it holds. */
export const PAYMENTS_AT_ONCE = 1_000;
/** A decision of the merchant, applied to the case after everything that was due. */
export type MerchantDecision = (it: Case) => void;

/** @param payments copies, since the judge changes them */
function caseOf(ctx: Context, facts: Facts, balances: Balances | null, payments: readonly Payment[]): Case {
  return {
    transaction: { ...facts.locked.transaction },
    payments,
    // while the balances are locked, the merchant's entries get their dates in the order in which they are made
    nowMs: ctx.ports.clock.now(),
    chains: facts.chains,
    blocks: facts.blocks,
    feeBps: ctx.feeBps,
    settlementMs: ctx.settlementSeconds * 1000,
    balances,
    refunds: facts.locked.refunds.map((refund) => ({ ...refund })),
    steps: [],
  };
}

/** Lets the judge decide all that is due; may throw BalancesNeeded. */
export function decideOn(ctx: Context, facts: Facts, balances: Balances | null): Judged {
  const payments = facts.payments.map((payment) => ({ ...payment }));
  const it = caseOf(ctx, facts, balances, payments);
  return judgedOf(facts, it, judge(it));
}

/**
 * As {@link decideOn}, yielding to other work in between: for transactions that may have very many payments.
 * @param options.decision the merchant's decision, applied after everything that was due
 * @param options.portion the largest number of payments to handle, the others are due again; absent: all are handled, but not all are
 *   written at once
 */
export async function decideInTurns(
  ctx: Context,
  facts: Facts,
  balances: Balances | null,
  { decision, portion }: { readonly decision?: MerchantDecision; readonly portion?: number },
): Promise<Judged> {
  const turns = createTurns();
  const payments: Payment[] = [];
  await inParts(facts.payments, PAYMENTS_AT_ONCE, (part) => {
    for (const payment of part) payments.push({ ...payment });
    return turns.pass();
  });
  const it: Case = { ...caseOf(ctx, facts, balances, payments), ...(portion === undefined ? {} : { portionLeft: portion }) };
  let verdict = await inTurns(turns, it);
  if (decision !== undefined) {
    decision(it);
    verdict = await inTurns(turns, it);
  }
  await turns.pass();
  return judgedOf(facts, it, verdict, portion);
}

async function inTurns(turns: Turns, it: Case): Promise<Verdict> {
  const judging = judgeInTurns(it);
  for (;;) {
    const turn = judging.next();
    if (turn.done) return turn.value;
    await turns.pass();
  }
}

/**
 * What a verdict changed. Where it decided more than a portion (what pays the price, what the merchant accepts), all of that is written
 * later; payments of which only the next time to look has changed are written as far as the portion has room.
 */
function judgedOf(facts: Facts, it: Case, verdict: Verdict, portion = PAYMENTS_AT_ONCE): Judged {
  if (facts.isUnwritten) throw new Error(`a verdict on ${it.transaction.id} is not written yet`);
  const decided: Payment[] = [];
  const looked: Payment[] = [];
  for (const [n, payment] of it.payments.entries()) {
    const before = facts.payments[n] as Payment;
    if (isDecided(payment, before)) decided.push(payment);
    else if (isLookedAt(payment, before)) looked.push(payment);
  }
  const isMuch = decided.length > portion;
  const left = isMuch ? 0 : portion - decided.length;
  return {
    before: facts.locked,
    transaction: it.transaction,
    payments: [...(isMuch ? [] : decided), ...looked.slice(0, left)],
    later: isMuch ? decided : [],
    steps: it.steps,
    verdict,
    confirmations: confirmationsOf(it, verdict),
    nowMs: it.nowMs,
    more: it.more === true || isMuch || looked.length > left,
  };
}

/** As check_transaction counts them: of the youngest payment that counts, in review of the youngest of all. */
function confirmationsOf({ transaction, payments, chains }: Case, { youngest }: Verdict): number {
  const above = (currency: PaymentMethod, height: number | null): number =>
    height === null ? 0 : Math.max(0, (chains.get(currency)?.tipHeight ?? 0) - height + 1);
  if (transaction.status !== 'review') return youngest === null ? 0 : above(youngest.currency, youngest.height);
  const live = payments.filter(isLive).map(({ currency, height }) => above(currency, height));
  return live.length === 0 ? 0 : live.reduce((least, one) => Math.min(least, one));
}
