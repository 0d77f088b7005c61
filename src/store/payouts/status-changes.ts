// Writes what events have made of payouts, many at once: status and step, what became known with it, and one row of history for each change of
// status or announcement. The caller has locked the rows.
import {
  type HeldReason,
  type PayoutEvent,
  type PayoutStatus,
  type PayoutStep,
  payoutTransition,
} from '../../core/payouts/states.ts';
import type { Sql } from '../postgres/connect.ts';
import { TRACE, TXID } from './reads.ts';

export type PayoutChange = {
  /** `reimburses`: a transaction; no merchant sees the history of a reimbursement. */
  readonly payout: {
    readonly id: string;
    readonly merchantId: bigint;
    readonly sequence: number;
    readonly reimburses?: string | null;
  };
  readonly from: readonly [PayoutStatus, PayoutStep];
  readonly event: PayoutEvent;
  /** Minor units: what it has cost the merchant, once that is known. */
  readonly fee?: bigint;
  /** Why it failed. */
  readonly error?: string;
  /** Why it waits now; what is absent stays while it waits. */
  readonly heldReason?: HeldReason;
  /** For the history, instead of the table's text. */
  readonly reason?: string;
  /** ach: what came back into the balance that had paid it, in its minor units. */
  readonly givenBack?: bigint;
  /** When it was completed. */
  readonly completedAtMs?: number;
};

/**
 * Writes changes of payouts by the table of transitions, with the event of each new status (a reimbursement has none). Throws where the
 * table has no row for a change.
 */
export async function writePayoutChanges(sql: Sql, changes: readonly PayoutChange[], atMs: number): Promise<void> {
  if (changes.length === 0) return;
  const rows = changes.map((change) => {
    const { to, reason } = payoutTransition(change.from, change.event);
    return {
      ...change,
      status: to[0],
      step: to[1],
      reason: change.reason ?? change.error ?? reason,
      isAnnounced: change.from[0] !== to[0] && (change.payout.reimburses ?? null) === null,
      isDisplaced: change.event === 'displaced',
    };
  });
  await sql.query({
    name: 'write_payout_changes',
    text: `with changes as (
             select * from unnest($1::text[], $2::text[], $3::text[], $4::numeric[], $5::text[], $6::timestamptz[], $7::bool[], $8::text[], $9::numeric[], $10::bool[])
               as t(id, status, step, fee, error, completed_at, is_announced, held_reason, given_back, is_displaced))
           update payouts p set status = c.status, step = c.step, fee = coalesce(c.fee, p.fee), error = case when c.status = 'failed' then coalesce(c.error, p.error) end,
                  completed_at = coalesce(c.completed_at, p.completed_at), held_reason = case when c.step = 'held' then coalesce(c.held_reason, p.held_reason) end,
                  given_back = case when c.status = 'failed' then coalesce(c.given_back, p.given_back) end, kept = case when c.status <> 'failed' then p.kept end, sequence = p.sequence + c.is_announced::int,
                  noted = p.noted and not c.is_displaced
             from changes c where p.id = c.id`,
    values: [
      rows.map((row) => row.payout.id),
      rows.map((row) => row.status),
      rows.map((row) => row.step),
      rows.map((row) => row.fee ?? null),
      rows.map((row) => row.error ?? null),
      rows.map((row) => (row.completedAtMs === undefined ? null : new Date(row.completedAtMs).toISOString())),
      rows.map((row) => row.isAnnounced),
      rows.map((row) => row.heldReason ?? null),
      rows.map((row) => row.givenBack ?? null),
      rows.map((row) => row.isDisplaced),
    ],
  });
  await insertPayoutEvents(
    sql,
    rows
      .filter((row) => row.isAnnounced)
      .map((row) => ({
        payout: row.payout,
        type: `payout.${row.status}`,
        status: row.status,
        previous: row.from[0],
        reason: row.reason ?? row.event,
      })),
    atMs,
  );
}

/** Writes what of a payout has left and not arrived, in minor units, once its block is final; null: all of it has arrived. Its row is locked. */
export async function noteKept(sql: Sql, payoutId: string, kept: bigint | null): Promise<void> {
  await sql.query({
    name: 'note_kept',
    text: 'update payouts set kept = $2 where id = $1 and kept is distinct from $2',
    values: [payoutId, kept],
  });
}

export type PayoutEventRow = {
  readonly payout: PayoutChange['payout'];
  /** `payout.<status>`, `payout.reorged` or `payout.returned`. */
  readonly type: string;
  readonly status: PayoutStatus;
  readonly previous: PayoutStatus | null;
  readonly reason: string;
};

/** SQL of what an event shows of its payout besides what never changes (store/deliveries/events.ts). */
const SHOWN = `jsonb_build_object('shown', jsonb_strip_nulls(jsonb_build_object(
    'fee', p.fee::text, 'txid', ${TXID}, 'trace', ${TRACE}, 'error', p.error, 'held_reason', p.held_reason,
    'completed_ms', (extract(epoch from p.completed_at) * 1000)::bigint)))`;

/** One row of history each, numbered after the payout's `sequence`. */
export async function insertPayoutEvents(sql: Sql, events: readonly PayoutEventRow[], atMs: number): Promise<void> {
  if (events.length === 0) return;
  await sql.query({
    name: 'insert_payout_events',
    text: `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at, data)
             select t.*, $8, ${SHOWN} from unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[])
               as t (merchant_id, object_id, sequence, type, status, previous, reason) join payouts p on p.id = t.object_id`,
    values: [
      events.map((event) => event.payout.merchantId),
      events.map((event) => event.payout.id),
      events.map((event) => event.payout.sequence + 1),
      events.map((event) => event.type),
      events.map((event) => event.status),
      events.map((event) => event.previous),
      events.map((event) => event.reason),
      new Date(atMs),
    ],
  });
}

/** Announces something that is no change of status: the history's next number is taken. */
export async function announcePayouts(sql: Sql, all: readonly PayoutEventRow[], atMs: number): Promise<void> {
  const events = all.filter(({ payout }) => (payout.reimburses ?? null) === null);
  if (events.length === 0) return;
  await sql.query({
    name: 'count_payout_events',
    text: 'update payouts set sequence = sequence + 1 where id = any ($1)',
    values: [events.map((event) => event.payout.id)],
  });
  await insertPayoutEvents(sql, events, atMs);
}
