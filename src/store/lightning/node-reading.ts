// The state of our Lightning node, and up to when everything that it knew was read. It has the rows of a chain of one block: the same code then
// reads times, depths and what is due for every way to pay.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { LightningCondition } from '../../core/lightning/port.ts';
import type { Sql } from '../postgres/connect.ts';
import { SETTLED_HASH, SETTLED_HEIGHT } from './invoices.ts';

/** Records what the node says of itself now. */
export async function recordLightning(sql: Sql, condition: LightningCondition, atMs: number): Promise<void> {
  await sql.query({
    name: 'record_lightning',
    text: `
      insert into node_conditions (currency, state, reason, checked_at, looked_at, outage, pushes)
        values ('${LIGHTNING.code}', $1, $2, $3, clock_timestamp(), false, $1 = 'ready')
        on conflict (currency) do update set state = excluded.state, reason = excluded.reason, checked_at = excluded.checked_at,
          looked_at = excluded.looked_at, pushes = excluded.pushes`,
    values: [condition.state, condition.state === 'ready' ? null : condition.reason, new Date(atMs)],
  });
}

/** The first look at a node: from now on its invoices are read. */
export async function beginLightning(sql: Sql, atMs: number): Promise<void> {
  await sql.query({
    name: 'begin_lightning',
    text: `
      with begun as (
        insert into chain_cursors (currency, height, hash, caught_up_at, deep_height, updated_at)
          values ('${LIGHTNING.code}', ${SETTLED_HEIGHT}, '${SETTLED_HASH}', $1, ${SETTLED_HEIGHT}, $1) on conflict (currency) do nothing returning 1)
      insert into blocks (currency, height, hash, previous, time)
        select '${LIGHTNING.code}', ${SETTLED_HEIGHT}, '${SETTLED_HASH}', '', timestamptz 'epoch' from begun`,
    values: [new Date(atMs)],
  });
}

/**
 * Everything that was due at the node at this time was done: no invoice whose window had ended can be paid any more; and the node was looked
 * at, and is what it was recorded to be. Wakes the judge where something has fallen due by that.
 */
export async function setLightningRead(sql: Sql, atMs: number): Promise<void> {
  await sql.query({
    name: 'set_lightning_read',
    text: `
      with moved as (
        update chain_cursors set caught_up_at = $1, updated_at = $1 where currency = '${LIGHTNING.code}' returning 1),
      looked as (
        update node_conditions set checked_at = $1, looked_at = clock_timestamp() from moved where currency = '${LIGHTNING.code}' returning 1)
      select (select pg_notify('judge', '${LIGHTNING.code}')
               where exists (select 1 from transactions where currency = '${LIGHTNING.code}' and due_at <= $1)) from moved`,
    values: [new Date(atMs)],
  });
}
