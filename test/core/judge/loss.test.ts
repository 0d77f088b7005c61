// Booked payments that are lost: reversed from where their units are (rule 17), and payments that are not booked yet (rule 16). Their way
// back is in return.test.ts.
import { describe, expect, test } from 'vitest';
import type { Case } from '../../../src/core/judge/case.ts';
import { judge } from '../../../src/core/judge/judge.ts';
import { HOUR, judgedTransaction, MINUTE, SECOND, W } from '../../support/judged-transaction.ts';

const HALF = 25_000n;

describe('a booked payment is lost (rule 17)', () => {
  test.each(['succeeded', 'settled'] as const)('from %s: conflicted, at once', (from) => {
    const judged = judgedTransaction({ settlementMs: SECOND });
    judged.pay();
    judged.mine(6);
    if (from === 'settled') judged.wait(SECOND);
    expect(judged.status).toBe(from);
    judged.reorg(6, 'dead');
    expect([judged.status, judged.transaction.confirmedAtMs]).toEqual(['review', null]);
    expect([judged.available(), judged.receivable(), judged.books.of('asset:chain:BTC')]).toEqual([0n, 0n, 0n]);
    expect(judged.verdict.receivedMinor).toBe(0n);
  });

  test('gone for ten minutes, not a second less', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    judged.reorg(1, 'out');
    expect(judged.payments[0]?.dueAtMs).toBe(judged.now + 10 * MINUTE);
    judged.wait(10 * MINUTE - SECOND);
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
    judged.wait(SECOND);
    expect([judged.status, judged.available()]).toEqual(['review', 0n]);
  });

  test('back before that, nothing has happened', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.mine();
    judged.reorg(1, 'out');
    judged.wait(9 * MINUTE);
    judged.resend(tx);
    judged.wait(HOUR);
    judged.mine();
    expect([judged.status, judged.books.entries.size]).toEqual(['succeeded', 1]);
  });

  test('the ten minutes do not pass while our node is down, nor while it is behind the height where the payment was last seen', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    judged.reorg(1, 'out');
    judged.node('down');
    judged.wait(HOUR);
    expect(judged.status).toBe('succeeded');
    const behind = judgedTransaction();
    behind.pay();
    behind.mine(3);
    behind.reorg(3, 'out');
    const chain = behind.chain();
    for (let height = chain.tip; height >= 1000; height--) if (height > 1000) chain.blocks.delete(height);
    chain.tip = 1000;
    behind.wait(HOUR);
    expect([behind.status, behind.available()]).toEqual(['succeeded', behind.amountDue]);
    expect(behind.payments[0]!.dueHeight).toBe(1001);
    behind.mine();
    expect(behind.status).toBe('review');
  });

  test('what is not available any more becomes the receivable', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    judged.spend(20_000n);
    judged.reorg(1, 'dead');
    expect([judged.available(), judged.receivable()]).toEqual([0n, 20_000n]);
  });

  test('the service’s fee is given back with it, and taken again when it is back', () => {
    const judged = judgedTransaction({ feeBps: 100 });
    judged.pay();
    judged.mine();
    judged.reorg(1, 'out');
    judged.wait(11 * MINUTE);
    expect([judged.available(), judged.fees(), judged.receivable()]).toEqual([0n, 0n, 0n]);
    for (const tx of judged.chain().txs) judged.resend(tx);
    judged.mine();
    expect([judged.status, judged.available(), judged.fees()]).toEqual(['succeeded', 49_500n, 500n]);
  });

  test('what was already sent back to the customer becomes a receivable, in any status', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine(6);
    judged.openRefund();
    judged.finishRefund();
    expect([judged.status, judged.available()]).toEqual(['reimbursed', 0n]);
    judged.reorg(6, 'out');
    judged.wait(11 * MINUTE);
    expect([judged.status, judged.receivable()]).toEqual(['reimbursed', judged.amountDue]);
    for (const tx of judged.chain().txs) judged.resend(tx);
    judged.mine();
    expect([judged.status, judged.receivable(), judged.available(), judged.suspense()]).toEqual(['reimbursed', 0n, 0n, 0n]);
  });

  test('a reimbursement that waits loses its payments, fee and all', () => {
    const judged = judgedTransaction({ feeBps: 100 });
    judged.pay();
    judged.mine();
    judged.pay();
    judged.mine();
    judged.acceptExcess();
    judged.spend(-1_000n); // the merchant has other money: a reimbursement does not give the fee back
    judged.openRefund();
    expect(judged.available()).toBe(0n);
    judged.reorg(2, 'out');
    judged.wait(11 * MINUTE);
    expect([judged.books.of('refund_payable:txn_1:BTC'), judged.fees(), judged.receivable()]).toEqual([0n, 0n, 0n]);
    expect(judged.available()).toBe(1_000n);
    for (const tx of judged.chain().txs) judged.resend(tx);
    judged.mine();
    expect([judged.suspense(), judged.available(), judged.fees()]).toEqual([2n * judged.amountDue, 1_000n, 0n]);
  });
});

