// A payment arrives: on time or late, and which rule applies in which status (rules 2, 3, 9, 10, 18, 21, 22; the terms before the table).
import { describe, expect, test } from 'vitest';
import { DAY, HOUR, judgedTransaction, MINUTE, SECOND, W } from '../support/judged-transaction.ts';
import { REACH } from '../support/reach.ts';

const HALF = 25_000n;

test.each(Object.keys(REACH))('the story that leads to %s ends there', (status) => {
  expect(REACH[status]!().status).toBe(status);
});

describe('a late payment in the right payment', () => {
  test.each([
    ['timedout', 'review', [7, 9]],
    ['timedout_checked', 'review', [7, 8, 9]],
    ['cancelled', 'review', [20, 9]],
    ['declined', 'review', [2, 6, 22]],
    ['review', 'review', [7, 9]],
    ['succeeded', 'succeeded', [2, 4, 5]],
    ['settled', 'settled', [2, 4, 5, 19]],
    ['reimbursed', 'reimbursed', [2, 4, 5, 19, 13]],
  ] as const)('in %s: %s, and it lies in suspense', (from, to, rules) => {
    const world = REACH[from]!({ latePolicy: 'review' });
    world.until(W + 2 * HOUR);
    const before = world.suspense();
    world.pay({ amount: HALF });
    expect([world.status, world.suspense()]).toEqual([to, before]);
    world.mine();
    expect([world.status, world.suspense()]).toEqual([to, before + HALF]);
    expect(world.rules()).toEqual(rules);
    const extra = ['succeeded', 'settled', 'reimbursed'].includes(from);
    expect(world.announced().filter((type) => type === 'transaction.extra_payment')).toHaveLength(extra ? 1 : 0);
  });
});

describe('another currency that we carry (rule 18)', () => {
  test.each([
    ['started', 'review'],
    ['timedout', 'review'],
    ['timedout_checked', 'review'],
    ['cancelled', 'review'],
    ['declined', 'review'],
    ['review', 'review'],
    ['pending', 'pending'],
    ['succeeded', 'succeeded'],
    ['settled', 'settled'],
    ['reimbursed', 'reimbursed'],
  ] as const)('in %s: %s', (from, to) => {
    const world = REACH[from]!();
    world.pay({ currency: 'LTC', amount: 5_000n });
    expect(world.status).toBe(to);
    world.mine(12, 'LTC');
    expect([world.status, world.suspense('LTC')]).toEqual([to, 5_000n]);
    const told = ['pending', 'succeeded', 'settled', 'reimbursed'].includes(from);
    expect(world.announced().filter((type) => type === 'transaction.other_asset')).toHaveLength(told ? 1 : 0);
  });

  test('it never shows in crypto_received, and its confirmations only where nothing else is', () => {
    const world = judgedTransaction();
    world.pay({ currency: 'LTC', amount: 5_000n });
    world.mine(3, 'LTC');
    expect(world.verdict.receivedMinor).toBe(0n);
    expect(world.verdict.youngest?.currency).toBe('LTC');
    world.pay();
    world.mine();
    expect(world.verdict.receivedMinor).toBe(world.amountDue);
    expect(world.verdict.youngest?.currency).toBe('BTC');
  });

  test('a late payment into a review with only such payments stays there', () => {
    const world = judgedTransaction({ latePolicy: 'review' });
    world.pay({ currency: 'LTC', amount: 5_000n });
    world.until(W + 2 * MINUTE);
    world.pay();
    world.mine();
    expect(world.path()).toEqual(['started', 'review']);
  });

  test('a payment whose price is not known needs the highest R', () => {
    const world = judgedTransaction();
    world.rate(null, 'LTC');
    world.pay({ currency: 'LTC', amount: 5_000n });
    world.mine(11, 'LTC');
    expect(world.suspense('LTC')).toBe(0n);
    world.mine(1, 'LTC');
    expect(world.suspense('LTC')).toBe(5_000n);
  });
});

describe('on time', () => {
  test.each([
    ['W', W, 'pending'],
    ['W + 60 s', W + MINUTE, 'pending'],
    ['1 ms more', W + MINUTE + 1, 'review'],
  ] as const)('a payment seen at %s', (_when, atMs, status) => {
    const world = judgedTransaction({ latePolicy: 'review' });
    world.until(atMs);
    world.pay();
    expect(world.status).toBe(status);
    expect(world.rules()).toEqual([7, status === 'pending' ? 10 : 9]);
  });

  test.each([
    ['in the mempool by W + 2 h', { foundAt: W + 2 * HOUR, minedAt: null }, true],
    ['in the mempool 1 s later', { foundAt: W + 2 * HOUR + SECOND, minedAt: null }, false],
    ['in a block dated W + 2 h, found a day later', { foundAt: W + DAY, minedAt: W + 2 * HOUR }, true],
    ['in a block dated 1 s later', { foundAt: W + DAY, minedAt: W + 2 * HOUR + SECOND }, false],
  ] as const)('after an outage its first pass finds a payment %s', (_where, found, onTime) => {
    const world = judgedTransaction({ latePolicy: 'review' });
    world.node('down');
    world.until(W + MINUTE);
    world.pay();
    if (found.minedAt !== null) {
      world.until(found.minedAt);
      world.mine();
    }
    world.until(found.foundAt);
    expect(world.status).toBe('started');
    world.node('up');
    expect(world.payments[0]!.onTimeMinor).toBe(onTime ? world.amountDue : 0n);
    expect(world.rules()[0]).toBe(onTime ? 2 : 9);
  });

  test('an outage that ended before W + 60 s excuses nothing', () => {
    const world = judgedTransaction({ latePolicy: 'review' });
    world.node('down');
    world.until(W + MINUTE);
    world.node('up');
    world.until(W + 2 * MINUTE);
    world.pay();
    expect(world.status).toBe('review');
  });

  test('the class stays when a payment goes and comes back', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.evict(tx);
    world.wait(73 * HOUR);
    expect(world.status).toBe('timedout_checked');
    world.resend(tx);
    expect(world.rules()).toEqual([2, 15, 8, 10]);
    world.mine();
    expect(world.status).toBe('succeeded');
  });
});

