// What a transaction on Ethereum's chain offers, without a chain.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { exactOffer, isReplacement, payoutOffer, replacementOffer } from '../../src/core/payouts/gas.ts';

const wei = fc.bigInt(0n, 10n ** 12n);
const fees = fc.record({ base: wei, tip: wei });
/** What geth asks for (`pricebump`): a tenth more of each of the two. */
const tenthMore = (now: bigint, before: bigint): boolean => now * 10n >= before * 11n;

test('every replacement raises the fee and the tip by the tenth that nodes ask for, whatever gas costs by then', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(payoutOffer, exactOffer),
      fees,
      fc.array(fees, { minLength: 1, maxLength: 5 }),
      (first, at, later) => {
        let last = first(at);
        for (const now of later) {
          const next = replacementOffer(last.maxFee, now);
          expect(next.tip).toBeLessThanOrEqual(next.maxFee);
          expect([tenthMore(next.maxFee, last.maxFee), tenthMore(next.tip, last.tip)]).toEqual([true, true]);
          expect(isReplacement(next, last)).toBe(true);
          last = next;
        }
      },
    ),
  );
});

test('an offer that raises one of the two only is none', () => {
  const last = { maxFee: 80n, tip: 8n };
  expect(isReplacement({ maxFee: 90n, tip: 9n }, last)).toBe(true);
  expect(isReplacement({ maxFee: 89n, tip: 9n }, last)).toBe(false);
  expect(isReplacement({ maxFee: 900n, tip: 8n }, last)).toBe(false);
});
