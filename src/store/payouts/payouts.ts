// The rows of payouts: made with their first event, locked, and moved on by the table of transitions. What is posted with a step is the
// caller's, in the same database transaction.
import type { CurrencyCode, LedgerCurrency } from '../../core/currency.ts';
import type { Approval } from '../../core/payouts/intent.ts';
import {
  type HeldReason,
  type PayoutEvent,
  type PayoutStatus,
  type PayoutStep,
  payoutTransition,
} from '../../core/payouts/states.ts';
import type { PayoutMethod } from '../../core/payouts/units.ts';
import { LIGHTNING_PAYOUT_JOB } from '../lightning/payment-rows.ts';
import { arrayText } from '../postgres/array-text.ts';
import type { Sql } from '../postgres/connect.ts';
import { PAYOUT_JOB } from './outgoing-facts.ts';
import { type PayoutChange, writePayoutChanges } from './status-changes.ts';

/** A payout as it was requested. Amounts in minor units of `currency`. */
export type RequestedPayout = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly method: PayoutMethod;
  /** As it was sent; the resolved amount for `all`. */
  readonly amountText: string;
  /** USD for ach. */
  readonly currency: LedgerCurrency;
  readonly amount: bigint;
  readonly feeMax: bigint;
  /** ach: the balance that it is paid from, and what it took of it, in minor units of that; null: `currency` is that balance. */
  readonly source: { readonly currency: CurrencyCode; readonly amount: bigint } | null;
  /** What it has cost, where that is known from the beginning. */
  readonly fee: bigint | null;
  readonly destination: string;
  /** The output script, for a chain of Bitcoin's family. */
  readonly script: Uint8Array | null;
  /** Cents at the median rate; null when there was none. */
  readonly usdMinor: bigint | null;
  readonly needsApproval: boolean;
  readonly automatic: boolean;
  /** The transaction here to whose address it goes: an entry pays it. Absent or null: it leaves. */
  readonly internalTo?: string | null;
  /** What is paid over Lightning; absent or null for everything else. */
  readonly paymentHash?: string | null;
  readonly paymentRequest?: string | null;
  readonly invoiceExpiresAtMs?: number | null;
  readonly createdAtMs: number;
};

/** `fee`: what it has cost the merchant; null until it is known. */
export type PayoutRow = RequestedPayout & {
  readonly status: PayoutStatus;
  readonly step: PayoutStep;
  readonly heldReason: HeldReason | null;
  readonly approvedAtMs: number | null;
  readonly batchId: string | null;
  readonly error: string | null;
  readonly completedAtMs: number | null;
  /** The last event's number. */
  readonly sequence: number;
  /** The transaction whose payments go back; null for a payout. */
  readonly reimburses: string | null;
};

type Raw = {
  id: string;
  merchant_id: bigint;
  method: PayoutMethod;
  amount_text: string;
  currency: LedgerCurrency;
  source_currency: CurrencyCode | null;
  source_amount: string | null;
  amount: string;
  fee_max: string;
  fee: string | null;
  destination: string;
  script: Buffer | null;
  status: PayoutStatus;
  step: PayoutStep;
  held_reason: HeldReason | null;
  usd_minor: bigint | null;
  needs_approval: boolean;
  automatic: boolean;
  approved_at: Date | null;
  batch_id: string | null;
  error: string | null;
  created_at: Date;
  completed_at: Date | null;
  sequence: number;
  reimburses: string | null;
  payment_hash: string | null;
  payment_request: string | null;
  invoice_expires_at: Date | null;
};
const COLUMNS = `id, merchant_id, method, amount_text, currency, amount, fee_max, fee, destination, script, status, step, held_reason, usd_minor,
  needs_approval, automatic, approved_at, batch_id, error, created_at, completed_at, sequence, source_currency, source_amount,
  reimburses, payment_hash, payment_request, invoice_expires_at`;

function fromRaw(raw: Raw): PayoutRow {
  return {
    id: raw.id,
    merchantId: raw.merchant_id,
    method: raw.method,
    amountText: raw.amount_text,
    currency: raw.currency,
    amount: BigInt(raw.amount),
    feeMax: BigInt(raw.fee_max),
    source: raw.source_currency === null ? null : { currency: raw.source_currency, amount: BigInt(raw.source_amount ?? 0) },
    fee: raw.fee === null ? null : BigInt(raw.fee),
    destination: raw.destination,
    script: raw.script,
    status: raw.status,
    step: raw.step,
    heldReason: raw.held_reason,
    usdMinor: raw.usd_minor,
    needsApproval: raw.needs_approval,
    automatic: raw.automatic,
    approvedAtMs: raw.approved_at?.getTime() ?? null,
    batchId: raw.batch_id,
    error: raw.error,
    createdAtMs: raw.created_at.getTime(),
    completedAtMs: raw.completed_at?.getTime() ?? null,
    sequence: raw.sequence,
    reimburses: raw.reimburses,
    paymentHash: raw.payment_hash,
    paymentRequest: raw.payment_request,
    invoiceExpiresAtMs: raw.invoice_expires_at?.getTime() ?? null,
  };
}

