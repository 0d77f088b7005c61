// An event as it is listed and delivered (behaviour §8). It is made of what was stored with the event, so it is the same at every attempt.
import { eventId } from '../../core/events.ts';
import { formatAmount, formatMinor } from '../../core/money.ts';
import { openedOrNull, openText } from '../../core/sealed-text.ts';
import {
  type FoundEvent,
  isWhole,
  type PayoutThen,
  type StoredEvent,
  type TransactionThen,
} from '../../store/deliveries/events.ts';
import type { Context } from '../context.ts';
import { shownPayout } from '../payouts/reads.ts';

const isoTime = (ms: number): string => new Date(ms).toISOString();
const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

export type EventBody = ReturnType<typeof eventBody>;

/**
 * As webhooks tell it, the same at every attempt. `previous.status` is null for what was created, and the present status where an announcement
 * changed none. Throws where the destination of a payout cannot be opened with our key, and where the object is gone.
 */
export function eventBody({ ports }: Pick<Context, 'ports'>, event: FoundEvent) {
  if (!isWhole(event)) throw new Error(`${event.objectId} is gone`);
  return bodyWith(event, (stored) => openText(ports.sealing, stored, event.objectId));
}

/** As lists and streams show it: the same, but without a destination that cannot be opened (null), so that no other event waits for it. */
export function shownEvent({ ports }: Pick<Context, 'ports'>, event: StoredEvent) {
  return bodyWith(event, (stored) => openedOrNull(ports.sealing, stored, event.objectId));
}

function bodyWith(event: StoredEvent, open: (stored: string) => string | null) {
  const { object, type, sequence, payment } = event;
  const changed = type === `${object.kind}.${object.status}`;
  return {
    id: eventId(event),
    type,
    created_at: isoTime(event.atMs),
    sequence,
    data: {
      object:
        object.kind === 'transaction'
          ? transaction(event.objectId, object)
          : payout(event.objectId, object, open(object.destination)),
      previous: { status: changed ? event.previous : object.status },
      ...(payment === null ? {} : { payment }),
    },
  };
}

/** The fields of check_transaction, what it is paid with, and the merchant's reference. */
function transaction(id: string, then: TransactionThen) {
  return {
    transaction_id: id,
    status: then.status,
    crypto_selected: then.currency,
    crypto_amount: formatAmount(then.amountDue, then.currency),
    crypto_received: formatAmount(then.received, then.currency),
    confirmations: then.confirmations,
    usd_amount: formatMinor(then.usdMinor, 2),
    created_at: isoTime(then.createdAtMs),
    confirmed_at: isoTimeOrNull(then.confirmedAtMs),
    label: then.label,
  };
}

/** The fields of check_payout. */
function payout(id: string, then: PayoutThen, destination: string | null) {
  return shownPayout({ ...then, id, destination });
}
