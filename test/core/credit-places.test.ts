// The protections of the model Credit, by their names as in credit-variants, about where the units of payments are: what a loss takes, what
// its return restores, when and under which key a payment is booked.
import { describe, expect, test } from 'vitest';
import { judgedTransaction, MINUTE, SECOND } from '../support/judged-transaction.ts';

const HALF = 25_000n;

describe('losses', () => {
  test('reverse_in_place: a loss is taken from where each unit lies now, the rest is the receivable', () => {
    const world = judgedTransaction();
    world.pay({ amount: 2n * world.amountDue });
    world.mine(2);
    expect([world.available(), world.suspense()]).toEqual([world.amountDue, world.amountDue]);
    world.acceptExcess();
    world.spend(60_000n);
    world.reorg(2, 'dead');
    expect([world.available(), world.suspense(), world.receivable()]).toEqual([0n, 0n, 60_000n]);
    expect(world.status).toBe('review');
  });

  test('back_needs_sum: back from rule 17 only when what is credited is enough, or all is back', () => {
    const world = judgedTransaction();
    const [one, two] = [world.pay({ amount: HALF }), world.pay({ amount: HALF })];
    world.mine();
    world.reorg(1, 'out');
    world.wait(11 * MINUTE);
    expect(world.status).toBe('review');
    world.resend(one);
    world.mineOnly(one);
    expect([world.status, world.available()]).toEqual(['review', HALF]);
    world.resend(two);
    world.mineOnly(two);
    expect([world.status, world.available()]).toEqual(['succeeded', 2n * HALF]);
    expect(world.path().slice(-3)).toEqual(['review', 'confirmed', 'succeeded']);
  });

  test('in_place_refund: a reimbursement in review takes each unit from where it lies, credited ones too, and a loss takes them from there', () => {
    const halfCredited = () => {
      const world = judgedTransaction({ latePolicy: 'review' });
      const [one] = [world.pay({ amount: HALF }), world.pay({ amount: HALF })];
      world.mine();
      world.reorg(1, 'out');
      world.wait(11 * MINUTE);
      world.resend(one);
      world.mineOnly(one);
      world.pay({ amount: 10_000n });
      world.mineOnly(world.chain().txs.at(-1)!);
      expect([world.status, world.available(), world.suspense()]).toEqual(['review', HALF, 10_000n]);
      world.openRefund();
      expect([world.available(), world.suspense(), world.books.of('refund_payable:txn_1:BTC')]).toEqual([0n, 0n, HALF + 10_000n]);
      return world;
    };
    const waiting = halfCredited();
    waiting.reorg(2, 'dead');
    expect([waiting.available(), waiting.receivable(), waiting.books.of('refund_payable:txn_1:BTC')]).toEqual([0n, 0n, 0n]);
    const sent = halfCredited();
    sent.finishRefund();
    expect(sent.status).toBe('reimbursed');
    sent.reorg(2, 'dead');
    expect([sent.available(), sent.suspense(), sent.receivable()]).toEqual([0n, 0n, HALF + 10_000n]);
  });

  test('extra_cannot_reopen: losing a payment that was only in suspense leaves succeeded alone', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine();
    world.pay({ amount: HALF });
    world.mine();
    expect(world.suspense()).toBe(HALF);
    world.reorg(1, 'dead');
    expect([world.status, world.suspense(), world.receivable(), world.available()]).toEqual([
      'succeeded',
      0n,
      0n,
      world.amountDue,
    ]);
  });

  test('back_restores: a payment that is back restores what its loss took: receivable, then available', () => {
    const world = judgedTransaction({ latePolicy: 'review' });
    const tx = world.pay({ amount: world.amountDue + 10_000n });
    world.mine(2);
    world.spend(30_000n);
    world.reorg(2, 'out');
    world.wait(11 * MINUTE);
    expect([world.available(), world.suspense(), world.receivable()]).toEqual([0n, 0n, 30_000n]);
    world.decline(); // in every status
    world.resend(tx);
    world.mine();
    expect([world.available(), world.suspense(), world.receivable()]).toEqual([20_000n, 10_000n, 0n]);
  });

  test('twin_is_same: a malleated twin takes over the entry and the place of the original', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.mine();
    world.reorg(1);
    const entries = world.books.entries.size;
    const twin = world.malleate(tx);
    expect(world.path()).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    expect(world.payments.map((payment) => payment.txid)).toEqual([twin.txid]);
    expect(world.books.entries.size).toBe(entries);
    expect(world.available()).toBe(world.amountDue);
  });
});

describe('where payments lie', () => {
  test('suspense_everywhere: a payment at R is booked in every status but started, pending, confirmed', () => {
    const world = judgedTransaction({ settlementMs: 0 });
    world.pay({ amount: HALF });
    world.pay({ currency: 'LTC', amount: 1_000n });
    world.mine(12, 'LTC');
    expect([world.status, world.suspense('LTC')]).toEqual(['pending', 1_000n]);
    world.pay({ amount: HALF });
    world.mine(6);
    world.wait(SECOND);
    expect(world.status).toBe('settled');
    world.pay({ amount: HALF });
    world.mine();
    expect([world.status, world.suspense()]).toEqual(['settled', HALF]);
    world.mine(6);
    world.openRefund();
    world.finishRefund();
    world.pay({ amount: HALF });
    world.mine();
    expect([world.status, world.suspense()]).toEqual(['reimbursed', HALF]);
  });

  test('resolve_anywhere: payments in suspense can be resolved in every status', () => {
    const world = judgedTransaction({ settlementMs: 0 });
    world.pay();
    world.mine(6);
    world.wait(SECOND);
    world.pay({ amount: HALF });
    world.mine();
    world.acceptExcess();
    expect([world.status, world.available(), world.suspense()]).toEqual(['settled', world.amountDue + HALF, 0n]);
    world.openRefund();
    world.finishRefund();
    world.pay({ amount: HALF });
    world.mine();
    world.acceptExcess();
    expect([world.status, world.available(), world.suspense()]).toEqual(['reimbursed', HALF, 0n]);
  });

  test('unique_key: a second worker that decides on the same facts books under the same key', () => {
    const stories = [1, 2].map(() => {
      const world = judgedTransaction();
      world.pay();
      world.mine();
      return [...world.books.entries.values()].map((entry) => entry.key.replace(/t\d+/, 'txid'));
    });
    expect(stories[0]).toEqual(['dep:btc:txid:0']);
    expect(stories[1]).toEqual(stories[0]);
  });

  test('credit_at_R: nothing is credited at first sight, nor one confirmation before R', () => {
    const world = judgedTransaction({ usd: 1_000_00n });
    world.pay();
    world.mine(2);
    expect([world.status, world.available(), world.books.entries.size]).toEqual(['pending', 0n, 0]);
    world.mine();
    expect([world.status, world.available()]).toEqual(['succeeded', world.amountDue]);
  });
});
