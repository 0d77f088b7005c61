// When our own clock was set: whatever waits for a time of a chain gets a new date, so that it waits as long as it would have.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { PaymentMethod } from '../../core/currency.ts';
import { GRACE_MS } from '../../core/judge/times.ts';
import type { Sql } from '../postgres/connect.ts';
import { inParts } from '../postgres/in-parts.ts';
import { inIdParts, ROWS_AT_ONCE, readIds } from '../postgres/row-ids.ts';

/** Nothing waits for a window any more once its grace has passed; one second more than that. */
const GRACE = `${GRACE_MS + 1_000} ms`;

/**
 * Moves the times of one chain, and of all transactions in its currency, that something waits for. The creation time of a transaction, and
 * what was already reported, stay.
 * @param set.byMs how far the clock was set: negative = back
 * @param set.nowMs the time now, on the set clock
 * @param set.sinceMs the earliest moment, on the set clock, at which it may have been set: dates between this and now may already be from
 * the set
 *   clock, and stay. Null = unknown: then only dates in the future are moved
 */
export async function moveWaitingTimes(
  sql: Sql,
  currency: PaymentMethod,
  set: { readonly byMs: number; readonly nowMs: number; readonly sinceMs: number | null },
): Promise<void> {
  const values = [currency, set.byMs];
  await sql.query({
    name: 'note_clock_setting',
    text: 'insert into clock_settings (currency, by_ms) values ($1, $2)',
    // measured with fractions of a millisecond
    values: [currency, Math.round(set.byMs)],
  });
  // the chain's lock first, then transactions, then payments: the order of all writers
  await sql.query({
    name: 'move_cursor_time',
    text: `update chain_cursors set caught_up_at = caught_up_at + $2 * interval '1 ms' where currency = $1`,
    values,
  });
  await sql.query({
    name: 'move_trouble_time',
    text: `update chain_reconciled set trouble_counts_from = trouble_counts_from + $2 * interval '1 ms' where currency = $1 and trouble is not null`,
    values,
  });
  await sql.query({
    name: 'move_condition_time',
    text: `update node_conditions set checked_at = checked_at + $2 * interval '1 ms' where currency = $1`,
    values,
  });
  // Both in slices, in the order of their ids; each slice asks again what waits, because the judge goes on meanwhile.
  const dates = [new Date(set.nowMs), set.sinceMs === null ? null : new Date(set.sinceMs)];
  const isOld = (at: string) => `(${at} > $2 or ${at} < $3)`;
  const isOpen = `case when status = 'succeeded' then ${isOld('succeeded_at')} else ${isOld('created_at')} end
            and (status in ('started', 'pending', 'timedout', 'succeeded') or window_ends_at > least($2, $2 - $4 * interval '1 ms') - interval '${GRACE}')`;
  // in the other statuses a time is only the next look for a price
  const wantsPrice = `(status not in ('started', 'pending', 'timedout', 'succeeded') and due_at > $2)`;
  const { rows } = await sql.query<{ ids: readonly string[] | null }>({
    text: `select array_agg(id order by id) as ids from transactions where currency = $1 and ((${isOpen}) or ${wantsPrice})`,
    values: [currency, ...dates, set.byMs],
  });
  await inParts(rows[0]?.ids ?? [], ROWS_AT_ONCE, async (part) => {
    await sql.query({
      name: 'move_transaction_times',
      text: `with waiting as materialized (
               select id, (${isOpen}) as is_open from transactions where id = any ($1) and ((${isOpen}) or ${wantsPrice}) order by id for no key update)
             update transactions t set window_ends_at = window_ends_at + w.by, succeeded_at = succeeded_at + w.by,
                    due_at = case when is_open then due_at + w.by else $2 end
               from (select id, is_open, case when is_open then $4 * interval '1 ms' else interval '0' end as by from waiting) w where t.id = w.id`,
      values: [part, ...dates, set.byMs],
    });
  });
  if (currency === LIGHTNING.code) {
    // the node keeps to the end that it was told, on its own clock; this is when we ask it whether it is over
    await sql.query({
      name: 'set_invoices_along',
      text: `with waiting as materialized (select payment_hash from lightning_invoices where state in ('reserved', 'open') and (created_at > $1 or created_at < $2) order by 1 for no key update)
             update lightning_invoices i set window_ends_at = window_ends_at + $3 * interval '1 ms' from waiting w where i.payment_hash = w.payment_hash`,
      values: [...dates, set.byMs],
    });
  }
  // the watchers write these dates, and have written none since the clock was set, unless it was set in the middle of a pass; what no price
  // was known for is valued by the first one after it was seen
  const isGone = `(state = 'gone' and ($3::timestamptz is null or ${isOld('gone_since')}))`;
  const isSeen = `((noticed_at is null and ($3::timestamptz is null or ${isOld('seen_at')})) or (value_rate is null and seen_at > $2))`;
  const isWaiting = `(${isGone} or ${isSeen})`;
  const waiting = await readIds(sql, {
    text: `select id from payments where currency = $1 and ${isWaiting}`,
    values: [currency, ...dates],
  });
  await inIdParts(waiting, (part) =>
    sql.query({
      name: 'move_payment_times',
      text: `with waiting as materialized (select id from payments where id = any ($1) and ${isWaiting} order by id for no key update)
             update payments p set gone_since = case when ${isGone} then gone_since + $4 * interval '1 ms' else gone_since end, due_at = due_at + $4 * interval '1 ms',
                    seen_at = case when ${isSeen} then seen_at + $4 * interval '1 ms' else seen_at end,
                    caught_up_at = case when ${isSeen} then caught_up_at + $4 * interval '1 ms' else caught_up_at end
               from waiting w where p.id = w.id`,
      values: [part, ...dates, set.byMs],
    }),
  );
}
