// What a fee replacement takes over is what a plain reading of the rule says, however the rows of replacements touch each other.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Case, Coin } from '../../src/core/judge/case.ts';
import { isOnTime, tolerance } from '../../src/core/judge/coins.ts';
import { noticeCoins } from '../../src/core/judge/notice.ts';
import { newCase, newCoin, WINDOW_END_MS } from '../support/one-case.ts';

const total = (amounts: readonly bigint[]): bigint => amounts.reduce((a, b) => a + b, 0n);
const min = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const max = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const txidsOf = (coins: readonly Coin[]): string[] => [...new Set(coins.map((coin) => coin.txid))];

/** Payments are in one row when a chain of common outpoints leads from one to the other: the plain way, every pair again and again. */
function rows(coins: readonly Coin[]): Coin[][] {
  const list = coins.map((coin) => [coin]);
  for (;;) {
    const meet = (a: Coin, b: Coin) => a.txid === b.txid || a.spends.some((outpoint) => b.spends.includes(outpoint));
    const pair = list.flatMap((one, i) =>
      list.slice(i + 1).flatMap((other) => (one.some((a) => other.some((b) => meet(a, b))) ? [[one, other]] : [])),
    )[0];
    if (pair === undefined) return list;
    pair[0]!.push(...pair[1]!);
    list.splice(list.indexOf(pair[1]!), 1);
  }
}

/** Rule "a fee replacement is on time if what it replaces was, up to its amount", coin by coin. */
function plainlyOnTime(it: Case, coin: Coin): bigint {
  if (it.transaction.word === 'cancelled') return 0n;
  if (isOnTime(it.transaction, coin)) return coin.amount;
  const replaced = it.coins.filter((other) => other.conflictTxid === coin.txid && other.currency === coin.currency);
  const wasOnTime = (other: Coin) => (other.classified ? other.onTimeMinor : isOnTime(it.transaction, other) ? other.amount : 0n);
  const inherited = total(
    rows(replaced).map((row) =>
      txidsOf(row)
        .map((txid) => total(row.filter((other) => other.txid === txid).map(wasOnTime)))
        .reduce(max),
    ),
  );
  const siblings = it.coins.filter(
    (other) => other.txid === coin.txid && other.currency === coin.currency && other.classified && other !== coin,
  );
  return min(coin.amount, max(0n, inherited - total(siblings.map((other) => other.onTimeMinor))));
}

/** What the loss of the replaced ones took goes over to their replacement, coin by coin. */
function plainlyInherit(it: Case, heir: Coin): void {
  const lost = it.coins.filter(
    (other) => other.conflictTxid === heir.txid && other.currency === heir.currency && other.depositEntryKey === null,
  );
  if (heir.depositEntryKey !== null || total(lost.map((other) => other.owed)) === 0n) return;
  for (const other of lost) {
    const taken = min(other.owed + other.owedFee, heir.amount - heir.owed - heir.owedFee);
    const owed = min(other.owed, taken - min(other.owedFee, (taken * BigInt(it.feeBps)) / 10_000n));
    heir.owed += owed;
    heir.owedFee += taken - owed;
    other.owed -= owed;
    other.owedFee -= taken - owed;
    if (other.owed > 0n) continue;
    heir.wasLost ||= other.wasLost;
    other.wasLost = false;
  }
  const right = it.coins.filter((other) => other !== heir && other.currency === it.transaction.currency);
  const elsewhere = total(right.map((other) => other.inAvailable + other.owed + other.owedFee));
  const most = it.transaction.need + tolerance(it.transaction);
  if (heir.owed === 0n || heir.currency !== it.transaction.currency || elsewhere + heir.amount > most) return;
  heir.owedFee = (heir.amount * BigInt(it.feeBps)) / 10_000n;
  heir.owed = heir.amount - heir.owedFee;
}

/** The news of a case, in the order in which they are told. */
function plainly(it: Case): void {
  const news = it.coins.filter((coin) => (coin.state === 'mempool' || coin.state === 'mined') && !coin.present);
  for (const coin of news) {
    if (coin.classified) continue;
    coin.onTimeMinor = plainlyOnTime(it, coin);
    coin.classified = true;
  }
  const late = (coin: Coin) => coin.currency === it.transaction.currency && coin.onTimeMinor === 0n;
  for (const coin of [...news.filter((one) => !late(one)), ...news.filter(late)]) plainlyInherit(it, coin);
}

