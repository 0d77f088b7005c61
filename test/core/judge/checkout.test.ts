// Which screen a customer sees: of every status, before and after the end of the window, with nothing, a part and all of it paid.
import { expect, test } from 'vitest';
import { type CheckoutScreen, checkoutScreen } from '../../../src/core/judge/checkout.ts';
import { parseRate, type Rate } from '../../../src/core/rate.ts';
import { TRANSACTION_STATUSES, type TransactionStatus } from '../../../src/core/transaction-states.ts';

const EXPIRES = 1_000_000;
const transaction = (status: TransactionStatus, receivedMinor: bigint, awaitedMinor: bigint) => ({
  status,
  receivedMinor,
  awaitedMinor,
  amountDue: 100_000n,
  toleranceBps: 100,
  currency: 'BTC' as const,
  rate: parseRate('50000') as Rate,
  expiresAtMs: EXPIRES,
});
const shown = (status: TransactionStatus, receivedMinor: bigint, nowMs: number, awaitedMinor = 0n) =>
  checkoutScreen(transaction(status, receivedMinor, awaitedMinor), nowMs);

test('while there is time a started transaction is to be paid, and a pending one what is still missing', () => {
  expect(shown('started', 0n, EXPIRES - 1)).toBe('pay');
  expect(shown('pending', 40_000n, EXPIRES - 1)).toBe('partly_paid');
  // one unit below what the tolerance leaves
  expect(shown('pending', 98_999n, EXPIRES - 1)).toBe('partly_paid');
  expect(shown('pending', 99_000n, EXPIRES - 1)).toBe('seen');
  expect(shown('pending', 250_000n, EXPIRES - 1)).toBe('seen');
});

test('from the moment at which the window ends nothing is to be paid, whether or not anybody has looked', () => {
  expect(shown('started', 0n, EXPIRES)).toBe('expired');
  expect(shown('pending', 98_999n, EXPIRES)).toBe('expired');
  expect(shown('pending', 99_000n, EXPIRES)).toBe('seen');
});

test('what the network does not show at present is never asked for again', () => {
  // one unit below what the tolerance leaves, with what may come back
  expect(shown('pending', 40_000n, EXPIRES - 1, 58_999n)).toBe('partly_paid');
  expect(shown('pending', 40_000n, EXPIRES - 1, 59_000n)).toBe('missing');
  expect(shown('pending', 0n, EXPIRES - 1, 100_000n)).toBe('missing');
  expect(shown('pending', 0n, EXPIRES, 1n)).toBe('missing');
  expect(shown('pending', 99_000n, EXPIRES - 1, 50_000n)).toBe('seen');
});

test('every other status has one screen, whatever has come in and whenever', () => {
  const screens: Partial<Record<TransactionStatus, CheckoutScreen>> = {
    confirmed: 'paid',
    succeeded: 'paid',
    settled: 'paid',
    timedout: 'expired',
    timedout_checked: 'expired',
    cancelled: 'cancelled',
    declined: 'declined',
    review: 'review',
    reimbursed: 'reimbursed',
  };
  const others = TRANSACTION_STATUSES.filter((status) => status !== 'started' && status !== 'pending');
  for (const status of others)
    for (const received of [0n, 40_000n, 100_000n, 250_000n])
      for (const nowMs of [0, EXPIRES - 1, EXPIRES, 10 * EXPIRES]) expect(shown(status, received, nowMs)).toBe(screens[status]);
});