describe('the loss of a payment that lies only in suspense', () => {
  test.each([
    ['declined', HALF, 0],
    ['review', HALF, 2 * HOUR],
  ] as const)('in %s reverses it and leaves the status', (status, amount, wait) => {
    const judged = judgedTransaction({ latePolicy: 'review' });
    judged.wait(wait);
    judged.pay({ amount });
    judged.mine();
    judged.afterGrace();
    expect([judged.status, judged.suspense()]).toEqual([status, amount]);
    judged.reorg(1, 'out');
    judged.wait(11 * MINUTE);
    expect([judged.status, judged.suspense(), judged.books.of('asset:chain:BTC')]).toEqual([status, 0n, 0n]);
  });

  test('back, it is booked under a key of its own', () => {
    const judged = judgedTransaction();
    judged.pay({ amount: HALF });
    judged.mine();
    judged.afterGrace();
    judged.reorg(1, 'out');
    judged.wait(11 * MINUTE);
    for (const tx of judged.chain().txs) judged.resend(tx);
    judged.mine();
    const keys = [...judged.books.entries.keys()].map((key) => key.replace(/t\d+/, 'tx'));
    expect(keys).toEqual(['dep:btc:tx:0', 'reorg:btc:tx:0:1', 'dep:btc:tx:0#2']);
    expect([judged.status, judged.suspense()]).toEqual(['review', HALF]);
  });
});

describe('before booking (rule 16)', () => {
  test('a reorganisation below R keeps it pending', () => {
    const judged = judgedTransaction({ usd: 150_00n });
    judged.pay();
    judged.mine();
    judged.reorg(1);
    judged.mineEmpty(3);
    expect([judged.status, judged.available()]).toEqual(['pending', 0n]);
    judged.mine(2);
    expect(judged.status).toBe('succeeded');
  });

  test('a confirmed one that was found at rest is booked, or goes back to pending when its payments are below R', () => {
    for (const [depth, path] of [
      [2, ['confirmed', 'succeeded']],
      [1, ['confirmed', 'pending']],
    ] as const) {
      const judged = judgedTransaction({ usd: 150_00n });
      judged.pay();
      judged.mine();
      if (depth === 2) judged.mineEmpty();
      const it = caseAtConfirmed(judged);
      judge(it);
      const step = it.steps.find((one) => one.kind === 'status');
      expect([step?.from, step?.to]).toEqual(path);
      expect(it.transaction.confirmedAtMs === null).toBe(depth === 1);
    }
  });
});

/** The case as it would be loaded had its transaction been left in `confirmed`, with nothing booked. */
function caseAtConfirmed(judged: ReturnType<typeof judgedTransaction>): Case {
  return {
    transaction: { ...judged.transaction, status: 'confirmed', confirmedAtMs: W },
    payments: judged.payments.map((payment) => ({
      ...payment,
      credited: 0n,
      inAvailable: 0n,
      partKey: null,
      judgedBlockHash: null,
    })),
    nowMs: judged.now,
    chains: new Map([['BTC', judged.chain().view]]),
    blocks: new Map(),
    feeBps: 0,
    settlementMs: HOUR,
    balances: new Map(),
    refunds: [],
    steps: [],
  };
}
