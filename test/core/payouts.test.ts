// Payouts without a database: the table of their life, the entries of every way through it, and what a transaction costs.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Entry } from '../../src/core/judge/case.ts';
import { greatest, least } from '../../src/core/money.ts';
import { boundedRate, feeOf, replacementRate, reservedFee, shares, virtualBytes } from '../../src/core/payouts/outgoing-fees.ts';
import {
  completeEntries,
  giveBackEntries,
  holdEntry,
  type PostedPayout,
  releaseEntry,
  returnEntry,
  signEntry,
  trueUpEntry,
} from '../../src/core/payouts/postings.ts';
import { PAYOUT_STATUSES, PAYOUT_TRANSITIONS, payoutTransition } from '../../src/core/payouts/states.ts';

const AVAILABLE = 'merchant:1:available:BTC';
const HELD = 'merchant:1:held:BTC';
const OWED = 'asset:receivable:merchant:1:BTC';
const CHAIN = 'asset:chain:BTC';
const OUTBOUND = 'asset:chain:BTC:outbound';

/** A ledger in memory: what each account holds, + debit. Refuses what the real one refuses. */
function ledger(start: Readonly<Record<string, bigint>>) {
  const held = new Map(Object.entries(start));
  const keys = new Set<string>();
  return {
    of: (account: string): bigint => held.get(account) ?? 0n,
    post(entries: readonly (Entry | null)[]): void {
      for (const entry of entries) {
        if (entry === null) continue;
        expect(keys.has(entry.key), `${entry.key} twice`).toBe(false);
        keys.add(entry.key);
        expect(entry.postings.length).toBeGreaterThanOrEqual(2);
        expect(entry.postings.reduce((sum, line) => sum + line.amount, 0n)).toBe(0n);
        expect(new Set(entry.postings.map((line) => line.account)).size).toBe(entry.postings.length);
        for (const { account, amount } of entry.postings) held.set(account, (held.get(account) ?? 0n) + amount);
      }
      expect(-(held.get(AVAILABLE) ?? 0n)).toBeGreaterThanOrEqual(0n);
      expect(-(held.get(HELD) ?? 0n)).toBeGreaterThanOrEqual(0n);
      expect(held.get(OWED) ?? 0n).toBeGreaterThanOrEqual(0n);
      expect(held.get(OUTBOUND) ?? 0n).toBeGreaterThanOrEqual(0n);
    },
  };
}

describe('the life of a payout', () => {
  test('every status is reached, every step but the last has a way on, and only evidence ends what was signed', () => {
    const reached = new Set(PAYOUT_TRANSITIONS.map((row) => row.to[0]));
    expect(PAYOUT_STATUSES.filter((status) => !reached.has(status))).toEqual([]);
    const left = new Set(PAYOUT_TRANSITIONS.map((row) => row.from?.join() ?? ''));
    const stuck = PAYOUT_TRANSITIONS.map((row) => row.to.join()).filter((to) => !left.has(to) && to !== 'failed,ended');
    expect(stuck).toEqual([]);
    const ends = PAYOUT_TRANSITIONS.filter((row) => row.from?.[1] === 'batched' && row.to[1] === 'ended').map((row) => row.event);
    expect(ends).toEqual(['confirmed', 'impossible', 'settled', 'refused', 'returned', 'paid', 'unpayable']);
  });

  test('only a payout that is pending can be cancelled', () => {
    for (const from of [
      ['processing', 'queued'],
      ['processing', 'batched'],
      ['completed', 'ended'],
      ['failed', 'ended'],
    ] as const)
      expect(() => payoutTransition(from, 'cancelled')).toThrow('knows no event cancelled');
    expect(payoutTransition(['pending', 'held'], 'cancelled').to).toEqual(['failed', 'ended']);
  });
});

const payoutOf = (amount: bigint, feeMax: bigint): PostedPayout => ({
  id: 'payout_1',
  merchantId: 1n,
  currency: 'BTC',
  amount,
  feeMax,
  reimburses: null,
});

