// Which deliveries begin: endpoints that are quick in turns, those that are slow, away or new as their merchants have turns.
import { expect, test } from 'vitest';
import { beginner } from '../../../src/worker/deliveries/beginning.ts';
import { NEW_PACE, type Pace } from '../../../src/worker/deliveries/pace.ts';
import { createSlots } from '../../../src/worker/deliveries/slots.ts';

const [MOST_SILENT, MOST_AWAY, NEW_AT_ONCE] = [120, 96, 24];
const AWAY: Pace = { ...NEW_PACE, limit: 1, timesAway: 5, isTried: true };
const SILENT: Pace = { ...NEW_PACE, timesAway: 1, isTried: true };
const SLOW: Pace = { ...NEW_PACE, isTried: true, hasAnswered: true, keepsMs: 1_500 };
const VERY_SLOW: Pace = { ...SLOW, keepsMs: 12_000 };
const QUICK: Pace = { ...SLOW, limit: 4, keepsMs: 5 };
/** It may have as many as any. */
const WIDE: Pace = { ...QUICK, limit: 32 };

type Endpoint = { webhook: { number: bigint; merchantId: bigint }; pace: Pace; queue: number[]; open: Set<number> };
/** Endpoints at hand, and which of them begin. */
function atHand() {
  const ready = new Map<bigint, Endpoint>();
  const begun: Endpoint[] = [];
  const ends = new Map<Endpoint, () => void>();
  let added = 0n;
  const begin = beginner<Endpoint>(createSlots(), (endpoint, giveBack) => {
    ready.delete(endpoint.webhook.number);
    ready.set(endpoint.webhook.number, endpoint);
    const event = endpoint.queue.shift() as number;
    endpoint.open.add(event);
    begun.push(endpoint);
    ends.set(endpoint, () => {
      endpoint.open.delete(event);
      giveBack();
    });
  });
  function beginAndSay(isMore = true) {
    const before = begun.length;
    const inMs = begin(ready, 0, isMore);
    return { begun: begun.slice(before), inMs };
  }
  return {
    ready,
    add(merchantId: bigint, pace: Pace, events = 1): Endpoint {
      added += 1n;
      const webhook = { number: added, merchantId };
      const endpoint = { webhook, pace, queue: Array.from({ length: events }, (_, n) => n), open: new Set<number>() };
      ready.set(webhook.number, endpoint);
      return endpoint;
    },
    /** Ends what it has begun last. */
    end: (endpoint: Endpoint) => ends.get(endpoint)?.(),
    beginAndSay,
    /** Who begins now. */
    begin: () => beginAndSay().begun,
    /** Who begins now, although nothing was queued since. */
    beginAfterAnswer: () => beginAndSay(false).begun,
  };
}

test('connections for those that are away go around among their merchants', () => {
  const { add, begin, end } = atHand();
  const [few, many] = [1n, 2n];
  for (let n = 0; n < 200; n++) add(many, AWAY);
  for (let n = 0; n < 4; n++) add(few, AWAY);
  // a merchant has 64 at most
  const first = begin();
  expect(first.slice(0, 8).map(({ webhook }) => webhook.merchantId)).toEqual([many, few, many, few, many, few, many, few]);
  expect(first.length).toBe(64 + 4);
  const later = add(3n, AWAY);
  expect(begin()).toEqual([later]);
  const manyHave = first.find(({ webhook }) => webhook.merchantId === many) as Endpoint;
  end(manyHave);
  expect(begin().map(({ webhook }) => webhook.merchantId)).toEqual([many]);
});

test('what a merchant gets for an endpoint that answers slowly is no turn of one that was away', () => {
  const { add, begin, end } = atHand();
  for (let merchant = 1n; merchant <= 20n; merchant++) for (let n = 0; n < 16; n++) add(merchant, AWAY);
  const crowd = begin();
  expect(crowd.length).toBe(MOST_AWAY);
  const slow = add(99n, SLOW, 20);
  const away = add(99n, AWAY);
  expect(begin()).toEqual([slow, slow]);
  for (let n = 0; n < 5; n++) {
    end(slow);
    expect(begin()).toEqual([slow]);
  }
  end(crowd[0] as Endpoint);
  expect(begin()).toContain(away);
});

test('quick ones begin in turns, each as many as it may; whoever has nothing left is taken out', () => {
  const { ready, add, begin, end } = atHand();
  const [one, other, third] = [add(1n, QUICK, 5), add(2n, QUICK, 2), add(3n, { ...QUICK, restsUntilMs: 1_000 })];
  expect(begin()).toEqual([one, other, one, other, one, one]);
  expect(begin()).toEqual([]);
  expect([...ready.values()]).toEqual([third, one]);
  end(one);
  expect(begin()).toEqual([one]);
  begin();
  expect([...ready.values()]).toEqual([third]);
});

test('one that answers slowly has two under way', () => {
  const { add, begin, end } = atHand();
  const slow = add(1n, SLOW, 4);
  expect(begin()).toEqual([slow, slow]);
  end(slow);
  expect(begin()).toEqual([slow]);
});

