// Our own clock was set: what waits for a time of a chain is dated anew, so that it waits for as long as it would have. Called by the chain's
// watcher (worker/own-clock.ts) before it goes on.
import type { UtxoCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

/** After the end of its window a payment is on time for so long at most (see core/judge): then nothing waits for it any more. */
const GRACE = '61 seconds';

/**
 * Moves the times of one chain, and of all transactions in its currency, that something waits for. When a transaction was created and what was
 * told of it stays as it was told.
 * @param set.byMs how far the clock was set: below zero back
 * @param set.nowMs the time since then
 * @param set.sinceMs since when the clock may have been set, in the time since then: what is dated between the two may be dated on the new
 *   clock already, and stays. Null = nobody knows: then only what is dated in time to come is moved.
 */
export async function setAlong(
  sql: Sql,
  currency: UtxoCode,
  set: { readonly byMs: number; readonly nowMs: number; readonly sinceMs: number | null },
): Promise<void> {
  const values = [currency, set.byMs];
  // the chain's lock first, then transactions, then payments, as everybody takes them
  await sql.query({
    name: 'set_cursor_along',
    text: `update chain_cursors set caught_up_at = caught_up_at + $2 * interval '1 ms' where currency = $1`,
    values,
  });
  await sql.query({
    name: 'set_condition_along',
    text: `update node_conditions set checked_at = checked_at + $2 * interval '1 ms' where currency = $1`,
    values,
  });
  const dated = [...values, new Date(set.nowMs), set.sinceMs === null ? null : new Date(set.sinceMs)];
  const isOld = (at: string) => `(${at} > $3 or ${at} < $4)`;
  await sql.query({
    name: 'set_transactions_along',
    text: `
      with waiting as materialized (
        select id from transactions
          where currency = $1 and case when status = 'succeeded' then ${isOld('succeeded_at')} else ${isOld('created_at')} end
            and (status in ('started', 'pending', 'timedout', 'succeeded') or window_ends_at > least($3, $3 - $2 * interval '1 ms') - interval '${GRACE}')
          order by id for no key update)
      update transactions t set window_ends_at = window_ends_at + $2 * interval '1 ms', succeeded_at = succeeded_at + $2 * interval '1 ms',
             due_at = due_at + $2 * interval '1 ms'
        from waiting w where t.id = w.id`,
    values: dated,
  });
  // these the watchers date, and none has since the clock was set, unless it was set in the middle of a pass
  await sql.query({
    name: 'set_payments_along',
    text: `
      with waiting as materialized (
        select id from payments
          where currency = $1 and ((state = 'gone' and ($4::timestamptz is null or ${isOld('gone_since')}))
                                or (noticed_at is null and ($4::timestamptz is null or ${isOld('seen_at')})))
          order by id for no key update)
      update payments p set gone_since = gone_since + $2 * interval '1 ms', due_at = due_at + $2 * interval '1 ms',
             seen_at = case when noticed_at is null then seen_at + $2 * interval '1 ms' else seen_at end,
             caught_up_at = case when noticed_at is null then caught_up_at + $2 * interval '1 ms' else caught_up_at end
        from waiting w where p.id = w.id`,
    values: dated,
  });
}