describe('the entries', () => {
  const amounts = fc.record({
    amount: fc.bigInt(1n, 10n ** 12n),
    feeMax: fc.bigInt(0n, 10n ** 6n),
    fees: fc.array(fc.bigInt(0n, 10n ** 6n), { minLength: 1, maxLength: 4 }),
    wins: fc.nat(3),
    laterWins: fc.option(fc.nat(3), { nil: null }),
    owed: fc.bigInt(0n, 2n * 10n ** 12n),
    end: fc.constantFrom('completed', 'impossible', 'displaced', 'cancelled'),
  });

  test('every way through the table leaves no unit lost or doubled, and repays what is owed first', () => {
    fc.assert(
      fc.property(amounts, ({ amount, feeMax, fees, wins, laterWins, owed, end }) => {
        const payout = payoutOf(amount, feeMax);
        const capped = fees.map((fee) => least(fee, feeMax));
        const books = ledger({ [AVAILABLE]: -(amount + feeMax), [CHAIN]: amount + feeMax + owed, [OWED]: 0n });
        books.post([holdEntry(payout)]);
        // a loss elsewhere, after the request
        books.post([
          {
            key: 'loss',
            kind: 'x',
            parts: [],
            postings:
              owed === 0n
                ? padding
                : [
                    { account: OWED, amount: owed },
                    { account: CHAIN, amount: -owed },
                  ],
          },
        ]);
        if (end === 'cancelled') {
          books.post([releaseEntry(payout, owed)]);
          expect(books.of(HELD)).toBe(0n);
          const back = amount + feeMax;
          expect(-books.of(AVAILABLE)).toBe(back - least(owed, back));
          return;
        }
        let before: bigint | null = null;
        for (const [at, fee] of capped.entries()) {
          books.post([signEntry(payout, at + 1, fee, before)]);
          before = before === null ? fee : greatest(before, fee);
        }
        const booked = before as bigint;
        expect(books.of(OUTBOUND)).toBe(amount + booked);
        if (end === 'impossible') {
          books.post(giveBackEntries(payout, booked, owed));
          expect([books.of(OUTBOUND), books.of(HELD)]).toEqual([0n, 0n]);
          expect(books.of(CHAIN)).toBe(amount + feeMax);
          return;
        }
        const fee = capped[wins % capped.length] as bigint;
        books.post(completeEntries(payout, fee, booked, owed));
        expect([books.of(OUTBOUND), books.of(HELD)]).toEqual([0n, 0n]);
        expect(books.of(CHAIN)).toBe(feeMax - fee);
        const rest = feeMax - fee;
        const repaid = least(owed, rest);
        expect(books.of(OWED)).toBe(owed - repaid);
        if (laterWins !== null) {
          const other = capped[laterWins % capped.length] as bigint;
          books.post([trueUpEntry(payout, other, fee, new Map())]);
          expect(books.of(CHAIN)).toBe(feeMax - other);
        }
        if (end === 'displaced') {
          const open = books.of(OWED);
          books.post([returnEntry(payout, fee, open, new Map())]);
          const whole = amount + fee;
          expect(books.of(OWED)).toBe(open - least(open, whole));
        }
      }),
      { numRuns: 500 },
    );
  });
  const padding = [
    { account: 'a', amount: 1n },
    { account: 'b', amount: -1n },
  ];
});

describe('what a transaction costs', () => {
  test('one P2WPKH input, a P2WPKH payee and change are 141 virtual bytes, one more than the shortest signature makes', () => {
    expect(virtualBytes(['p2wpkh'], [22, 22])).toBe(141);
  });

  test('the shares of a fee are its whole, and differ by one unit at most', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 10n ** 9n), fc.integer({ min: 1, max: 300 }), (fee, payouts) => {
        const parts = shares(fee, payouts);
        expect(parts.reduce((sum, part) => sum + part, 0n)).toBe(fee);
        expect((parts[0] as bigint) - (parts.at(-1) as bigint)).toBeLessThanOrEqual(1n);
      }),
    );
  });

  test('no rate is below what is relayed or above the cap, and a replacement always pays enough more', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 10n ** 7n), fc.bigInt(1n, 10n ** 7n), (last, estimate) => {
        const was = boundedRate('BTC', last);
        const next = replacementRate('BTC', was, estimate);
        expect(next).toBeLessThanOrEqual(500_000n);
        expect(boundedRate('BTC', estimate)).toBeGreaterThanOrEqual(1_000n);
        if (was < 400_000n) expect(next - was).toBeGreaterThanOrEqual(1_000n);
        expect(reservedFee('BTC', estimate)).toBeGreaterThanOrEqual(feeOf(400, boundedRate('BTC', estimate)));
      }),
    );
  });
});
