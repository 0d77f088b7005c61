// Payouts as replies (behaviour §1, §8).
import type { checkedPayout, payoutReply, payoutSettingsReply } from '../../contract/payout-replies.ts';
import type { TypeOf } from '../../contract/shapes.ts';
import { formatAmount } from '../../core/money.ts';
import type { PayoutView } from '../../flow/payouts/reads.ts';
import type { PayoutSettings } from '../../flow/payouts/settings.ts';
import { isoTime } from './transaction-replies.ts';

type Requested = Pick<PayoutView, 'id' | 'method' | 'amountText' | 'status' | 'createdAtMs'>;

/** The five fields of a payout that was requested. */
export function requestedReply(payout: Requested): TypeOf<typeof payoutReply>['payout'] {
  const { id, method, amountText, status, createdAtMs } = payout;
  return { id, method, amount: amountText, status, created_at: isoTime(createdAtMs) };
}

/**
 * A payout as `/check_payout` and the lists answer it. `amount` as it was sent, `fee` in the payout's currency, null while it is unknown.
 */
export function viewReply(payout: PayoutView): TypeOf<typeof checkedPayout>['payout'] {
  return {
    ...requestedReply(payout),
    fee: payout.fee === null ? null : formatAmount(payout.fee, payout.currency),
    fee_currency: payout.currency,
    destination: payout.destination,
    ...carriedBy(payout),
    error: payout.error,
    held_reason: payout.heldReason,
    completed_at: payout.completedAtMs === null ? null : isoTime(payout.completedAtMs),
  };
}

function carriedBy({ method, txid, trace, paymentHash }: PayoutView) {
  if (method === 'lightning') return { payment_hash: paymentHash };
  return method === 'ach' ? { trace } : { txid };
}

/** The answer of both operations on the settings of automatic payouts. */
export function payoutSettingsOf(settings: PayoutSettings): TypeOf<typeof payoutSettingsReply> {
  const usableAt = settings.destinationUsableAtMs;
  return {
    success: true,
    settings: {
      enabled: settings.enabled,
      method: settings.method,
      destination: settings.destination,
      threshold: settings.threshold,
      leave: settings.leave,
      source_currency: settings.sourceCurrency,
      paused: settings.paused,
      paused_reason: settings.pausedReason,
      destination_usable_at: usableAt === null ? null : isoTime(usableAt),
    },
  };
}
