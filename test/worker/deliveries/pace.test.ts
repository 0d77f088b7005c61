// How many deliveries an endpoint gets at a time, when it rests, and how many connections there are in all.
import { describe, expect, test } from 'vitest';
import type { OutboundResult } from '../../../src/core/outbound.ts';
import {
  ATTEMPTS_KEPT_MS,
  FORMER_SECRET_MS,
  GONE,
  isAway,
  isDelivered,
  LONGEST_PAUSES_MS,
  MOST_WEBHOOKS,
  nextAttempt,
  RETRY_AFTER_MS,
  SECRET_BYTES,
} from '../../../src/core/webhooks.ts';
import { LEARNED_OF, NEW_PACE, type Pace, paceAfter, paceOf, restMs, takenAtOnce } from '../../../src/worker/deliveries/pace.ts';
import { createSlots } from '../../../src/worker/deliveries/slots.ts';

const NOW = Date.UTC(2026, 5, 1);
const answered = (status: number, tookMs = 10): OutboundResult => ({
  kind: 'answered',
  status,
  body: new Uint8Array(),
  isCut: false,
  tookMs,
});
const silent: OutboundResult = { kind: 'failed', failure: 'timed_out', reason: '', tookMs: 15_000 };
const paced = (results: readonly OutboundResult[], from: Pace = NEW_PACE): Pace =>
  results.reduce((pace, result) => paceAfter(pace, result, NOW), from);
const times = <T>(count: number, one: T): T[] => Array.from({ length: count }, () => one);

describe('the schedule', () => {
  test('is that of behaviour §8, each pause up to a tenth longer, and ends after ten attempts', () => {
    const seconds = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
    expect(RETRY_AFTER_MS).toEqual(seconds.map((one) => one * 1_000));
    expect(LONGEST_PAUSES_MS).toEqual(seconds.map((one) => one * 1_100));
    for (const [n, pause] of seconds.entries()) {
      expect(nextAttempt(n + 1, NOW, 0)).toBe(NOW + pause * 1_000);
      expect(nextAttempt(n + 1, NOW, 1)).toBe(NOW + pause * 1_100);
    }
    expect(nextAttempt(10, NOW, 0)).toBeNull();
  });

  test('the numbers that merchants are told are these', () => {
    expect([GONE, MOST_WEBHOOKS, FORMER_SECRET_MS, SECRET_BYTES]).toEqual([410, 16, 86_400_000, 32]);
    expect(ATTEMPTS_KEPT_MS).toBe(30 * 86_400_000);
  });

  test('a 2xx alone is a delivery, and an endpoint is away when nothing, or nobody behind it, answers', () => {
    expect([199, 200, 204, 299, 300, 410, 500].filter((status) => isDelivered(answered(status)))).toEqual([200, 204, 299]);
    expect([200, 404, 429, 500, 501, 502, 503, 504].filter((status) => isAway(answered(status)))).toEqual([429, 502, 503, 504]);
    expect([isDelivered(silent), isAway(silent)]).toEqual([false, true]);
  });
});

