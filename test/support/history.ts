// A random life of one transaction: every move that payers, miners, attackers, our own nodes, price and merchant can make, drawn from a
// seed. At the end everything comes to rest, and the final state is checked.
import { expect } from 'vitest';
import { Refusal } from '../../src/core/refusal.ts';
import { isAlive, type Tx } from './chain-truth.ts';
import { DAY, HOUR, type JudgedTransaction, judgedTransaction, MINUTE, SECOND, W } from './judged-transaction.ts';
import { randomBelow } from './random.ts';

/**
 * @param each told after every move, to read a history that failed
 * @param options `portionLeft`: how the judge is asked, where not for everything at once; `currency`: of the order
 */
export function live(
  seed: number,
  each: (judged: JudgedTransaction, move: () => void) => void = () => undefined,
  options: { readonly portionLeft?: number; readonly currency?: 'BTC' | 'ETH' } = {},
): JudgedTransaction {
  const roll = randomBelow(seed);
  const pick = <T>(list: readonly T[]): T => list[roll(list.length)] as T;
  const judged = judgedTransaction({
    usd: pick([50_00n, 150_00n, 2_000_00n]),
    toleranceBps: pick([0, 100, 500]),
    latePolicy: pick(['accept', 'accept', 'review']),
    feeBps: pick([0, 0, 100]),
    ...options,
  });
  const { currency = 'BTC' } = options;
  const other = otherThan(currency);
  const alive = (): Tx[] => judged.chain(currency).txs.filter((tx) => isAlive(tx) && tx.outputs.length > 0);
  const waiting = (): Tx[] => alive().filter((tx) => tx.place === 'mempool');
  const amount = (): bigint => (judged.amountDue * BigInt(pick([1, 3, 5, 5, 9, 10, 10, 11, 20]))) / 10n + pick([0n, 0n, 1n, -1n]);

  const moves: readonly (() => void)[] = [
    () => judged.pay({ amount: amount() }),
    () => judged.pay({ amount: amount() }),
    () => judged.pay({ split: [amount(), amount()] }),
    () => judged.pay({ currency: other, amount: amount() }),
    () => judged.mine(),
    () => judged.mine(),
    () => judged.mine(pick([1, 2, 3, 6])),
    () => judged.mine(pick([1, 3, 12]), other),
    () => judged.pay({ amount: amount(), coinbase: true }),
    () => judged.mine(pick([1, 98])),
    () => judged.wait(pick([SECOND, MINUTE, 5 * MINUTE, 11 * MINUTE])),
    () => judged.wait(pick([HOUR, 3 * HOUR, DAY, 3 * DAY])),
    () => judged.until(pick([W - SECOND, W, W + MINUTE, W + 61 * SECOND, W + DAY])),
    () => judged.reorg(pick([1, 1, 2, 4]), pick(['mempool', 'mempool', 'out', 'dead'])),
    () => judged.reorg(1, pick(['mempool', 'out', 'dead']), other),
    () => {
      const tx = pick([null, ...waiting()]);
      if (tx !== null)
        pick([
          () => judged.evict(tx),
          () => judged.doubleSpend(tx),
          () => judged.replace(tx, { amount: amount() }),
          () => judged.malleate(tx),
        ])();
    },
    () => {
      for (const tx of judged.chain().txs) if (tx.place === 'out' && roll(2) === 0) judged.resend(tx);
    },
    () => judged.node('down'),
    () => judged.node('up'),
    () => judged.node('up'),
    () => judged.rate(pick([60_000n, 98_000n, 100_000n, 140_000n, null])),
    () => judged.rate(pick([80n, null]), other),
    () => orRefused(judged.cancel),
    () => orRefused(judged.accept),
    () => orRefused(judged.decline),
    () => orRefused(judged.acceptExcess),
    () => {
      if (judged.available() > 0n && judged.receivable() === 0n)
        judged.spend(pick([judged.available(), judged.available() / 2n + 1n]));
    },
  ];
  const length = 8 + roll(40);
  for (let n = 0; n < length; n++) {
    const move = pick(moves);
    move();
    each(judged, move);
  }
  rest(judged, currency);
  return judged;
}

const otherThan = (currency: 'BTC' | 'ETH'): 'BTC' | 'LTC' => (currency === 'BTC' ? 'LTC' : 'BTC');

/** A decision of the merchant, which may be refused. */
function orRefused(decide: () => void): void {
  try {
    decide();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

/** Nodes up, prices known, everything that can be mined is, and days pass: no status is a dead end, the books are the chain. */
function rest(judged: JudgedTransaction, currency: 'BTC' | 'ETH'): void {
  const other = otherThan(currency);
  judged.node('up');
  judged.node('up', other);
  judged.rate(100_000n);
  judged.rate(80n, other);
  for (let n = 0; n < 4; n++) {
    judged.mine(40);
    judged.mine(40, other);
    judged.wait(2 * DAY);
  }
  const { status, payments } = judged;
  expect(['started', 'pending', 'confirmed', 'timedout'], 'NoDeadStatus').not.toContain(status);
  for (const payment of payments) {
    const onChain = judged
      .chain(payment.currency === currency ? currency : other)
      .txs.some((tx) => tx.txid === payment.txid && tx.place === 'mined');
    expect(payment.partKey !== null, `LedgerIsChain: ${payment.txid} of ${status}`).toBe(onChain);
  }
  if (judged.suspense() + judged.suspense(other) > 0n) {
    judged.acceptExcess();
    expect(judged.suspense() + judged.suspense(other), 'NoStrandedMoney').toBe(0n);
  }
}