/** A payout with what was decided about it. `intent`: the signature of core/payouts/intent.ts, and the key that made it. */
export type PayoutToInsert = {
  readonly payout: RequestedPayout;
  /** Null = nothing holds it. */
  readonly heldReason: HeldReason | null;
  readonly intent: { readonly keyId: string; readonly signature: Uint8Array };
};

/**
 * Another one by the same method that was requested in the last second and still waits: its job was woken, and looks again every second while
 * anything waits. That over Lightning looks when something is due only.
 */
const STILL_QUEUED = `select from payouts q where q.step = 'queued' and q.method = m.method and q.method <> 'lightning'
   and q.created_at between m.created_at - interval '1 second' and m.created_at and q.id <> all ($1::text[])`;

/**
 * Writes payouts and the first event of each, and wakes the driver when nothing holds one, or the job that looks at those which wait for
 * blocks; returns their rows in the same order, of which the database adds nothing but the event's number.
 */
export async function insertPayouts(sql: Sql, all: readonly PayoutToInsert[]): Promise<readonly PayoutRow[]> {
  if (all.length === 0) return [];
  const steps = all.map(({ heldReason }) => payoutTransition(null, heldReason === null ? 'requested' : 'requested_and_held'));
  const column = (value: (one: PayoutToInsert) => unknown): string => arrayText(all.map(value));
  const payouts = all.map(({ payout }) => payout);
  const { rows } = await sql.query<Pick<Raw, 'id' | 'sequence'>>({
    name: 'insert_payouts',
    text: `with made as (
             insert into payouts (id, merchant_id, method, amount_text, currency, amount, fee_max, destination, script, status, step, held_reason,
                                  usd_minor, needs_approval, automatic, intent_key, intent, created_at, fee, source_currency, source_amount, internal_to,
                                  payment_hash, payment_request, invoice_expires_at)
               select * from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::numeric[], $7::numeric[], $8::text[], $9::bytea[],
                        $10::text[], $11::text[], $12::text[], $13::bigint[], $14::boolean[], $15::boolean[], $16::text[], $17::bytea[],
                        $18::timestamptz[], $19::numeric[], $20::text[], $21::numeric[], $22::text[], $23::text[], $24::text[], $25::timestamptz[])
               returning id, merchant_id, method, status, step, held_reason, fee, created_at, sequence),
           told as (
             insert into events (merchant_id, object_id, sequence, type, status, reason, at, data)
               select merchant_id, id, 1, 'payout.' || status, status, r.reason, created_at,
                      jsonb_build_object('shown', jsonb_strip_nulls(jsonb_build_object('fee', fee::text, 'held_reason', held_reason)))
                 from made join unnest($1::text[], $26::text[]) with ordinality as r(id, reason, n) using (id) order by r.n),
           woken as (
             select distinct case when step = 'queued' and not exists (${STILL_QUEUED}) then case method when 'lightning' then '${LIGHTNING_PAYOUT_JOB}' else '${PAYOUT_JOB}' end
                                  when held_reason = 'not_final' then '${HELD_JOB}' end as job from made m)
           select id, sequence, (select count(pg_notify('hurry', job)) from woken where job is not null) from made`,
    values: [
      column(({ payout }) => payout.id),
      column(({ payout }) => payout.merchantId),
      column(({ payout }) => payout.method),
      column(({ payout }) => payout.amountText),
      column(({ payout }) => payout.currency),
      column(({ payout }) => payout.amount),
      column(({ payout }) => payout.feeMax),
      payouts.map(({ destination }) => destination),
      payouts.map(({ script }) => script),
      arrayText(steps.map(({ to }) => to[0])),
      arrayText(steps.map(({ to }) => to[1])),
      column(({ heldReason }) => heldReason),
      column(({ payout }) => payout.usdMinor),
      column(({ payout }) => payout.needsApproval),
      column(({ payout }) => payout.automatic),
      column(({ intent }) => intent.keyId),
      all.map(({ intent }) => intent.signature),
      arrayText(payouts.map(({ createdAtMs }) => new Date(createdAtMs))),
      column(({ payout }) => payout.fee),
      column(({ payout }) => payout.source?.currency ?? null),
      column(({ payout }) => payout.source?.amount ?? null),
      column(({ payout }) => payout.internalTo ?? null),
      column(({ payout }) => payout.paymentHash ?? null),
      column(({ payout }) => payout.paymentRequest ?? null),
      arrayText(payouts.map(({ invoiceExpiresAtMs: at }) => (at == null ? null : new Date(at)))),
      arrayText(steps.map(({ reason }) => reason)),
    ],
  });
  const sequences = new Map(rows.map(({ id, sequence }) => [id, sequence]));
  const unknown = { approvedAtMs: null, batchId: null, error: null, completedAtMs: null, reimburses: null };
  return all.map(({ payout, heldReason }, n) => {
    const [status, step] = steps[n]!.to;
    return { ...payout, ...unknown, status, step, heldReason, sequence: sequences.get(payout.id) ?? 0 };
  });
}