describe('an endpoint', () => {
  test('begins with two at a time, and gets twice as many with each quick answer, at most 32', () => {
    const limits = times(6, answered(200)).map((_, n) => paced(times(n, answered(200))).limit);
    expect(limits).toEqual([2, 4, 8, 16, 32, 32]);
    // an answer is one, also where it refuses
    expect(paced([answered(500)]).limit).toBe(4);
  });

  test('that takes more than a second gets two at a time again', () => {
    const quick = paced(times(5, answered(200)));
    expect([paced([answered(200, 1_000)], quick).limit, paced([answered(200, 1_001)], quick).limit]).toEqual([32, 2]);
  });

  test('rests after five absences in a row: 5 seconds, twice as long each time, at most a minute', () => {
    const quick = paced(times(5, answered(200)));
    const rests = times(8, silent).map((_, n) => restMs(paced(times(n + 1, silent), quick), NOW));
    expect(rests).toEqual([0, 0, 0, 0, 5_000, 10_000, 20_000, 40_000]);
    expect([9, 10, 40].map((n) => restMs(paced(times(n, silent)), NOW))).toEqual([60_000, 60_000, 60_000]);
    expect([paced([silent], quick).limit, paced(times(5, silent), quick).limit]).toEqual([2, 1]);
    const back = paced([answered(200)], paced(times(9, silent)));
    expect([back.limit, back.timesAway, restMs(back, NOW)]).toEqual([2, 0, 0]);
  });

  test('is what its last attempts say', () => {
    const past = (...statuses: (number | null)[]) => paceOf(statuses.map((status) => ({ atMs: NOW, tookMs: 10, status })));
    expect(LEARNED_OF).toBe(5);
    expect(past()).toEqual(NEW_PACE);
    expect([past(204).limit, past(null).limit, past(null, 204).limit, past(204, null).limit]).toEqual([4, 2, 4, 2]);
    const away = past(...times(5, null));
    expect([away.limit, restMs(away, NOW), restMs(away, NOW + 5_010)]).toEqual([1, 5_010, 0]);
    expect(past(503, ...times(4, null))).toEqual(away);
    expect(paceOf([{ atMs: NOW, tookMs: 1_001, status: 200 }]).limit).toBe(2);
  });

  test('that is quick has twice what it gets at once taken for it, and every other one event at a time', () => {
    const limits = [times(5, answered(200)), [answered(200)], [], [answered(200, 1_001)], [silent], times(5, silent)];
    expect(limits.map((results) => takenAtOnce(paced(results), 50))).toEqual([64, 8, 1, 1, 1, 1]);
    // and no more than it has connections for
    expect(limits.map((results) => takenAtOnce(paced(results), 1))).toEqual([2, 2, 1, 1, 1, 1]);
  });

  test('has answered where one of the attempts that are remembered says so, until it rests', () => {
    const runs = [
      [],
      [silent],
      [answered(500), silent],
      [answered(200), ...times(4, silent)],
      [answered(200), ...times(5, silent)],
    ];
    expect(runs.map((results) => paced(results).hasAnswered)).toEqual([false, false, true, true, false]);
    expect(paced([answered(200)], paced(times(9, silent))).hasAnswered).toBe(true);
  });

  test('keeps a connection as long as it did last, or half as long as before; one that comes back as long as its answer took', () => {
    const keeps = (...took: number[]) => paced(took.map((tookMs) => answered(200, tookMs))).keepsMs;
    expect([NEW_PACE.keepsMs, keeps(7), keeps(7, 12_000), keeps(12_000, 7), keeps(12_000, 7, 7), keeps(12_000, 7_000)]).toEqual([
      0, 7, 12_000, 6_000, 3_000, 7_000,
    ]);
    expect([paced([silent, answered(200, 7)]).keepsMs, paced([answered(200, 7), silent]).keepsMs]).toEqual([7, 15_000]);
    expect(paced([answered(200, 7)], paced([answered(200), ...times(5, silent)])).keepsMs).toBe(7);
    expect(paceOf([{ atMs: NOW, tookMs: 3_000, status: 200 }]).keepsMs).toBe(3_000);
  });

  test('is new until its first attempt has ended, however that ended', () => {
    const results = [answered(200), answered(500, 1_001), silent];
    expect([NEW_PACE, ...results.map((one) => paced([one])), paced(times(5, silent))].map(({ isTried }) => isTried)).toEqual([
      false,
      true,
      true,
      true,
      true,
    ]);
  });

  test('rests no longer because the clock was set back', () => {
    const resting = paced(times(5, silent));
    expect([NOW + 4_999, NOW + 5_000, NOW - 55_000, NOW - 55_001].map((nowMs) => restMs(resting, nowMs))).toEqual([
      1, 0, 60_000, 0,
    ]);
  });
});

type Kind = Pick<Pace, 'limit' | 'hasAnswered' | 'keepsMs'>;

describe('connections', () => {
  const away: Kind = { limit: 1, hasAnswered: false, keepsMs: 15_000 };
  const silent: Kind = { limit: 2, hasAnswered: false, keepsMs: 15_000 };
  const keeping = (keepsMs: number): Kind => ({ limit: 2, hasAnswered: true, keepsMs });
  /** What so many endpoints one after the other take, each of a merchant of its own where none is named. */
  const take = (slots: ReturnType<typeof createSlots>, kind: Kind, merchant: bigint | null = null, count = 300) =>
    times(count, 0).flatMap((_, n) => slots.take({ number: BigInt(n), merchantId: merchant ?? BigInt(n) }, kind) ?? []);
  const taken = (...asked: Parameters<typeof take>): number => take(...asked).length;
  const POOLS = [
    [250, 192],
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

  test('of a merchant that has 64 are not to be had', () => {
    const slots = createSlots();
    expect(slots.hasRoom(1n)).toBe(true);
    const mine = take(slots, away, 1n, 63);
    expect(slots.hasRoom(1n)).toBe(true);
    take(slots, away, 1n, 1);
    expect([slots.hasRoom(1n), slots.hasRoom(2n)]).toEqual([false, true]);
    expect([taken(slots, away, 1n), taken(slots, keeping(5), 1n), taken(slots, away, 2n)]).toEqual([0, 0, 32]);
    mine[0]?.();
    expect(slots.hasRoom(1n)).toBe(true);
    expect(taken(slots, keeping(5), 1n)).toBe(1);
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
