// One transaction before the judge: the case that is made of its facts, asked at once or in turns, and what of it the verdict changed. Asks no
// database.
import type { CurrencyCode } from '../core/currency.ts';
import type { Balances, Case, ChainView, DatedBlock, Payment } from '../core/judge/case.ts';
import { judge, judgeInTurns, type Verdict } from '../core/judge/judge.ts';
import type { LockedTransaction } from '../store/transactions/cases.ts';
import type { Judged } from '../store/transactions/verdicts.ts';
import type { Context } from './context.ts';

export type Facts = {
  readonly locked: LockedTransaction;
  readonly payments: readonly Payment[];
  readonly chains: ReadonlyMap<CurrencyCode, ChainView>;
  readonly blocks: ReadonlyMap<number, DatedBlock>;
};
/** What the merchant says, applied to the case after everything that was due. */
export type MerchantDecision = (it: Case) => void;

function caseOf(ctx: Context, facts: Facts, balances: Balances | null): Case {
  return {
    transaction: { ...facts.locked.transaction },
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
}

/** Lets the judge decide all that is due, then what the merchant says; may throw BalancesNeeded, or the Refusal of the merchant's word. */
export function decideOn(ctx: Context, facts: Facts, balances: Balances | null, word?: MerchantDecision): Judged {
  const it = caseOf(ctx, facts, balances);
  let verdict = judge(it);
  if (word !== undefined) {
    word(it);
    verdict = judge(it);
  }
  return judgedOf(facts, it, verdict);
}

/** After so long others in this process have their turn. */
const TURN_MS = 20;

/**
 * As {@link decideOn}, letting others go on in between.
 * @param portion of so many payments at most something is noted; what is left is due again
 */
export async function decideInTurns(ctx: Context, facts: Facts, balances: Balances | null, portion: number): Promise<Judged> {
  const it: Case = { ...caseOf(ctx, facts, balances), room: portion };
  const judging = judgeInTurns(it);
  for (let began = performance.now(); ; ) {
    const turn = judging.next();
    if (turn.done) return judgedOf(facts, it, turn.value, portion);
    if (performance.now() - began < TURN_MS) continue;
    await othersTurn();
    began = performance.now();
  }
}

/** Lets others in this process go on. */
function othersTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** What a verdict changed. Of payments for which only the next time to look is another one, no more are written than there was room for. */
function judgedOf(facts: Facts, it: Case, verdict: Verdict, portion = Number.POSITIVE_INFINITY): Judged {
  const placed: Payment[] = [];
  const looked: Payment[] = [];
  for (const [n, payment] of it.payments.entries()) {
    const before = facts.payments[n] as Payment;
    if (PLACE.some((key) => payment[key] !== before[key])) placed.push(payment);
    else if (LOOK.some((key) => payment[key] !== before[key])) looked.push(payment);
  }
  const room = Math.max(0, portion - placed.length);
  return {
    before: facts.locked,
    transaction: it.transaction,
    payments: [...placed, ...looked.slice(0, room)],
    steps: it.steps,
    verdict,
    nowMs: it.nowMs,
    more: it.more === true || looked.length > room,
  };
}

/** What the judge writes of a payment: its places, and when to look again and whether it is shown as counted. */
const PLACE = [
  'classified',
  'present',
  'onTimeMinor',
  'valueRate',
  'judgedBlockHash',
  'generation',
  'credited',
  'suspended',
  'fee',
  'inAvailable',
  'inSuspense',
  'inRefund',
  'sentBack',
  'owed',
  'owedFee',
  'wasLost',
  'depositEntryKey',
] as const satisfies readonly (keyof Payment)[];
const LOOK = ['counted', 'dueHeight', 'dueAtMs'] as const satisfies readonly (keyof Payment)[];