/**
 * Locks a payout until the transaction ends; null when there is none. Its merchant's balances are locked after it, never before.
 * @param wait false: null too when another session holds it
 */
export async function lockPayout(sql: Sql, id: string, { wait }: { readonly wait: boolean }): Promise<PayoutRow | null> {
  const { rows } = await sql.query<Raw>({
    name: wait ? 'lock_payout' : 'lock_free_payout',
    text: `select ${COLUMNS} from payouts where id = $1 for update${wait ? '' : ' skip locked'}`,
    values: [id],
  });
  const [raw] = rows;
  return raw === undefined ? null : fromRaw(raw);
}

/** The balance that pays a payout. */
export function paidFrom({ source, currency }: Pick<RequestedPayout, 'source' | 'currency'>): CurrencyCode {
  // only ach is paid in dollars, and it always has a source
  return source?.currency ?? (currency as CurrencyCode);
}

/** Several payouts, locked in the order of their ids; those that are not there are left out. */
export async function lockPayouts(sql: Sql, ids: readonly string[]): Promise<readonly PayoutRow[]> {
  const { rows } = await sql.query<Raw>({
    name: 'lock_payouts',
    text: `select ${COLUMNS} from payouts where id = any ($1) order by id for update`,
    values: [ids],
  });
  return rows.map(fromRaw);
}

type Moved = Pick<PayoutChange, 'fee' | 'error' | 'heldReason' | 'completedAtMs' | 'reason' | 'givenBack'> & {
  readonly atMs: number;
};

/** Moves a locked payout on by the table of transitions; a change of status is announced. */
export async function movePayout(sql: Sql, before: PayoutRow, event: PayoutEvent, change: Moved): Promise<void> {
  const { atMs, ...more } = change;
  await writePayoutChanges(sql, [{ ...more, payout: before, from: [before.status, before.step], event }], atMs);
}

/** As {@link movePayout}. @returns its row afterwards */
export async function movedPayout(sql: Sql, before: PayoutRow, event: PayoutEvent, change: Moved): Promise<PayoutRow> {
  await movePayout(sql, before, event, change);
  return (await lockPayout(sql, before.id, { wait: true })) as PayoutRow;
}

/** Shows another reason for a payout that stays held. */
export async function setHeldReason(sql: Sql, id: string, reason: HeldReason): Promise<void> {
  await sql.query({
    name: 'set_held_reason',
    text: 'update payouts set held_reason = $2 where id = $1',
    values: [id, reason],
  });
}

/** Records who approved a payout, and the signature that shows it to whoever moves the money; it is looked at again by itself. */
export async function setApproved(
  sql: Sql,
  id: string,
  { by, approval, atMs }: { readonly by: string; readonly approval: Approval | null; readonly atMs: number },
): Promise<void> {
  await sql.query({
    name: 'approve_payout',
    text: 'update payouts set approved_at = $3, approved_by = $2, approval_key = $4, approval = $5 where id = $1',
    values: [id, by, new Date(atMs), approval?.keyId ?? null, approval?.signature ?? null],
  });
}

/** The name of the worker's job that looks at payouts that wait. */
export const HELD_JOB = 'held payouts';

/** Wakes that job of every worker when the transaction is committed. */
export async function wakeHeldJob(sql: Sql): Promise<void> {
  await sql.query({ name: 'wake_held_payouts', text: `select pg_notify('hurry', $1)`, values: [HELD_JOB] });
}

/** A person has said how it ended. */
export async function setResolved(sql: Sql, id: string): Promise<void> {
  await sql.query({ name: 'set_payout_resolved', text: 'update payouts set resolved = true where id = $1', values: [id] });
}

/** Whether a person has said how it ended. */
export async function isResolved(sql: Sql, id: string): Promise<boolean> {
  const { rows } = await sql.query<{ resolved: boolean }>({
    name: 'is_payout_resolved',
    text: 'select resolved from payouts where id = $1',
    values: [id],
  });
  return rows[0]?.resolved === true;
}
