// How many connections there are in all, and who may have how many of them.
import { describe, expect, test } from 'vitest';
import type { Pace } from '../../../src/worker/deliveries/pace.ts';
import { createSlots } from '../../../src/worker/deliveries/slots.ts';

const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

type Kind = Pick<Pace, 'limit' | 'hasAnswered' | 'keepsMs'>;

describe('connections', () => {
  const away: Kind = { limit: 1, hasAnswered: false, keepsMs: 15_000 };
  const silent: Kind = { limit: 2, hasAnswered: false, keepsMs: 15_000 };
  const keeping = (keepsMs: number): Kind => ({ limit: 2, hasAnswered: true, keepsMs });
  /** What so many endpoints one after the other take, each of a merchant of its own where none is named. */
  const take = (slots: ReturnType<typeof createSlots>, kind: Kind, merchant: bigint | null = null, count = 400) =>
    times(count, 0).flatMap((_, n) => slots.take({ number: BigInt(n), merchantId: merchant ?? BigInt(n) }, kind) ?? []);
  const taken = (...asked: Parameters<typeof take>): number => take(...asked).length;
  const POOLS = [
    [250, 352],
    [1_000, 96],
    [4_000, 64],
    [15_000, 64],
  ] as const;

  test('are apart for those that keep one for up to 250 ms, 1 s, 4 s and longer, whoever has taken the others', () => {
    const slots = createSlots();
    for (const kind of [away, silent]) take(slots, kind);
    for (const [keepsMs, most] of POOLS) {
      expect([keepsMs, taken(slots, keeping(keepsMs))]).toEqual([keepsMs, most]);
      expect([slots.isFree(keeping(keepsMs)), slots.isFree(keeping(keepsMs + 1))]).toEqual([false, keepsMs < 15_000]);
    }
    expect(slots.isFree(keeping(40_000))).toBe(false);
  });

  test('are 120 for endpoints that have not answered, of those 96 for endpoints that were away for long', () => {
    const slots = createSlots();
    expect([taken(slots, silent), taken(slots, away)]).toEqual([120, 0]);
    const others = createSlots();
    expect([others.lastTurn(0n, away), taken(others, away, null, 1), others.lastTurn(0n, away)]).toEqual([0, 1, 1]);
    expect([taken(others, away), others.isFree(away), others.isFree(silent), taken(others, silent)]).toEqual([
      95,
      false,
      true,
      24,
    ]);
    const back = createSlots();
    for (const giveBack of take(back, away).slice(1)) giveBack();
    expect(taken(back, away)).toBe(95);
  });

  test('are a merchant’s only while it has fewer than are free, and an endpoint’s while it has fewer than its merchant may still have', () => {
    const ofOne = (number: bigint, merchantId: bigint) => {
      let got = 0;
      while (slots.take({ number, merchantId }, keeping(4_000)) !== null) got += 1;
      return got;
    };
    const slots = createSlots();
    // 64 - 21 - 21 = 22
    const share = (number: bigint, merchantId: bigint) => slots.shareOf({ number, merchantId }, keeping(4_000));
    expect([ofOne(1n, 1n), ofOne(1n, 1n), share(1n, 1n), share(2n, 1n), share(3n, 2n)]).toEqual([22, 0, 20, 20, 42]);
    expect(ofOne(2n, 1n)).toBe(7);
    expect(ofOne(3n, 1n)).toBe(2);
    expect(ofOne(4n, 1n)).toBe(1);
    expect(ofOne(5n, 1n)).toBe(0);
    // half of them are left to the next merchant
    expect(
      times(40, 0).filter((_, n) => slots.take({ number: BigInt(10 + n), merchantId: 2n }, keeping(4_000)) !== null),
    ).toHaveLength(16);
    expect(slots.isFree(keeping(4_000))).toBe(true);
    expect([share(5n, 1n), slots.shareOf({ number: 1n, merchantId: 1n }, silent)]).toEqual([1, Number.POSITIVE_INFINITY]);
  });

  test('of quick endpoints are a merchant’s up to a quarter of what is free, and the first of each, whatever the others of its merchant hold', () => {
    const slots = createSlots();
    const quick = keeping(5);
    const ofOne = (number: bigint, merchantId: bigint) => {
      let got = 0;
      while (slots.take({ number, merchantId }, quick) !== null) got += 1;
      return got;
    };
    expect([1n, 2n, 3n, 4n, 5n].map((number) => ofOne(number, 1n))).toEqual([32, 16, 8, 4, 2]);
    // of merchants whose endpoints begin to hang one after the other the twentieth still finds some
    const merchants = times(20, 0).map((_, n) => ofOne(BigInt(10 + n), BigInt(10 + n)));
    expect([merchants[0], merchants.at(-1)]).toEqual([32, 4]);
    expect(slots.isFree(quick)).toBe(true);
  });

  test('of one endpoint are as many as its merchant may still have in all', () => {
    const slots = createSlots();
    take(slots, silent, 1n, 40);
    const more = times(40, 0).filter(() => slots.take({ number: 1_000n, merchantId: 1n }, keeping(5)) !== null);
    expect(more).toHaveLength(12);
  });

  test('of a merchant that has 64 are not to be had, but for the first of a quick endpoint', () => {
    const slots = createSlots();
    expect(slots.hasRoom(1n)).toBe(true);
    const mine = take(slots, away, 1n, 63);
    expect(slots.hasRoom(1n)).toBe(true);
    take(slots, away, 1n, 1);
    expect([slots.hasRoom(1n), slots.hasRoom(2n)]).toEqual([false, true]);
    expect([taken(slots, away, 1n), taken(slots, keeping(500), 1n), taken(slots, away, 2n)]).toEqual([0, 0, 32]);
    expect(slots.take({ number: 2_000n, merchantId: 1n }, keeping(5))).not.toBeNull();
    expect(slots.take({ number: 2_000n, merchantId: 1n }, keeping(5))).toBeNull();
    mine[0]?.();
    mine[1]?.();
    expect(slots.hasRoom(1n)).toBe(true);
    expect(taken(slots, away, 1n)).toBe(1);
    expect(
      times(30, 0).filter((_, n) => slots.take({ number: BigInt(3_000 + n), merchantId: 1n }, keeping(5)) !== null),
    ).toHaveLength(16);
  });

  test('that are given back one by one leave a merchant the others', () => {
    const slots = createSlots();
    const mine = take(slots, silent, 1n, 64);
    mine[0]?.();
    mine[1]?.();
    expect(taken(slots, silent, 1n)).toBe(2);
    for (const giveBack of mine.slice(2)) giveBack();
    // those two still count
    expect(taken(slots, silent, 1n)).toBe(62);
  });

  test('are free again when they are given back', () => {
    const slots = createSlots();
    const all = take(slots, keeping(1_000));
    expect(all).toHaveLength(96);
    for (const giveBack of all) giveBack();
    expect(taken(slots, keeping(1_000))).toBe(96);
    expect(taken(slots, keeping(1_000))).toBe(0);
  });

  test('are 48 more for endpoints that nothing is known of: half at once, the others evenly over the time that one may take', () => {
    const slots = createSlots();
    const forNew = (nowMs: number) => slots.takeForNew(1_000n, nowMs);
    for (const kind of [silent, ...POOLS.map(([keepsMs]) => keeping(keepsMs))]) take(slots, kind);
    const first = times(30, 0).flatMap(() => forNew(0) ?? []);
    expect(first).toHaveLength(24);
    const free = [624, 625, 625, 1_249, 1_250].map((nowMs) => [slots.forNewInMs(nowMs), forNew(nowMs) !== null]);
    expect(free).toEqual([
      [1, false],
      [0, true],
      [625, false],
      [1, false],
      [0, true],
    ]);
    for (const giveBack of first.slice(0, 3)) giveBack();
    // fewer than half are open: at once again
    expect([slots.forNewInMs(1_250), forNew(1_250) !== null, forNew(1_250)]).toEqual([0, true, null]);
    const later = Array.from({ length: 40 }, (_, n) => forNew(2_000 + 625 * n)).filter((one) => one !== null);
    expect(later).toHaveLength(24);
    expect(slots.forNewInMs(1_000_000)).toBe(Number.POSITIVE_INFINITY);
    expect(forNew(1_000_000)).toBeNull();
    first[3]?.();
    // what is kept for new ones is given to no other
    expect([taken(slots, away), taken(slots, silent), forNew(1_000_000) !== null]).toEqual([0, 0, true]);
  });

  test('of a merchant are no more because its endpoints are new', () => {
    const slots = createSlots();
    const mine = take(slots, silent, 1n, 64);
    // whoever gets none takes none from others
    expect(times(30, 0).filter(() => slots.takeForNew(1n, 0) !== null)).toEqual([]);
    expect(times(30, 0).filter(() => slots.takeForNew(2n, 0) !== null)).toHaveLength(24);
    mine[0]?.();
    slots.takeForNew(1n, 625)?.();
    expect(taken(slots, silent, 1n)).toBe(1);
  });
});