describe('several payments', () => {
  test('two outputs of one transaction are two payments of one sum (rule 3)', () => {
    const world = judgedTransaction();
    world.pay({ split: [HALF, HALF] });
    expect([world.status, world.verdict.receivedMinor]).toEqual(['pending', world.amountDue]);
    world.mine();
    expect([world.status, world.available()]).toEqual(['succeeded', world.amountDue]);
    const [entry] = world.books.entries.values();
    expect(entry?.parts.map((part) => part.key.split(':')[3])).toEqual(['0', '1']);
  });

  test('another payment keeps a pending one pending and is summed', () => {
    const world = judgedTransaction();
    world.pay({ amount: 20_000n });
    world.pay({ amount: 20_000n });
    world.pay({ amount: 10_000n });
    expect([world.path(), world.verdict.receivedMinor]).toEqual([['started', 'pending'], world.amountDue]);
  });
});

describe('a fee replacement', () => {
  test('is one event with what it replaces', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.replace(tx, { amount: world.amountDue + 100n });
    expect([world.status, world.verdict.receivedMinor, world.payments.length]).toEqual(['pending', world.amountDue + 100n, 2]);
    world.mine();
    expect([world.status, world.available()]).toEqual(['succeeded', world.amountDue + 100n]);
  });

  test('that pays us the same from the same inputs is the same payment', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    const second = world.replace(tx);
    expect(world.payments.map((payment) => payment.txid)).toEqual([second.txid]);
  });

  test('is on time when what it replaces was, up to its amount', () => {
    const world = judgedTransaction();
    const tx = world.pay({ amount: HALF });
    world.until(W + HOUR);
    world.replace(tx, { amount: 2n * world.amountDue });
    expect(world.payments[1]!.onTimeMinor).toBe(HALF);
  });

  test('of two payments in one transaction inherits from both', () => {
    const world = judgedTransaction();
    const one = world.pay({ amount: HALF });
    const two = world.pay({ amount: HALF });
    world.afterGrace();
    world.rate(80_000n);
    world.pay({ inputs: [...one.inputs, ...two.inputs] });
    world.mine();
    expect([world.status, world.available()]).toEqual(['succeeded', world.amountDue]);
  });

  test('of a replacement inherits once, not twice', () => {
    const world = judgedTransaction();
    const tx = world.pay({ amount: HALF });
    world.until(W + HOUR);
    const second = world.replace(tx, { amount: 40_000n });
    world.replace(second, { amount: 45_000n });
    expect(world.payments.map((payment) => payment.onTimeMinor)).toEqual([HALF, HALF, HALF]);
  });

  test('of one that was on time itself inherits from that one, not from both', () => {
    const world = judgedTransaction();
    const second = world.replace(world.pay({ amount: HALF }), { amount: 30_000n });
    world.until(W + HOUR);
    world.replace(second, { amount: world.amountDue });
    expect(world.payments.map((payment) => payment.onTimeMinor)).toEqual([HALF, 30_000n, 30_000n]);
  });

  test('with two outputs shares what it inherits', () => {
    const world = judgedTransaction();
    const tx = world.pay({ amount: HALF });
    world.until(W + HOUR);
    world.pay({ split: [20_000n, 20_000n], inputs: tx.inputs });
    expect(world.payments.slice(1).map((payment) => payment.onTimeMinor)).toEqual([20_000n, 5_000n]);
  });

  test('to nowhere leaves nothing behind: back to started before W, to timedout after', () => {
    for (const [atMs, status] of [
      [W - SECOND, 'started'],
      [W, 'timedout'],
    ] as const) {
      const world = judgedTransaction();
      const tx = world.pay();
      world.until(atMs);
      world.doubleSpend(tx);
      expect([world.status, world.rules().slice(0, 2), world.verdict.receivedMinor]).toEqual([status, [2, 15], 0n]);
    }
  });
});

describe('a malleated twin', () => {
  test('of an unbooked payment takes over its time', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.until(W + 3 * HOUR);
    const twin = world.malleate(tx);
    expect([world.status, world.available(), world.payments.length]).toEqual(['succeeded', world.amountDue, 1]);
    expect(world.payments[0]!.txid).toBe(twin.txid);
  });

  test('of a lost payment restores what its loss took', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.mine();
    world.reorg(1, 'out');
    world.wait(11 * MINUTE);
    expect(world.status).toBe('review');
    world.malleate(tx);
    expect([world.status, world.available()]).toEqual(['succeeded', world.amountDue]);
    expect([...world.books.entries.keys()].at(-1)).toMatch(/#2$/);
  });
});
