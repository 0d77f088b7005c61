// Events as merchants are told of them: read one by one for deliveries, and page by page for lists. What an event shows of its object was
// stored with it, or never changes.
import type { CurrencyCode, LedgerCurrency } from '../../core/currency.ts';
import type { EventKey } from '../../core/events.ts';
import type { HeldReason, PayoutStatus } from '../../core/payouts/states.ts';
import type { PayoutMethod } from '../../core/payouts/units.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import type { PayoutView } from '../payouts/reads.ts';
import type { Database, Sql } from '../postgres/connect.ts';
import { LISTED_WITHIN_MS } from '../transactions/lists.ts';

/** A payment that an announcement is about. */
export type EventPayment = { readonly currency: CurrencyCode; readonly txid: string; readonly amount: string };

/** A transaction as it was when the event was written. Amounts in minor units. */
export type TransactionThen = {
  readonly kind: 'transaction';
  readonly status: TransactionStatus;
  readonly currency: CurrencyCode;
  readonly amountDue: bigint;
  readonly received: bigint;
  readonly confirmations: number;
  readonly usdMinor: bigint;
  readonly createdAtMs: number;
  readonly confirmedAtMs: number | null;
  readonly label: string | null;
};

/** A payout as it was when the event was written; its destination as it is stored: it may be sealed. */
export type PayoutThen = Omit<PayoutView, 'id' | 'merchantId'> & { readonly kind: 'payout' };

/** An event as its row tells it. `object` is null where that is gone: by somebody's hand, since nothing of ours deletes one. */
export type FoundEvent = EventKey & {
  readonly id: bigint;
  readonly merchantId: bigint;
  readonly type: string;
  readonly previous: TransactionStatus | PayoutStatus | null;
  readonly atMs: number;
  readonly payment: EventPayment | null;
  readonly object: TransactionThen | PayoutThen | null;
};
/** An event that can be told. */
export type StoredEvent = FoundEvent & { readonly object: TransactionThen | PayoutThen };

/** Whether its object is there: an event whose object is gone is told to nobody, and holds up no other. */
export const isWhole = (event: FoundEvent): event is StoredEvent => event.object !== null;

type Shown = {
  received?: string;
  confirmations?: number;
  confirmed_ms?: number;
  fee?: string;
  txid?: string;
  trace?: string;
  error?: string;
  held_reason?: HeldReason;
  completed_ms?: number;
};
export type RawEvent = {
  id: bigint;
  merchant_id: bigint;
  object_id: string;
  sequence: number;
  type: string;
  status: string;
  previous: TransactionStatus | PayoutStatus | null;
  at: Date;
  data: ({ shown?: Shown } & Partial<EventPayment>) | null;
  currency: string;
  /** Null: there is neither a transaction nor a payout. */
  created_at: Date | null;
  amount_due: string | null;
  usd_minor: bigint | null;
  label: string | null;
  method: PayoutMethod | null;
  amount_text: string | null;
  destination: string | null;
  payment_hash: string | null;
};

/**
 * SQL: the number that an event `e` is told with. Those of its object are counted from 1; what was written after the database was put back to an
 * earlier state is numbered higher, because the next numbers may have been told of events that are lost.
 */
export const TOLD_SEQUENCE = `e.sequence + coalesce((select max(r.added) from raised_event_numbers r
  where r.after_event < e.id and (select f.id from events f where f.object_id = e.object_id and f.sequence = 1) <= r.after_event), 0)`;
/** SQL of what {@link storedEvent} reads, of an event `e` and what {@link EVENT_OBJECTS} joins. */
export const EVENT_COLUMNS = `e.id, e.merchant_id, e.object_id, ${TOLD_SEQUENCE} as sequence, e.type, e.status, e.previous, e.at, e.data,
  coalesce(t.currency, p.currency) as currency, coalesce(t.created_at, p.created_at) as created_at,
  t.amount_due, t.usd_minor, t.label, p.method, p.amount_text, p.destination, p.payment_hash`;
export const EVENT_OBJECTS = `left join transactions t on t.id = e.object_id left join payouts p on p.id = e.object_id`;

/** A row of `events` with its object as it was then: columns that came later are taken from what the event itself has kept. */
export function storedEvent(raw: RawEvent): FoundEvent {
  const { data, created_at: createdAt } = raw;
  const isPayment = data?.txid !== undefined && data.currency !== undefined && data.amount !== undefined;
  return {
    id: raw.id,
    merchantId: raw.merchant_id,
    objectId: raw.object_id,
    sequence: raw.sequence,
    type: raw.type,
    previous: raw.previous,
    atMs: raw.at.getTime(),
    payment: isPayment ? ({ currency: data.currency, txid: data.txid, amount: data.amount } as EventPayment) : null,
    object: createdAt === null ? null : objectThen(raw, createdAt.getTime()),
  };
}

