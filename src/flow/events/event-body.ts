// An event as it is listed and delivered (behaviour §8). It is made of what was stored with the event, so it is the same at every attempt.
import { eventId } from '../../core/events.ts';
import { formatAmount, formatMinor } from '../../core/money.ts';
import { openText } from '../../core/sealed-text.ts';
import type { PayoutThen, StoredEvent, TransactionThen } from '../../store/deliveries/events.ts';
import type { Context } from '../context.ts';

const isoTime = (ms: number): string => new Date(ms).toISOString();
const isoTimeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

export type EventBody = ReturnType<typeof eventBody>;

/** `previous.status` is null for what was created, and the present status where an announcement changed none. */
export function eventBody(ctx: Pick<Context, 'ports'>, event: StoredEvent) {
  const { object, type, sequence, payment } = event;
  const changed = type === `${object.kind}.${object.status}`;
  return {
    id: eventId(event),
    type,
    created_at: isoTime(event.atMs),
    sequence,
    data: {
      object: object.kind === 'transaction' ? transaction(event.objectId, object) : payout(ctx, event.objectId, object),
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
function payout({ ports }: Pick<Context, 'ports'>, id: string, then: PayoutThen) {
  return {
    id,
    method: then.method,
    amount: then.amountText,
    status: then.status,
    created_at: isoTime(then.createdAtMs),
    fee: then.fee === null ? null : formatAmount(then.fee, then.currency),
    fee_currency: then.currency,
    destination: openText(ports.sealing, then.destination, id),
    ...carriedBy(then),
    error: then.error,
    held_reason: then.heldReason,
    completed_at: isoTimeOrNull(then.completedAtMs),
  };
}

function carriedBy({ method, txid, trace, paymentHash }: PayoutThen) {
  if (method === 'lightning') return { payment_hash: paymentHash };
  return method === 'ach' ? { trace } : { txid };
}
