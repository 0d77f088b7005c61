// A random life of one transaction: every move that payers, miners, attackers, our own nodes, price and merchant can make, drawn from a
// seed. At the end everything comes to rest, and the final state is checked.
import { expect } from 'vitest';
import { Refusal } from '../../src/core/refusal.ts';
import { isAlive, type Tx } from './chain-truth.ts';
import { dice } from './dice.ts';
import { DAY, HOUR, type JudgedTransaction, judgedTransaction, MINUTE, SECOND, W } from './judged-transaction.ts';

/**
 * @param each told after every move, to read a history that failed
 * @param portions how the judge is asked, where not for everything at once
 */
export function live(
  seed: number,
  each: (world: JudgedTransaction, move: () => void) => void = () => undefined,
  portions: { readonly room?: number } = {},
): JudgedTransaction {
  const roll = dice(seed);
  const pick = <T>(list: readonly T[]): T => list[roll(list.length)] as T;
  const world = judgedTransaction({
    usd: pick([50_00n, 150_00n, 2_000_00n]),
    toleranceBps: pick([0, 100, 500]),
    latePolicy: pick(['accept', 'accept', 'review']),
    feeBps: pick([0, 0, 100]),
    ...portions,
  });
  const other = 'LTC' as const;
  const alive = (currency: 'BTC' | 'LTC' = 'BTC'): Tx[] =>
    world.chain(currency).txs.filter((tx) => isAlive(tx) && tx.outputs.length > 0);
  const waiting = (): Tx[] => alive().filter((tx) => tx.place === 'mempool');
  const amount = (): bigint => (world.amountDue * BigInt(pick([1, 3, 5, 5, 9, 10, 10, 11, 20]))) / 10n + pick([0n, 0n, 1n, -1n]);

  const moves: readonly (() => void)[] = [
    () => world.pay({ amount: amount() }),
    () => world.pay({ amount: amount() }),
    () => world.pay({ split: [amount(), amount()] }),
    () => world.pay({ currency: other, amount: amount() }),
    () => world.mine(),
    () => world.mine(),
    () => world.mine(pick([1, 2, 3, 6])),
    () => world.mine(pick([1, 3, 12]), other),
    () => world.pay({ amount: amount(), coinbase: true }),
    () => world.mine(pick([1, 98])),
    () => world.wait(pick([SECOND, MINUTE, 5 * MINUTE, 11 * MINUTE])),
    () => world.wait(pick([HOUR, 3 * HOUR, DAY, 3 * DAY])),
    () => world.until(pick([W - SECOND, W, W + MINUTE, W + 61 * SECOND, W + DAY])),
    () => world.reorg(pick([1, 1, 2, 4]), pick(['mempool', 'mempool', 'out', 'dead'])),
    () => world.reorg(1, pick(['mempool', 'out', 'dead']), other),
    () => {
      const tx = pick([null, ...waiting()]);
      if (tx !== null)
        pick([
          () => world.evict(tx),
          () => world.doubleSpend(tx),
          () => world.replace(tx, { amount: amount() }),
          () => world.malleate(tx),
        ])();
    },
    () => {
      for (const tx of world.chain().txs) if (tx.place === 'out' && roll(2) === 0) world.resend(tx);
    },
    () => world.node('down'),
    () => world.node('up'),
    () => world.node('up'),
    () => world.rate(pick([60_000n, 98_000n, 100_000n, 140_000n, null])),
    () => world.rate(pick([80n, null]), other),
    () => tell(world.cancel),
    () => tell(world.accept),
    () => tell(world.decline),
    () => tell(world.acceptExcess),
    () => {
      if (world.available() > 0n && world.receivable() === 0n)
        world.spend(pick([world.available(), world.available() / 2n + 1n]));
    },
  ];
  const length = 8 + roll(40);
  for (let n = 0; n < length; n++) {
    const move = pick(moves);
    move();
    each(world, move);
  }
  rest(world);
  return world;
}

function tell(word: () => void): void {
  try {
    word();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}

/** Nodes up, prices known, everything that can be mined is, and all the time in the world: no status is a dead end, the books are the chain. */
function rest(world: JudgedTransaction): void {
  world.node('up');
  world.node('up', 'LTC');
  world.rate(100_000n);
  world.rate(80n, 'LTC');
  for (let n = 0; n < 4; n++) {
    world.mine(40);
    world.mine(40, 'LTC');
    world.wait(2 * DAY);
  }
  const { status, payments } = world;
  expect(['started', 'pending', 'confirmed', 'timedout'], 'NoDeadStatus').not.toContain(status);
  for (const coin of payments) {
    const onChain = world
      .chain(coin.currency === 'BTC' ? 'BTC' : 'LTC')
      .txs.some((tx) => tx.txid === coin.txid && tx.place === 'mined');
    expect(coin.depositEntryKey !== null, `LedgerIsChain: ${coin.txid} of ${status}`).toBe(onChain);
  }
  if (world.suspense() + world.suspense('LTC') > 0n) {
    world.acceptExcess();
    expect(world.suspense() + world.suspense('LTC'), 'NoStrandedMoney').toBe(0n);
  }
}