function objectThen(raw: RawEvent, createdAtMs: number): TransactionThen | PayoutThen {
  const shown = raw.data?.shown ?? {};
  return raw.method === null
    ? transactionThen(raw, createdAtMs, shown)
    : payoutThen(raw, createdAtMs, { method: raw.method, shown });
}

function transactionThen(raw: RawEvent, createdAtMs: number, shown: Shown): TransactionThen {
  return {
    kind: 'transaction',
    status: raw.status as TransactionStatus,
    currency: raw.currency as CurrencyCode,
    amountDue: BigInt(raw.amount_due ?? 0),
    received: BigInt(shown.received ?? 0),
    confirmations: shown.confirmations ?? 0,
    usdMinor: raw.usd_minor ?? 0n,
    createdAtMs,
    confirmedAtMs: shown.confirmed_ms ?? null,
    label: raw.label,
  };
}

function payoutThen(
  raw: RawEvent,
  createdAtMs: number,
  { method, shown }: { readonly method: PayoutMethod; readonly shown: Shown },
): PayoutThen {
  return {
    kind: 'payout',
    status: raw.status as PayoutStatus,
    method,
    amountText: raw.amount_text ?? '',
    currency: raw.currency as LedgerCurrency,
    fee: shown.fee === undefined ? null : BigInt(shown.fee),
    destination: raw.destination ?? '',
    txid: shown.txid ?? null,
    paymentHash: raw.payment_hash,
    trace: shown.trace ?? null,
    error: shown.error ?? null,
    heldReason: shown.held_reason ?? null,
    createdAtMs,
    completedAtMs: shown.completed_ms ?? null,
  };
}

/** Where an event stands in the merchant's lists; null when the merchant has no such event. */
export async function findEvent(sql: Sql, merchantId: bigint, { objectId, sequence }: EventKey): Promise<bigint | null> {
  const { rows } = await sql.query<{ id: bigint }>({
    name: 'find_event',
    text: `select e.id from events e
            where e.object_id = $1 and e.sequence in (select $2::integer union all select $2::integer - added from raised_event_numbers)
              and e.merchant_id = $3 and ${TOLD_SEQUENCE} = $2::integer`,
    values: [objectId, sequence, merchantId],
  });
  return rows[0]?.id ?? null;
}

export type EventFilter = {
  readonly merchantId: bigint;
  readonly limit: number;
  /** From {@link findEvent}. */
  readonly startingAfter: bigint | null;
  /** Null = of every object. */
  readonly objectId: string | null;
  /** Not empty. */
  readonly types: readonly string[];
  readonly createdGteMs: number | null;
  readonly createdLtMs: number | null;
};

/** The merchant's events, newest first (ties by the order in which they were written), one more than `limit` where there are more. */
export async function listEventRows(db: Database, filter: EventFilter): Promise<readonly FoundEvent[]> {
  const { rows } = await db.transaction(async (sql) => {
    await sql.query({ text: `set local statement_timeout = ${LISTED_WITHIN_MS}` });
    return sql.query<RawEvent>(pageOf(filter));
  });
  return rows.map(storedEvent);
}

/** Of one object all events are looked at; otherwise the newest of each type are merged, which one index has in order. */
function pageOf({ merchantId, limit, startingAfter: after, objectId, types, createdGteMs: gte, createdLtMs: lt }: EventFilter) {
  const values: unknown[] = [merchantId, limit + 1, types];
  const put = (value: unknown): string => `$${values.push(value)}`;
  const wanted = ['q.merchant_id = $1'];
  if (objectId !== null) wanted.push(`q.object_id = ${put(objectId)}`, 'q.type = any ($3)');
  else wanted.push('q.type = k.type');
  if (after !== null) wanted.push(`(q.at, q.id) < (select x.at, x.id from events x where x.id = ${put(after)})`);
  if (gte !== null) wanted.push(`q.at >= ${put(new Date(gte))}`);
  if (lt !== null) wanted.push(`q.at < ${put(new Date(lt))}`);
  const newest = (name: string) => `order by ${name}.at desc, ${name}.id desc limit (select $2::integer)`;
  const page = `select * from events q where ${wanted.join(' and ')} ${newest('q')}`;
  const from = objectId === null ? `unnest($3::text[]) k (type) cross join lateral (${page}) e` : `(${page}) e`;
  const given = Object.entries({ objectId, after, gte, lt }).flatMap(([name, value]) => (value === null ? [] : [name]));
  return {
    name: ['view_events', ...given].join('_'),
    text: `select ${EVENT_COLUMNS} from (select e.* from ${from} ${newest('e')}) e ${EVENT_OBJECTS} order by e.at desc, e.id desc`,
    values,
  };
}