test('where those that never answered have all that they may, the newest of those that were never tried begins', () => {
  const { ready, add, begin, beginAndSay } = atHand();
  for (let merchant = 1n; merchant <= 30n; merchant++) for (let n = 0; n < 16; n++) add(merchant, SILENT);
  expect(begin().length).toBe(MOST_SILENT);
  const untried = Array.from({ length: NEW_AT_ONCE + 2 }, () => add(99n, NEW_PACE));
  // wherever it stands
  const oldest = untried[0] as Endpoint;
  ready.delete(oldest.webhook.number);
  ready.set(oldest.webhook.number, oldest);
  for (let n = 0; n < NEW_AT_ONCE; n++) {
    const { begun, inMs } = beginAndSay();
    expect(begun).toEqual([untried.pop()]);
    // the next may be taken at once, until half of them are
    if (n < NEW_AT_ONCE - 1) expect(inMs).toBe(0);
    else expect(inMs).toBeGreaterThan(0);
  }
  const none = beginAndSay();
  expect(none.begun).toEqual([]);
  expect(none.inMs).toBeGreaterThan(0);
});

test('a merchant that has all that a merchant may leaves the next of the new ones to others', () => {
  const { add, begin, beginAndSay } = atHand();
  for (let merchant = 1n; merchant <= 30n; merchant++) for (let n = 0; n < 16; n++) add(merchant, SILENT);
  // of each pool less than all
  add(40n, WIDE, 32);
  for (let n = 0; n < 32; n++) add(40n, { ...WIDE, keepsMs: 500 });
  expect(begin().length).toBe(MOST_SILENT + 64);
  const [other] = [add(41n, NEW_PACE), add(40n, NEW_PACE)];
  expect(begin()).toEqual([other]);
  expect(beginAndSay()).toEqual({ begun: [], inMs: null });
});

test('of new ones alone the first share what those have that never answered, and the newest of the others begins', () => {
  const { add, beginAndSay } = atHand();
  const all: Endpoint[] = [];
  for (let merchant = 1n; merchant <= 10n; merchant++) for (let n = 0; n < 16; n++) all.push(add(merchant, NEW_PACE));
  const { begun, inMs } = beginAndSay();
  expect([begun.length, begun.at(-1), inMs]).toEqual([MOST_SILENT + 1, all.at(-1), 0]);
});

/** The crowd's endpoints begin as many as they may, then this one alone. @returns how many of its events begin at once */
function besideCrowd(crowd: Pace, merchants: number, pace: Pace, events = 40): number {
  const { add, begin } = atHand();
  for (let merchant = 1; merchant <= merchants; merchant++) for (let n = 0; n < 16; n++) add(BigInt(merchant), crowd, 40);
  begin();
  const mine = add(999n, pace, events);
  const begun = begin();
  expect(begun.every((one) => one === mine)).toBe(true);
  return begun.length;
}

test.each([1, 5, 40, 700])('slow ones of %i merchants take nothing from one that is quicker', (merchants) => {
  expect(besideCrowd(VERY_SLOW, merchants, WIDE)).toBe(32);
  expect(besideCrowd(VERY_SLOW, merchants, SLOW)).toBe(2);
  expect(besideCrowd(SLOW, merchants, WIDE)).toBe(32);
  expect(besideCrowd({ ...WIDE, keepsMs: 900 }, merchants, WIDE)).toBe(32);
});

test('of those that keep a connection equally long some are free for the next, whoever has how many', () => {
  expect([1, 5, 40].map((merchants) => besideCrowd(VERY_SLOW, merchants, VERY_SLOW))).toEqual([2, 2, 1]);
  expect([1, 3, 20].map((merchants) => besideCrowd(WIDE, merchants, WIDE))).toEqual([32, 23, 5]);
});

test('an endpoint leaves as many to the others of its merchant as it has', () => {
  const { add, begin } = atHand();
  const hungry = [add(1n, { ...WIDE, keepsMs: 500 }, 40), add(1n, { ...WIDE, keepsMs: 500 }, 40)];
  const begun = begin();
  expect(hungry.map((one) => begun.filter((other) => other === one).length)).toEqual([20, 19]);
  const third = add(1n, { ...WIDE, keepsMs: 500 }, 40);
  expect(begin()).toContain(third);
});

test('after an answer, one that waits for what it gave back begins, and one that it has moved to quicker ones', () => {
  const { add, begin, end, beginAfterAnswer } = atHand();
  for (let merchant = 1n; merchant <= 40n; merchant++) for (let n = 0; n < 16; n++) add(merchant, VERY_SLOW, 4);
  const crowd = begin();
  expect([begin(), beginAfterAnswer()]).toEqual([[], []]);
  end(crowd[0] as Endpoint);
  expect(beginAfterAnswer()).toHaveLength(1);
  expect(beginAfterAnswer()).toEqual([]);

  const [quick, moved] = [add(98n, QUICK), add(99n, SLOW, 3)];
  expect(begin()).toEqual([quick, moved, moved]);
  end(moved);
  moved.pace = QUICK;
  expect(beginAfterAnswer()).toEqual([moved]);
});
