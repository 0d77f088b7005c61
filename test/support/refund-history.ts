// A random life of one transaction whose merchant sends payments back: payments of two currencies, in time or late, reorganisations, decisions,
// and reimbursements that are taken, leave, arrive, fail, or are displaced after they had arrived. Drawn from a seed.
import type { CurrencyCode } from '../../src/core/currency.ts';
import type { Refund } from '../../src/core/judge/case.ts';
import { Refusal } from '../../src/core/refusal.ts';
import type { Tx } from './chain-truth.ts';
import { DAY, HOUR, judgedTransaction, MINUTE, W } from './judged-transaction.ts';
import { randomBelow } from './random.ts';

export function liveWithRefunds(seed: number): void {
  const roll = randomBelow(seed);
  const pick = <T>(list: readonly T[]): T => list[roll(list.length)] as T;
  const currency = pick<CurrencyCode>(['BTC', 'DOGE', 'DASH']);
  const other: CurrencyCode = currency === 'BTC' ? 'LTC' : 'BTC';
  const final = currency === 'DOGE' ? 61 : 13;
  const judged = judgedTransaction({
    currency,
    usd: pick([50_00n, 500_00n, 5_000_00n]),
    toleranceBps: pick([0, 100]),
    latePolicy: pick(['accept', 'accept', 'review']),
    feeBps: pick([0, 0, 100]),
    settlementMs: pick([HOUR, DAY]),
  });
  const places = (place: Tx['place'], code = currency): Tx[] =>
    judged.chain(code).txs.filter((tx) => tx.place === place && tx.outputs.length > 0);
  const amount = (): bigint => (judged.amountDue * BigInt(pick([10, 100, 500, 985, 1_000, 1_000, 3_000]))) / 1_000n;
  const arrived: Refund[] = [];
  const first = () => judged.refundStates()[0];
  const fate = () => pick(['mempool', 'out', 'dead'] as const);
  const one = (txs: readonly Tx[], move: (tx: Tx) => void): void => {
    if (txs.length > 0) move(pick(txs));
  };

  const moves: readonly (() => void)[] = [
    () => judged.pay({ amount: amount() }),
    () => judged.pay({ amount: amount() }),
    () => judged.pay({ amount: amount() }),
    () => judged.pay({ amount: amount(), currency: other }),
    () => judged.mine(pick([1, 1, 2, 6])),
    () => judged.mine(pick([1, 1, 2, 6])),
    () => judged.mine(final),
    () => judged.mine(final),
    () => judged.mineEmpty(),
    () => judged.mine(13, other),
    () => judged.reorg(pick([1, 2, 7, final]), fate()),
    () => judged.reorg(13, fate(), other),
    () => one(places('mempool'), (tx) => judged.evict(tx)),
    () => one(places('mempool'), (tx) => judged.doubleSpend(tx)),
    () => one(places('mempool'), (tx) => judged.replace(tx, { amount: amount() })),
    () => one(places('out'), (tx) => judged.resend(tx)),
    () => one(places('out'), (tx) => judged.resend(tx)),
    () => judged.wait(pick([MINUTE, 11 * MINUTE, DAY, 73 * HOUR])),
    () => judged.until(W + MINUTE + 1),
    () => judged.accept(),
    () => judged.decline(),
    () => judged.cancel(),
    () => judged.acceptExcess(),
    () => {
      const part = judged.available() / pick([1n, 2n]);
      if (part > 0n) judged.spend(part);
    },
    () => judged.openRefund(),
    () => judged.openRefund(),
    () => judged.openRefund('excess'),
    () => judged.openRefund('excess'),
    () => judged.openRefund(pick(['whole', 'excess']), other),
  ];
  /** How one that has left ends. */
  const ends: readonly (() => void)[] = [
    () => void arrived.push(judged.finishRefund()),
    () => void arrived.push(judged.finishRefund()),
    () => judged.failRefund(),
  ];
  const displace = (): void => judged.displaceRefund(arrived.splice(roll(arrived.length), 1)[0] as Refund);
  if (roll(2) === 0) judged.until(W + HOUR);
  // too much, or late and too little, and it went back already
  if (roll(4) === 0) {
    judged.pay({ amount: (judged.amountDue * pick([985n, 3_000n])) / 1_000n });
    judged.mine(final);
    orRefused(() => judged.openRefund('excess'));
    if (first() === 'ready') {
      judged.commitRefund();
      arrived.push(judged.finishRefund());
    }
  }
  for (let left = 12 + roll(24); left > 0; left--) {
    const state = first();
    if (arrived.length > 0 && state !== undefined && roll(3) === 0) displace();
    else if (state === 'ready' && roll(3) > 0) judged.commitRefund();
    else if (state === 'committed' && roll(3) > 0) pick(ends)();
    else if (arrived.length > 0 && roll(4) === 0)
      orRefused(pick([displace, () => judged.openRefund(), () => judged.openRefund()]));
    else orRefused(pick(moves));
  }
}

/** A decision of the merchant, which may be refused. */
function orRefused(move: () => void): void {
  try {
    move();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
  }
}
