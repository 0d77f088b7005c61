// A payment arrives: on time or late, and which rule applies in which status (rules 2, 3, 9, 10, 18, 21, 22; the terms before the table).
import { describe, expect, test } from 'vitest';
import { DAY, HOUR, judgedTransaction, MINUTE, SECOND, W } from '../../support/judged-transaction.ts';
import { STATUS_HISTORIES } from '../../support/status-histories.ts';

const HALF = 25_000n;

test.each(Object.keys(STATUS_HISTORIES))('the story that leads to %s ends there', (status) => {
  expect(STATUS_HISTORIES[status]!().status).toBe(status);
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
    const judged = STATUS_HISTORIES[from]!({ latePolicy: 'review' });
    judged.until(W + 2 * HOUR);
    const before = judged.suspense();
    judged.pay({ amount: HALF });
    expect([judged.status, judged.suspense()]).toEqual([to, before]);
    judged.mine();
    expect([judged.status, judged.suspense()]).toEqual([to, before + HALF]);
    expect(judged.rules()).toEqual(rules);
    const extra = ['succeeded', 'settled', 'reimbursed'].includes(from);
    expect(judged.announced().filter((type) => type === 'transaction.extra_payment')).toHaveLength(extra ? 1 : 0);
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
    const judged = STATUS_HISTORIES[from]!();
    judged.pay({ currency: 'LTC', amount: 5_000n });
    expect(judged.status).toBe(to);
    judged.mine(12, 'LTC');
    expect([judged.status, judged.suspense('LTC')]).toEqual([to, 5_000n]);
    const isAnnounced = ['pending', 'succeeded', 'settled', 'reimbursed'].includes(from);
    expect(judged.announced().filter((type) => type === 'transaction.other_asset')).toHaveLength(isAnnounced ? 1 : 0);
  });

  test('it never shows in crypto_received, and its confirmations only where nothing else is', () => {
    const judged = judgedTransaction();
    judged.pay({ currency: 'LTC', amount: 5_000n });
    judged.mine(3, 'LTC');
    expect(judged.verdict.receivedMinor).toBe(0n);
    expect(judged.verdict.youngest?.currency).toBe('LTC');
    judged.pay();
    judged.mine();
    expect(judged.verdict.receivedMinor).toBe(judged.amountDue);
    expect(judged.verdict.youngest?.currency).toBe('BTC');
  });

  test('a late payment into a review with only such payments stays there', () => {
    const judged = judgedTransaction({ latePolicy: 'review' });
    judged.pay({ currency: 'LTC', amount: 5_000n });
    judged.until(W + 2 * MINUTE);
    judged.pay();
    judged.mine();
    expect(judged.path()).toEqual(['started', 'review']);
  });

  test('a payment whose price is not known needs the highest R', () => {
    const judged = judgedTransaction();
    judged.rate(null, 'LTC');
    judged.pay({ currency: 'LTC', amount: 5_000n });
    judged.mine(11, 'LTC');
    expect(judged.suspense('LTC')).toBe(0n);
    judged.mine(1, 'LTC');
    expect(judged.suspense('LTC')).toBe(5_000n);
  });
});

describe('on time', () => {
  test.each([
    ['W', W, 'pending'],
    ['W + 60 s', W + MINUTE, 'pending'],
    ['1 ms more', W + MINUTE + 1, 'review'],
  ] as const)('a payment seen at %s', (_when, atMs, status) => {
    const judged = judgedTransaction({ latePolicy: 'review' });
    judged.until(atMs);
    judged.pay();
    expect(judged.status).toBe(status);
    expect(judged.rules()).toEqual([7, status === 'pending' ? 10 : 9]);
  });

  test.each([
    ['in the mempool by W + 2 h', { foundAt: W + 2 * HOUR, minedAt: null }, true],
    ['in the mempool 1 s later', { foundAt: W + 2 * HOUR + SECOND, minedAt: null }, false],
    ['in a block dated W + 2 h, found a day later', { foundAt: W + DAY, minedAt: W + 2 * HOUR }, true],
    ['in a block dated 1 s later', { foundAt: W + DAY, minedAt: W + 2 * HOUR + SECOND }, false],
  ] as const)('after an outage its first pass finds a payment %s', (_where, found, onTime) => {
    const judged = judgedTransaction({ latePolicy: 'review' });
    judged.node('down');
    judged.until(W + MINUTE);
    judged.pay();
    if (found.minedAt !== null) {
      judged.until(found.minedAt);
      judged.mine();
    }
    judged.until(found.foundAt);
    expect(judged.status).toBe('started');
    judged.node('up');
    expect(judged.payments[0]!.onTimeMinor).toBe(onTime ? judged.amountDue : 0n);
    expect(judged.rules()[0]).toBe(onTime ? 2 : 9);
  });

  test('an outage that ended before W + 60 s excuses nothing', () => {
    const judged = judgedTransaction({ latePolicy: 'review' });
    judged.node('down');
    judged.until(W + MINUTE);
    judged.node('up');
    judged.until(W + 2 * MINUTE);
    judged.pay();
    expect(judged.status).toBe('review');
  });

  test('the class stays when a payment goes and comes back', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.evict(tx);
    judged.wait(73 * HOUR);
    expect(judged.status).toBe('timedout_checked');
    judged.resend(tx);
    expect(judged.rules()).toEqual([2, 15, 8, 10]);
    judged.mine();
    expect(judged.status).toBe('succeeded');
  });
});

