// Payouts as replies (behaviour §1, §8).
import type { payoutReply, payoutSettingsReply } from '../../contract/payout-replies.ts';
import type { TypeOf } from '../../contract/shapes.ts';
import type { PayoutView } from '../../flow/payouts/reads.ts';
import type { PayoutSettings } from '../../flow/payouts/settings.ts';
import { isoTime } from './transaction-replies.ts';

type Requested = Pick<PayoutView, 'id' | 'method' | 'amountText' | 'status' | 'createdAtMs'>;

/** The five fields of a payout that was requested. */
export function requestedReply(payout: Requested): TypeOf<typeof payoutReply>['payout'] {
  const { id, method, amountText, status, createdAtMs } = payout;
  return { id, method, amount: amountText, status, created_at: isoTime(createdAtMs) };
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
