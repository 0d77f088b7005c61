// The checkout page of a transaction: what its link names it by, and which screen its customer sees, derived from the status and what has come in.

import { plus } from '../money.ts';
import type { TransactionStatus } from '../transaction-states.ts';
import { sufficientAmount } from './payments.ts';

/** What the link of a checkout page names its transaction by. */
export type CheckoutTokens = {
  /** 22 characters of base62, always the same for a transaction. */
  tokenOf(transactionId: string): string;
  /** Null = no token; a token that was never made gives an id that does not exist. */
  transactionIdOf(token: string): string | null;
};

/**
 * `pay`: nothing has come in, and there is time. `partly_paid`: less than is due, and there is time for the rest. `seen`: enough, and blocks decide. `missing`:
 * something was seen that the network does not show at present; it may come back, so it must not be paid again. `expired`: do not pay.
 */
export type CheckoutScreen =
  | 'pay'
  | 'partly_paid'
  | 'seen'
  | 'missing'
  | 'paid'
  | 'expired'
  | 'review'
  | 'declined'
  | 'cancelled'
  | 'reimbursed';

const AFTER_PAYING: Readonly<Partial<Record<TransactionStatus, CheckoutScreen>>> = {
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

type Shown = Parameters<typeof sufficientAmount>[0] & {
  readonly status: TransactionStatus;
  readonly receivedMinor: bigint;
  /** Of payments that were seen, that the network does not show at present, and that nothing has replaced. */
  readonly awaitedMinor: bigint;
  readonly expiresAtMs: number;
};

/** @param nowMs by the service's clock: when the window ends nothing must be paid any more, though nobody has looked yet */
export function checkoutScreen(transaction: Shown, nowMs: number): CheckoutScreen {
  const { status, receivedMinor, awaitedMinor, expiresAtMs } = transaction;
  const decided = AFTER_PAYING[status];
  if (decided !== undefined) return decided;
  const isOver = nowMs >= expiresAtMs;
  if (status === 'started') return isOver ? 'expired' : 'pay';
  const sufficient = sufficientAmount(transaction);
  if (receivedMinor >= sufficient) return 'seen';
  if (!isOver && plus(receivedMinor, awaitedMinor) < sufficient) return 'partly_paid';
  return awaitedMinor > 0n ? 'missing' : 'expired';
}