const OF_LOSS = ['owed', 'owedFee', 'wasLost'] as const;
const notes = (coins: readonly Coin[]) =>
  coins.map((coin) => [coin.id, coin.classified, coin.onTimeMinor, ...OF_LOSS.map((name) => coin[name])]);

const amount = fc.bigInt({ min: 1n, max: 60n });
/** One output: how much of it counts as what, where its transaction's place asks for it. */
const output = fc.record({
  amount,
  onTime: fc.bigInt({ min: 0n, max: 60n }),
  owed: fc.oneof(fc.constant(0n), amount),
  owedFee: fc.oneof(fc.constant(0n), amount),
  wasLost: fc.boolean(),
  inAvailable: fc.oneof(fc.constant(0n), fc.constant(0n), amount),
});
const transaction = fc.record({
  outputs: fc.array(output, { minLength: 1, maxLength: 4 }),
  /** By which of the first three transactions it is replaced; those themselves are there. */
  replacedBy: fc.integer({ min: 0, max: 2 }),
  spends: fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { maxLength: 3 }),
  currency: fc.constantFrom('BTC', 'BTC', 'BTC', 'LTC'),
  onTime: fc.boolean(),
  classified: fc.boolean(),
  present: fc.boolean(),
});
const small = fc.record({
  transactions: fc.array(transaction, { minLength: 4, maxLength: 9 }),
  cancelled: fc.constantFrom(false, false, false, true),
  feeBps: fc.constantFrom(0, 0, 100, 5_000),
  order: fc.infiniteStream(fc.nat()),
});

type Facts = typeof small extends fc.Arbitrary<infer T> ? T : never;

function caseOf({ transactions, cancelled, feeBps, order }: Facts): Case {
  let id = 0;
  const coins = transactions.flatMap((one, n) => {
    const there = n < 3;
    return one.outputs.map((each) => {
      const classified = one.classified;
      const lost = !there && classified;
      const owed = lost ? min(each.owed, each.amount) : 0n;
      return newCoin(id++, {
        txid: `tx${n}`,
        currency: there ? (transactions[n]!.currency as 'BTC') : (transactions[one.replacedBy]!.currency as 'BTC'),
        amount: each.amount,
        state: there ? 'mempool' : 'conflicted',
        conflictTxid: there ? null : `tx${one.replacedBy}`,
        spends: there ? [] : one.spends.map((outpoint) => `in:${outpoint}`),
        seenAtMs: one.onTime ? WINDOW_END_MS : WINDOW_END_MS + 3_600_000,
        caughtUpAtMs: WINDOW_END_MS + 3_599_000,
        classified,
        present: there && classified && one.present,
        onTimeMinor: classified ? min(each.onTime, each.amount) : 0n,
        owed,
        owedFee: lost ? min(each.owedFee, each.amount - owed) : 0n,
        wasLost: lost && each.wasLost,
        inAvailable: there && classified ? min(each.inAvailable, each.amount) : 0n,
      });
    });
  });
  // their order is that in which they were seen, whatever transaction they are of
  const mixed = coins.map((coin) => ({ coin, at: order.next().value as number })).sort((a, b) => a.at - b.at);
  return newCase(
    mixed.map(({ coin }) => coin),
    { feeBps, transaction: { need: 100n, status: 'review', why: 'late', word: cancelled ? 'cancelled' : 'none' } },
  );
}

test('what replacements take over is what a plain reading of the rule gives, whatever the rows, the losses and the order', () => {
  let inherited = 0;
  let restored = 0;
  fc.assert(
    fc.property(small, (facts) => {
      const it = caseOf(facts);
      const copy: Case = { ...it, transaction: { ...it.transaction }, coins: it.coins.map((coin) => ({ ...coin })) };
      const before = new Map(it.coins.map((coin) => [coin.id, { ...coin }]));
      noticeCoins(it);
      plainly(copy);
      expect(notes(it.coins)).toEqual(notes(copy.coins));
      for (const coin of it.coins) {
        const was = before.get(coin.id) as Coin;
        if (!was.classified && coin.onTimeMinor > 0n && coin.onTimeMinor < coin.amount) inherited++;
        if (was.owed === 0n && coin.owed > 0n) restored++;
      }
    }),
    { numRuns: 2_000 },
  );
  // the cases are not empty ones
  expect(inherited).toBeGreaterThan(50);
  expect(restored).toBeGreaterThan(50);
});
