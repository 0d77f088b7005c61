// The merchant's and the operator's decisions at their edges: one payment of two that is not ready, the last unit, and what the history tells.
import { describe, expect, test } from 'vitest';
import type { Case, Payment } from '../../../src/core/judge/case.ts';
import { accept, acceptExcess, decline } from '../../../src/core/judge/resolve.ts';
import type { TransactionStatus } from '../../../src/core/transaction-states.ts';
import { newCase, newPayment, PRICE, TIP, WINDOW_END_MS } from '../../support/one-case.ts';

const deep = (id: number, known: Partial<Payment> = {}): Payment =>
  newPayment(id, {
    state: 'mined',
    height: TIP - 200,
    classified: true,
    present: true,
    valueRate: PRICE,
    partKey: `dep:${id}`,
    inSuspense: 1_000n,
    ...known,
  });
const inStatus = (status: TransactionStatus, payments: readonly Payment[], known: Parameters<typeof newCase>[1] = {}): Case =>
  newCase(payments, { ...known, transaction: { status } });
const reasons = (it: Case) => it.steps.flatMap((step) => (step.kind === 'status' ? [step.reason] : []));

describe('an accept', () => {
  test('waits for each payment that is to be booked, also beside one that is', () => {
    const it = inStatus('review', [deep(1), deep(2, { partKey: null, inSuspense: 0n })]);
    expect(() => accept(it)).toThrow('does not have the confirmations');
  });

  test('of nothing in suspense says that a payment is on its way, where one is', () => {
    const shallow = deep(2, { partKey: null, inSuspense: 0n, state: 'mempool', height: null });
    expect(() => accept(inStatus('review', [deep(1, { inSuspense: 0n }), shallow]))).toThrow(
      'No payment of this transaction has',
    );
    expect(() => accept(inStatus('review', [deep(1, { inSuspense: 0n })]))).toThrow('lies in suspense');
  });

  test('is the operator’s in the history only where he gave it', () => {
    const by = (speaker?: 'operator') => {
      const it = inStatus('review', [deep(1)]);
      accept(it, speaker);
      return reasons(it)[0];
    };
    expect([by('operator'), by()]).toEqual(['accepted by the operator', expect.not.stringContaining('operator')]);
  });
});

test('a decline is the merchant’s decision from then on, and the operator’s in the history only where he gave it', () => {
  const by = (speaker?: 'operator') => {
    const it = inStatus('review', [deep(1)]);
    decline(it, speaker);
    return [it.transaction.merchantDecision, reasons(it)[0]];
  };
  expect(by('operator')).toEqual(['refused', 'refused by the operator']);
  expect(by()).toEqual(['refused', expect.not.stringContaining('operator')]);
});

describe('an accept of the excess', () => {
  test.each(['started', 'pending', 'confirmed'] as const)('is refused before the price is booked: %s', (status) => {
    expect(() => acceptExcess(inStatus(status, [deep(1)]))).toThrow(`${status}; an excess can be resolved once it is booked`);
  });

  test('takes the last unit, each time in an entry of its own', () => {
    const it = inStatus('succeeded', [deep(1, { inSuspense: 1n })]);
    acceptExcess(it);
    it.payments[0]!.inSuspense = 1n;
    acceptExcess(it);
    const keys = it.steps.map((step) => step.kind === 'post' && step.entry.key);
    expect(keys).toEqual(['rev:txn_1:accept:2:btc', 'rev:txn_1:accept:3:btc']);
  });

  test('waits while two nodes do not hold its blocks', () => {
    const contested = { tipHeight: TIP, timeMs: WINDOW_END_MS, agreed: { height: -1, limitMinor: 0n } };
    const it = inStatus('succeeded', [deep(1)], { chains: new Map([['BTC', contested]]) });
    expect(() => acceptExcess(it)).toThrow('contradict each other');
  });
});
