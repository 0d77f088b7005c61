// What an event shows of its object is what was stored with it, and never what the object has become since.
import { describe, expect, test } from 'vitest';
import { isWhole, type RawEvent, storedEvent } from '../../src/store/deliveries/events.ts';

const AT = new Date(Date.UTC(2026, 5, 1));
const BEFORE = new Date(Date.UTC(2026, 4, 1));
const raw: RawEvent = {
  id: 9n,
  merchant_id: 4n,
  object_id: 'txn_1',
  sequence: 2,
  type: 'transaction.pending',
  status: 'pending',
  previous: 'started',
  at: AT,
  data: null,
  currency: 'BTC',
  created_at: BEFORE,
  amount_due: '38462',
  usd_minor: 25_00n,
  label: 'order 7',
  method: null,
  amount_text: null,
  destination: null,
  payment_hash: null,
};
const key = { id: 9n, merchantId: 4n, sequence: 2, atMs: AT.getTime() };

describe('of a transaction', () => {
  const bare = {
    kind: 'transaction',
    status: 'pending',
    currency: 'BTC',
    amountDue: 38_462n,
    received: 0n,
    confirmations: 0,
    usdMinor: 25_00n,
    createdAtMs: BEFORE.getTime(),
    confirmedAtMs: null,
    label: 'order 7',
  };

  test('with nothing stored, zero was received', () => {
    expect(storedEvent(raw)).toStrictEqual({
      ...key,
      objectId: 'txn_1',
      type: 'transaction.pending',
      previous: 'started',
      payment: null,
      object: bare,
    });
  });

  test('what was stored is shown', () => {
    const shown = { received: '20000', confirmations: 3, confirmed_ms: 17 };
    const { object, payment } = storedEvent({ ...raw, data: { shown } });
    expect(object).toStrictEqual({ ...bare, received: 20_000n, confirmations: 3, confirmedAtMs: 17 });
    expect(payment).toBeNull();
  });

  test('a payment is shown where it is whole', () => {
    const payment = { currency: 'LTC', txid: 'ab', amount: '0.5' } as const;
    expect(storedEvent({ ...raw, data: { ...payment, shown: {} } }).payment).toStrictEqual(payment);
    for (const missing of Object.keys(payment))
      expect(storedEvent({ ...raw, data: { ...payment, [missing]: undefined } }).payment).toBeNull();
  });
});

describe('of a payout', () => {
  const payout: RawEvent = {
    ...raw,
    object_id: 'payout_1',
    type: 'payout.failed',
    status: 'failed',
    previous: 'processing',
    amount_due: null,
    usd_minor: null,
    label: null,
    method: 'bitcoin',
    amount_text: '0.10',
    destination: 'bcrt1q',
    payment_hash: 'cd',
  };
  const bare = {
    kind: 'payout',
    status: 'failed',
    method: 'bitcoin',
    amountText: '0.10',
    currency: 'BTC',
    fee: null,
    destination: 'bcrt1q',
    txid: null,
    paymentHash: 'cd',
    trace: null,
    error: null,
    heldReason: null,
    createdAtMs: BEFORE.getTime(),
    completedAtMs: null,
  };

  test('with nothing stored, nothing is known of its end', () => {
    expect(storedEvent(payout).object).toStrictEqual(bare);
  });

  test('what was stored is shown', () => {
    const shown = {
      fee: '120',
      txid: 'ef',
      trace: '7',
      error: 'displaced',
      held_reason: 'approval',
      completed_ms: 18,
    } as const;
    const { object } = storedEvent({ ...payout, data: { shown } });
    const { held_reason: heldReason, completed_ms: completedAtMs, ...same } = shown;
    expect(object).toStrictEqual({ ...bare, ...same, fee: 120n, heldReason, completedAtMs });
  });
});

test('an event whose object is gone has none', () => {
  const gone = storedEvent({ ...raw, created_at: null });
  expect(gone.object).toBeNull();
  expect([isWhole(gone), isWhole(storedEvent(raw))]).toEqual([false, true]);
});
