// How many deliveries an endpoint gets at a time, and when it rests.
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
/** The same, each of them begun after the rest that the one before has caused. @returns the rests */
function restsAfter(results: readonly OutboundResult[], from: Pace = NEW_PACE): number[] {
  let [pace, nowMs] = [from, NOW];
  return results.map((result) => {
    nowMs += restMs(pace, nowMs);
    pace = paceAfter(pace, result, nowMs);
    return restMs(pace, nowMs);
  });
}
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
    // the receiver may ask for more, up to a day
    expect(nextAttempt(1, NOW, 1, 4_000)).toBe(NOW + 5_500);
    expect(nextAttempt(1, NOW, 1, 120_000)).toBe(NOW + 120_000);
    expect(nextAttempt(1, NOW, 1, 10 * 86_400_000)).toBe(NOW + 86_400_000);
    expect(nextAttempt(10, NOW, 0, 120_000)).toBeNull();
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

  test('is neither away nor there where a call fails here', () => {
    const ours: OutboundResult = { kind: 'failed', failure: 'failed_here', reason: 'ours', tookMs: 9 };
    for (const before of [times(5, answered(200)), times(4, silent), times(6, silent)])
      expect(paced([...before, ...times(6, ours)])).toEqual(paced(before));
  });

  test('whose calls wait for their turns here gets two at a time, is as slow as they were, and is not away', () => {
    const ours: OutboundResult = { kind: 'failed', failure: 'failed_here', reason: '', tookMs: 15_000, waitedMs: 9_000 };
    const quick = paced(times(5, answered(200)));
    expect(paced(times(9, ours), quick)).toEqual({ ...quick, limit: 2, keepsMs: 15_000 });
    const away = paced(times(5, silent));
    expect(paced(times(9, ours), away)).toEqual({ ...away, limit: 1, keepsMs: 15_000 });
    const unknown = paced(times(4, silent));
    expect(paced([ours], unknown)).toEqual({ ...unknown, keepsMs: 15_000 });
  });

  test('that takes more than a second gets two at a time again', () => {
    const quick = paced(times(5, answered(200)));
    expect([paced([answered(200, 1_000)], quick).limit, paced([answered(200, 1_001)], quick).limit]).toEqual([32, 2]);
  });

  test('rests after five absences in a row: 5 seconds, twice as long each time, at most a minute', () => {
    const quick = paced(times(5, answered(200)));
    const minutes = times(32, 60_000);
    expect(restsAfter(times(40, silent), quick)).toEqual([0, 0, 0, 0, 5_000, 10_000, 20_000, 40_000, ...minutes]);
    expect([paced([silent], quick).limit, paced(times(5, silent), quick).limit]).toEqual([2, 1]);
    const back = paced([answered(200)], paced(times(9, silent)));
    expect([back.limit, back.timesAway, restMs(back, NOW)]).toEqual([2, 0, 0]);
  });

  test('that goes away for a moment with many under way rests once: what began before the rest prolongs nothing', () => {
    const resting = paced(times(5, silent), paced(times(5, answered(200))));
    const late = times(27, silent).reduce((pace) => paceAfter(pace, { ...silent, tookMs: 700 }, NOW + 400), resting);
    expect([restMs(late, NOW), late.keepsMs, late.limit]).toEqual([5_000, 700, 1]);
    expect(restMs(paceAfter(late, silent, NOW + 5_000), NOW + 5_000)).toBe(10_000);
    // an answer of that time shows that it is there
    expect(restMs(paceAfter(late, answered(200), NOW + 400), NOW + 400)).toBe(0);
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
