// Which payments our own node reports as locked (Dash: InstantSend, ChainLocks): the one fact that the chain's blocks and mempool do not
// show.

import type { BlockRef } from '../../core/block-ref.ts';
import type { CurrencyCode } from '../../core/currency.ts';
import type { ChainLock } from '../../core/ports.ts';
import type { Sql } from '../postgres/connect.ts';
import { inParts } from '../postgres/in-parts.ts';
import { ROWS_AT_ONCE } from '../postgres/row-ids.ts';
import { makeDue } from './sightings.ts';

export type LockFact = {
  readonly id: bigint;
  readonly transactionId: string;
  readonly txid: string;
  readonly lock: ChainLock | null;
};

/**
 * The transactions whose lock can still change something, with the locks that their payments have: in the mempool, or above a height and
 * without the lock of their block.
 */
export async function readLockable(
  sql: Sql,
  currency: CurrencyCode,
  aboveHeight: number,
): Promise<readonly Pick<LockFact, 'txid' | 'lock'>[]> {
  const { rows } = await sql.query<Pick<LockFact, 'txid' | 'lock'>>({
    name: 'read_lockable',
    text: `select txid, lock from payments where currency = $1 and state = 'mempool'
             union
           select txid, lock from payments where currency = $1 and height > $2 and lock is distinct from 'chainlock'`,
    values: [currency, aboveHeight],
  });
  return rows;
}

/** The payments of these transactions that are in the mempool or in a block, with their locks. */
export async function readLocksOf(sql: Sql, currency: CurrencyCode, txids: readonly string[]): Promise<readonly LockFact[]> {
  const { rows } = await sql.query<{ id: bigint; transaction_id: string; txid: string; lock: ChainLock | null }>({
    name: 'read_locks_of',
    text: `select id, transaction_id, txid, lock from payments
            where currency = $1 and txid = any ($2) and state in ('mempool', 'mined') order by id`,
    values: [currency, txids],
  });
  return rows.map((row) => ({ id: row.id, transactionId: row.transaction_id, txid: row.txid, lock: row.lock }));
}

/**
 * Writes locks as they are now, and makes the transactions due for the judge. A payment that has left, or that another txid has taken over
 * meanwhile, is not changed.
 */
export async function recordLocks(sql: Sql, facts: readonly LockFact[]): Promise<void> {
  await makeDue(
    sql,
    facts.map((fact) => fact.transactionId),
  );
  const inOrder = facts.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  await inParts(inOrder, ROWS_AT_ONCE, async (part) => {
    await sql.query({
      name: 'record_locks',
      text: `with locked as materialized (select id from payments where id = any ($1) order by id for no key update)
             update payments p set lock = f.lock from unnest($1::int8[], $2::text[], $3::text[]) as f(id, txid, lock)
              where p.id = f.id and p.txid = f.txid and p.state in ('mempool', 'mined') and f.id in (select id from locked)`,
      values: [part.map((fact) => fact.id), part.map((fact) => fact.txid), part.map((fact) => fact.lock)],
    });
  });
}

/**
 * Marks the payments in or below a block of the best chain that the chain's own consensus calls final (Ethereum's `finalized`), and makes
 * their transactions due. Does nothing when our best chain has another block there.
 */
export async function lockFinalized(sql: Sql, currency: CurrencyCode, final: BlockRef): Promise<number> {
  const { rows } = await sql.query<{ transaction_id: string }>({
    name: `lock_finalized_${currency}`,
    // the currency is part of the text, so that the planner sees that the index of unfinalized payments holds all of them
    text: `with open as materialized (
             select id from payments
              where currency = '${currency}' and state = 'mined' and lock is null and height <= $1
                and exists (select 1 from blocks where currency = '${currency}' and height = $1 and hash = $2)
              order by id limit ${ROWS_AT_ONCE} for no key update)
           update payments set lock = 'chainlock' where id in (select id from open) returning transaction_id`,
    values: [final.height, final.hash],
  });
  await makeDue(
    sql,
    rows.map((row) => row.transaction_id),
  );
  return rows.length;
}

/** Whether payments in or below a height wait until their block is final. */
export async function isUnfinalizedUpTo(sql: Sql, currency: CurrencyCode, height: number): Promise<boolean> {
  const { rows } = await sql.query({
    name: `is_unfinalized_${currency}`,
    text: `select 1 from payments where currency = '${currency}' and state = 'mined' and lock is null and height <= $1 limit 1`,
    values: [height],
  });
  return rows.length > 0;
}