describe('several payments', () => {
  test('two outputs of one transaction are two payments of one sum (rule 3)', () => {
    const judged = judgedTransaction();
    judged.pay({ split: [HALF, HALF] });
    expect([judged.status, judged.verdict.receivedMinor]).toEqual(['pending', judged.amountDue]);
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
    const [entry] = judged.books.entries.values();
    expect(entry?.parts.map((part) => part.key.split(':')[3])).toEqual(['0', '1']);
  });

  test('another payment keeps a pending one pending and is summed', () => {
    const judged = judgedTransaction();
    judged.pay({ amount: 20_000n });
    judged.pay({ amount: 20_000n });
    judged.pay({ amount: 10_000n });
    expect([judged.path(), judged.verdict.receivedMinor]).toEqual([['started', 'pending'], judged.amountDue]);
  });
});

describe('a fee replacement', () => {
  test('is one event with what it replaces', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.replace(tx, { amount: judged.amountDue + 100n });
    expect([judged.status, judged.verdict.receivedMinor, judged.payments.length]).toEqual([
      'pending',
      judged.amountDue + 100n,
      2,
    ]);
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue + 100n]);
  });

  test('that pays us the same from the same inputs is the same payment', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    const second = judged.replace(tx);
    expect(judged.payments.map((payment) => payment.txid)).toEqual([second.txid]);
  });

  test('is on time when what it replaces was, up to its amount', () => {
    const judged = judgedTransaction();
    const tx = judged.pay({ amount: HALF });
    judged.until(W + HOUR);
    judged.replace(tx, { amount: 2n * judged.amountDue });
    expect(judged.payments[1]!.onTimeMinor).toBe(HALF);
  });

  test('of two payments in one transaction inherits from both', () => {
    const judged = judgedTransaction();
    const one = judged.pay({ amount: HALF });
    const two = judged.pay({ amount: HALF });
    judged.afterGrace();
    judged.rate(80_000n);
    judged.pay({ inputs: [...one.inputs, ...two.inputs] });
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
  });

  test('of a replacement inherits once, not twice', () => {
    const judged = judgedTransaction();
    const tx = judged.pay({ amount: HALF });
    judged.until(W + HOUR);
    const second = judged.replace(tx, { amount: 40_000n });
    judged.replace(second, { amount: 45_000n });
    expect(judged.payments.map((payment) => payment.onTimeMinor)).toEqual([HALF, HALF, HALF]);
  });

  test('of one that was on time itself inherits from that one, not from both', () => {
    const judged = judgedTransaction();
    const second = judged.replace(judged.pay({ amount: HALF }), { amount: 30_000n });
    judged.until(W + HOUR);
    judged.replace(second, { amount: judged.amountDue });
    expect(judged.payments.map((payment) => payment.onTimeMinor)).toEqual([HALF, 30_000n, 30_000n]);
  });

  test('with two outputs shares what it inherits', () => {
    const judged = judgedTransaction();
    const tx = judged.pay({ amount: HALF });
    judged.until(W + HOUR);
    judged.pay({ split: [20_000n, 20_000n], inputs: tx.inputs });
    expect(judged.payments.slice(1).map((payment) => payment.onTimeMinor)).toEqual([20_000n, 5_000n]);
  });

  test('to nowhere leaves nothing behind: back to started before W, to timedout after', () => {
    for (const [atMs, status] of [
      [W - SECOND, 'started'],
      [W, 'timedout'],
    ] as const) {
      const judged = judgedTransaction();
      const tx = judged.pay();
      judged.until(atMs);
      judged.doubleSpend(tx);
      expect([judged.status, judged.rules().slice(0, 2), judged.verdict.receivedMinor]).toEqual([status, [2, 15], 0n]);
    }
  });
});

describe('a malleated twin', () => {
  test('of an unbooked payment takes over its time', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.until(W + 3 * HOUR);
    const twin = judged.malleate(tx);
    expect([judged.status, judged.available(), judged.payments.length]).toEqual(['succeeded', judged.amountDue, 1]);
    expect(judged.payments[0]!.txid).toBe(twin.txid);
  });

  test('of a lost payment restores what its loss took', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.mine();
    judged.reorg(1, 'out');
    judged.wait(11 * MINUTE);
    expect(judged.status).toBe('review');
    judged.malleate(tx);
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
    expect([...judged.books.entries.keys()].at(-1)).toMatch(/#2$/);
  });
});
