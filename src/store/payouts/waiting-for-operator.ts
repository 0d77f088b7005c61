// What stands against a payout until an operator does something: kept as a dead batch without inputs, to which the payout belongs while it waits.
// When it is tried again the row goes.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

/** It is tried again after as long as it has waited, between these bounds. */
const FIRST = `interval '30 seconds'`;
const LAST = `interval '1 hour'`;
/** What stands in the way of one in a batch is told after this. */
const LONG = `interval '10 minutes'`;

/** @param now as SQL; a time in the future was written by a clock that was fast */
export const dueAgain = (payout: string, now: string): string =>
  `exists (select from outgoing_batches b where b.id = ${payout}.batch_id
            and (b.created_at > ${now} or b.created_at + greatest(${FIRST}, least(${LAST}, b.created_at - ${payout}.created_at)) <= ${now}))`;

/** Writes why a payout waits; its row is locked. */
export async function insertOperatorHold(
  sql: Sql,
  hold: {
    readonly id: string;
    readonly payoutId: string;
    readonly currency: CurrencyCode;
    readonly why: string;
    readonly atMs: number;
  },
): Promise<void> {
  await sql.query({
    name: 'insert_operator_hold',
    text: `with made as (insert into outgoing_batches (id, currency, state, fee_rate, trouble, created_at) values ($1, $3, 'dead', 1, $4, $5) returning id)
           update payouts set batch_id = (select id from made) where id = $2`,
    values: [hold.id, hold.payoutId, hold.currency, hold.why, new Date(hold.atMs)],
  });
}

/** Whether it is time to try a payout again that waits for the operator. */
export async function isDueAgain(sql: Sql, payoutId: string, nowMs: number): Promise<boolean> {
  const { rows } = await sql.query<{ due: boolean }>({
    name: 'operator_hold_due',
    text: `select ${dueAgain('p', '$2::timestamptz')} as due from payouts p where id = $1`,
    values: [payoutId, new Date(nowMs)],
  });
  return rows[0]?.due === true;
}

/** Takes what stood against a payout away; its row is locked. */
export async function dropOperatorHold(sql: Sql, payoutId: string): Promise<void> {
  await sql.query({
    name: 'drop_operator_hold',
    text: `with before as (select id, batch_id from payouts where id = $1 and step in ('held', 'queued')),
           payout as (update payouts p set batch_id = null from before where p.id = before.id)
           delete from outgoing_batches b using before where b.id = before.batch_id and b.state = 'dead'
              and not exists (select from outgoing_attempts a where a.batch_id = b.id)`,
    values: [payoutId],
  });
}

/** A payout that goes on only when a person has done something, when the network's fee falls, or when nodes that contradict each other, or are away, agree. */
export type WaitingPayout = { readonly id: string; readonly why: string };

/** The oldest of those that the operator should know of; one whose merchant's limit asks for an approval is no trouble. */
export async function waitingForOperator(
  sql: Sql,
  { limit, nowMs }: { readonly limit: number; readonly nowMs: number },
): Promise<readonly WaitingPayout[]> {
  const { rows } = await sql.query<WaitingPayout>({
    name: 'waiting_for_operator',
    text: `select id, why from (
           select p.id, case when p.held_reason = 'unknown_outcome' then 'may have been paid already (bursar payout resolve)'
                             when p.step = 'queued' then 'waits for a key: the signer has none in use for ' || p.currency
                             else 'waits: ' || coalesce(b.trouble, l.trouble) end as why, p.created_at
             from payouts p left join outgoing_batches b on b.id = p.batch_id left join lightning_payments l on l.payout_id = p.id
            where p.step in ('held', 'queued')
              and (p.held_reason = 'unknown_outcome' or (p.held_reason = 'approval' and coalesce(b.trouble, l.trouble) is not null)
                   or (p.step = 'queued' and p.script is not null and p.internal_to is null
                       and not exists (select from account_xpubs k where k.currency = p.currency and k.origin = 'signer' and k.retired_at is null and k.confirmed_at is not null)))
           union all
           -- of those that are next in a currency, the oldest
           select q.id, 'waits: ' || f.payouts_wait, q.created_at from fee_rates f
            cross join lateral (select p.id, p.created_at from payouts p where p.step = 'queued' and p.currency = f.currency and p.script is not null and p.internal_to is null
                                 order by p.created_at, p.id limit 1) q
            where f.payouts_wait is not null
           union all
           -- what a block of Ethereum's chain has decided, and our nodes do not say alike; what the signer does not answer; and whatever was not mined for long
           select p.id, 'waits: ' || b.trouble, p.created_at from outgoing_batches b join payouts p on p.batch_id = b.id
            where b.due_at is not null and b.trouble is not null and p.step = 'batched'
              and (b.created_at <= $2::timestamptz - ${LONG} or b.state = 'reserved'
                   or (b.tip is not null and exists (select from outgoing_inputs i where i.batch_id = b.id and i.spent_by is not null)))
            ) w order by created_at, id limit $1`,
    values: [limit, new Date(nowMs)],
  });
  return rows;
}

/** Whether it needs an operator's approval and no API has signed one: a copy of the database may be older than that. */
export async function lacksApproval(sql: Sql, payoutId: string): Promise<boolean> {
  const { rows } = await sql.query<{ lacks: boolean }>({
    name: 'lacks_approval',
    text: 'select needs_approval and approval is null as lacks from payouts where id = $1',
    values: [payoutId],
  });
  return rows[0]?.lacks === true;
}
