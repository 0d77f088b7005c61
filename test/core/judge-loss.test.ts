// Booked payments that are lost: reversed from where their units are (rule 17), and payments that are not booked yet (rule 16). Their way
// back is in judge-return.
import { describe, expect, test } from 'vitest';
import type { Case } from '../../src/core/judge/case.ts';
import { judge } from '../../src/core/judge/judge.ts';
import { HOUR, judgedTransaction, MINUTE, SECOND, W } from '../support/judged-transaction.ts';

const HALF = 25_000n;

describe('a booked payment is lost (rule 17)', () => {
  test.each(['succeeded', 'settled'] as const)('from %s: conflicted, at once', (from) => {
    const world = judgedTransaction({ settlementMs: SECOND });
    world.pay();
    world.mine(6);
    if (from === 'settled') world.wait(SECOND);
    expect(world.status).toBe(from);
    world.reorg(6, 'dead');
    expect([world.status, world.transaction.confirmedAtMs]).toEqual(['review', null]);
    expect([world.available(), world.receivable(), world.books.of('asset:chain:BTC')]).toEqual([0n, 0n, 0n]);
    expect(world.verdict.receivedMinor).toBe(0n);
  });

  test('nowhere for ten minutes, not a second less', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine();
    world.reorg(1, 'out');
    expect(world.payments[0]?.dueAtMs).toBe(world.now + 10 * MINUTE);
    world.wait(10 * MINUTE - SECOND);
    expect([world.status, world.available()]).toEqual(['succeeded', world.amountDue]);
    world.wait(SECOND);
    expect([world.status, world.available()]).toEqual(['review', 0n]);
  });

  test('back before that, nothing has happened', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.mine();
    world.reorg(1, 'out');
    world.wait(9 * MINUTE);
    world.resend(tx);
    world.wait(HOUR);
    world.mine();
    expect([world.status, world.books.entries.size]).toEqual(['succeeded', 1]);
  });

  test('the ten minutes do not pass while our node is down, nor while it is behind the height where the payment was last seen', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine();
    world.reorg(1, 'out');
    world.node('down');
    world.wait(HOUR);
    expect(world.status).toBe('succeeded');
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
    const world = judgedTransaction();
    world.pay();
    world.mine();
    world.spend(20_000n);
    world.reorg(1, 'dead');
    expect([world.available(), world.receivable()]).toEqual([0n, 20_000n]);
  });

  test('the service’s fee is given back with it, and taken again when it is back', () => {
    const world = judgedTransaction({ feeBps: 100 });
    world.pay();
    world.mine();
    world.reorg(1, 'out');
    world.wait(11 * MINUTE);
    expect([world.available(), world.fees(), world.receivable()]).toEqual([0n, 0n, 0n]);
    for (const tx of world.chain().txs) world.resend(tx);
    world.mine();
    expect([world.status, world.available(), world.fees()]).toEqual(['succeeded', 49_500n, 500n]);
  });

  test('what was already sent back to the customer becomes a receivable, in any status', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine(6);
    world.openRefund();
    world.finishRefund();
    expect([world.status, world.available()]).toEqual(['reimbursed', 0n]);
    world.reorg(6, 'out');
    world.wait(11 * MINUTE);
    expect([world.status, world.receivable()]).toEqual(['reimbursed', world.amountDue]);
    for (const tx of world.chain().txs) world.resend(tx);
    world.mine();
    expect([world.status, world.receivable(), world.available(), world.suspense()]).toEqual(['reimbursed', 0n, 0n, 0n]);
  });

  test('a reimbursement that waits loses its payments, fee and all', () => {
    const world = judgedTransaction({ feeBps: 100 });
    world.pay();
    world.mine();
    world.pay();
    world.mine();
    world.acceptExcess();
    world.spend(-1_000n); // the merchant has other money: a reimbursement does not give the fee back
    world.openRefund();
    expect(world.available()).toBe(0n);
    world.reorg(2, 'out');
    world.wait(11 * MINUTE);
    expect([world.books.of('refund_payable:txn_1:BTC'), world.fees(), world.receivable()]).toEqual([0n, 0n, 0n]);
    expect(world.available()).toBe(1_000n);
    for (const tx of world.chain().txs) world.resend(tx);
    world.mine();
    expect([world.suspense(), world.available(), world.fees()]).toEqual([2n * world.amountDue, 1_000n, 0n]);
  });
});

describe('the loss of a payment that lies only in suspense', () => {
  test.each([
    ['declined', HALF, 0],
    ['review', HALF, 2 * HOUR],
  ] as const)('in %s reverses it and leaves the status', (status, amount, wait) => {
    const world = judgedTransaction({ latePolicy: 'review' });
    world.wait(wait);
    world.pay({ amount });
    world.mine();
    world.afterGrace();
    expect([world.status, world.suspense()]).toEqual([status, amount]);
    world.reorg(1, 'out');
    world.wait(11 * MINUTE);
    expect([world.status, world.suspense(), world.books.of('asset:chain:BTC')]).toEqual([status, 0n, 0n]);
  });

  test('back, it is booked under a key of its own', () => {
    const world = judgedTransaction();
    world.pay({ amount: HALF });
    world.mine();
    world.afterGrace();
    world.reorg(1, 'out');
    world.wait(11 * MINUTE);
    for (const tx of world.chain().txs) world.resend(tx);
    world.mine();
    const keys = [...world.books.entries.keys()].map((key) => key.replace(/t\d+/, 'tx'));
    expect(keys).toEqual(['dep:btc:tx:0', 'reorg:btc:tx:0:1', 'dep:btc:tx:0#2']);
    expect([world.status, world.suspense()]).toEqual(['review', HALF]);
  });
});

describe('before booking (rule 16)', () => {
  test('a reorganisation below R keeps it pending', () => {
    const world = judgedTransaction({ usd: 150_00n });
    world.pay();
    world.mine();
    world.reorg(1);
    world.mineEmpty(3);
    expect([world.status, world.available()]).toEqual(['pending', 0n]);
    world.mine(2);
    expect(world.status).toBe('succeeded');
  });

  test('a confirmed one that was found at rest is booked, or goes back to pending when its payments are below R', () => {
    for (const [depth, path] of [
      [2, ['confirmed', 'succeeded']],
      [1, ['confirmed', 'pending']],
    ] as const) {
      const world = judgedTransaction({ usd: 150_00n });
      world.pay();
      world.mine();
      if (depth === 2) world.mineEmpty();
      const it = caseAtConfirmed(world);
      judge(it);
      const step = it.steps.find((one) => one.kind === 'status');
      expect([step?.from, step?.to]).toEqual(path);
      expect(it.transaction.confirmedAtMs === null).toBe(depth === 1);
    }
  });
});

/** The case as it would be loaded had its transaction been left in `confirmed`, with nothing booked. */
function caseAtConfirmed(world: ReturnType<typeof judgedTransaction>): Case {
  return {
    transaction: { ...world.transaction, status: 'confirmed', confirmedAtMs: W },
    payments: world.payments.map((payment) => ({
      ...payment,
      credited: 0n,
      inAvailable: 0n,
      depositEntryKey: null,
      judgedBlockHash: null,
    })),
    nowMs: world.now,
    chains: new Map([['BTC', world.chain().view]]),
    blocks: new Map(),
    feeBps: 0,
    settlementMs: HOUR,
    balances: new Map(),
    refundOpen: false,
    steps: [],
  };
}
