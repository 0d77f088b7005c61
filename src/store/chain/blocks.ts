// How far each chain was read, and the headers of its best chain as we saw them. The row of chain_cursors is the lock of a chain: whoever
// writes facts about the chain locks that row first.
import type { CurrencyCode, PaymentMethod } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';
import { inIdParts, packedIds, type RowIds } from '../postgres/row-ids.ts';

export type ChainCursor = {
  readonly height: number;
  readonly hash: string;
  readonly caughtUpAtMs: number;
  /** Counts changes of height and hash, and of the watcher. */
  readonly epoch: bigint;
  /** Up to this height every output was compared with all addresses. */
  readonly deepHeight: number;
};
export type BlockRow = { readonly height: number; readonly hash: string; readonly previousHash: string; readonly timeMs: number };

/** Another watcher has moved the cursor since it was read: nothing was written, and the pass starts again. */
export class CursorMoved extends Error {}

type RawCursor = { height: number; hash: string; caught_up_at: Date; epoch: bigint; deep_height: number };
const CURSOR = 'select height, hash, caught_up_at, epoch, deep_height from chain_cursors where currency = $1';

/** Up to which block a chain is recorded; null before the first start on it. */
export async function readCursor(sql: Sql, currency: PaymentMethod): Promise<ChainCursor | null> {
  const { rows } = await sql.query<RawCursor>({ name: 'read_cursor', text: CURSOR, values: [currency] });
  return cursorOf(rows[0]);
}

/**
 * Locks the chain for facts that do not move the cursor, wherever it stands: waits for whoever is moving it.
 * @returns the cursor as it is then; null before the first start on the chain
 */
export async function lockCursor(sql: Sql, currency: CurrencyCode): Promise<ChainCursor | null> {
  const { rows } = await sql.query<RawCursor>({ name: 'lock_cursor', text: `${CURSOR} for no key update`, values: [currency] });
  return cursorOf(rows[0]);
}

function cursorOf(row: RawCursor | undefined): ChainCursor | null {
  if (row === undefined) return null;
  return {
    height: row.height,
    hash: row.hash,
    caughtUpAtMs: row.caught_up_at.getTime(),
    epoch: row.epoch,
    deepHeight: row.deep_height,
  };
}

/** The first start on a chain: nothing at or below this block can be ours. Does nothing when there is a cursor already. */
export async function beginCursor(sql: Sql, currency: CurrencyCode, tip: BlockRow, atMs: number): Promise<void> {
  const { rowCount } = await sql.query({
    name: 'begin_cursor',
    text: `insert into chain_cursors (currency, height, hash, caught_up_at, deep_height, updated_at)
             values ($1, $2, $3, $4, $2, $4) on conflict (currency) do nothing`,
    values: [currency, tip.height, tip.hash, new Date(atMs)],
  });
  if (rowCount === 1) await insertBlocks(sql, currency, [tip]);
}

/** Moves the cursor if it still stands where it was read. @throws CursorMoved */
export async function moveCursor(sql: Sql, currency: CurrencyCode, from: ChainCursor, to: BlockRow, atMs: number): Promise<void> {
  const { rowCount } = await sql.query({
    name: 'move_cursor',
    // a pass of many blocks may take long: each move is a sign that somebody looks at the node
    text: `
      with moved as (
        update chain_cursors set height = $3, hash = $4, epoch = epoch + 1, updated_at = $5, low_height = least(low_height, height, $3)
          where currency = $1 and epoch = $2 returning currency),
      looked as (update node_conditions n set looked_at = clock_timestamp() from moved where n.currency = moved.currency returning 1)
      select from moved`,
    values: [currency, from.epoch, to.height, to.hash, new Date(atMs)],
  });
  if (rowCount !== 1) throw new CursorMoved(`the cursor of ${currency} has moved`);
}

/** A watcher takes over where another one may still be running: whatever that one has read, it can no longer write. @throws CursorMoved */
export async function claimCursor(sql: Sql, currency: CurrencyCode, at: ChainCursor): Promise<ChainCursor> {
  const { rowCount } = await sql.query({
    name: 'claim_cursor',
    text: 'update chain_cursors set epoch = epoch + 1 where currency = $1 and epoch = $2',
    values: [currency, at.epoch],
  });
  if (rowCount !== 1) throw new CursorMoved(`the cursor of ${currency} has moved`);
  return { ...at, epoch: at.epoch + 1n };
}

/** Locks the chain for facts that were read at this cursor and do not move it. @throws CursorMoved */
export async function holdCursor(sql: Sql, currency: CurrencyCode, at: ChainCursor): Promise<void> {
  const { rowCount } = await sql.query({
    name: 'hold_cursor',
    text: 'select 1 from chain_cursors where currency = $1 and epoch = $2 for no key update',
    values: [currency, at.epoch],
  });
  if (rowCount !== 1) throw new CursorMoved(`the cursor of ${currency} has moved`);
}

/**
 * Everything that the node knew at this time has been read; false when the cursor has moved meanwhile. The time since the chain was last
 * read to its end (as the cursor says, which may be later than what was written) does not count as time for which a payment was gone if, at
 * some moment of it, the node was not usable or was below the height where that payment was last seen. Wakes the judge where something has
 * fallen due by the chain's time.
 */
export async function setCaughtUp(sql: Sql, currency: CurrencyCode, at: ChainCursor, atMs: number): Promise<boolean> {
  const { rows } = await sql.query<{ before: Date; waited: RowIds | null }>({
    name: 'set_caught_up',
    text: `
      with before as materialized (
        select greatest(caught_up_at, $4) as caught_up_at, least(low_height, height) as low_height from chain_cursors where currency = $1 and epoch = $2 for update),
      over as (update node_conditions n set outage = false from before where n.currency = $1 and n.outage returning 1),
      moved as (
        update chain_cursors c set caught_up_at = $3, updated_at = $3, low_height = null
          from before b where c.currency = $1 and c.epoch = $2 returning 1)
      select b.caught_up_at as before, ${packedIds(`
        select p.id from payments p
          where p.currency = $1 and p.state = 'gone' and greatest(p.gone_since, b.caught_up_at) < $3
            and (exists (select 1 from over) or b.low_height < p.last_height)`)} as waited,
             (select pg_notify('judge', $1)
               where exists (select 1 from transactions where currency = $1 and due_at <= $3)
                  or exists (select 1 from payments where currency = $1 and due_at <= $3)) as woken
        from before b cross join moved`,
    values: [currency, at.epoch, new Date(atMs), new Date(at.caughtUpAtMs)],
  });
  const [was] = rows;
  if (was === undefined) return false;
  await inIdParts(was.waited, (part) =>
    sql.query({
      name: 'set_gone_since',
      text: `with waited as materialized (select id from payments where id = any ($1) and state = 'gone' order by id for no key update)
             update payments p set gone_since = $2::timestamptz - greatest($3::timestamptz - p.gone_since, interval '0')
              where p.id in (select id from waited)`,
      values: [part, new Date(atMs), was.before],
    }),
  );
  return true;
}

/**
 * Nothing has changed since the chain was last read to its end: only the chain's time and the time of the last look at its node advance.
 * @returns whether it is so: not when the cursor has moved meanwhile; and the file of the table of transactions, as packNewScripts
 */
export async function goOn(
  sql: Sql,
  currency: CurrencyCode,
  at: ChainCursor,
  atMs: number,
  options: { readonly wakesJudge: boolean; readonly pushes: boolean },
): Promise<{ readonly done: boolean; readonly relation: string }> {
  const { rows } = await sql.query<{ done: boolean; relation: string }>({
    name: 'go_on',
    text: `
      with still as (
        update chain_cursors set caught_up_at = $3, updated_at = $3 where currency = $1 and epoch = $2 returning currency),
      looked as (update node_conditions n set checked_at = $3, looked_at = clock_timestamp(), pushes = $5 from still where n.currency = still.currency returning 1)
      select exists (select 1 from still) as done, pg_relation_filenode('transactions')::text as relation, (select pg_notify('judge', $1) from still where $4)`,
    values: [currency, at.epoch, new Date(atMs), options.wakesJudge, options.pushes],
  });
  return rows[0] as (typeof rows)[number];
}

/** Adds blocks to the recorded chain, lowest first; a second one of the same height is an error of the database. */
export async function insertBlocks(sql: Sql, currency: CurrencyCode, blocks: readonly BlockRow[]): Promise<void> {
  await sql.query({
    name: 'insert_blocks',
    text: `insert into blocks (currency, height, hash, previous, time)
             select $1, height, hash, previous, time from unnest($2::int[], $3::text[], $4::text[], $5::timestamptz[]) as b(height, hash, previous, time)`,
    values: [
      currency,
      blocks.map((block) => block.height),
      blocks.map((block) => block.hash),
      blocks.map((block) => block.previousHash),
      blocks.map((block) => new Date(block.timeMs)),
    ],
  });
}

/** Deletes the blocks of a lost branch; the deep scan restarts where the branches part. */
export async function deleteBlocksAbove(sql: Sql, currency: CurrencyCode, height: number): Promise<void> {
  await sql.query({
    name: 'delete_blocks_above',
    text: 'delete from blocks where currency = $1 and height > $2',
    values: [currency, height],
  });
  await sql.query({
    name: 'delete_unconfirmed_blocks_above',
    text: 'delete from unconfirmed_blocks where currency = $1 and height > $2',
    values: [currency, height],
  });
  await sql.query({
    name: 'deep_height_back',
    text: 'update chain_cursors set deep_height = $2 where currency = $1 and deep_height > $2',
    values: [currency, height],
  });
}

/** Hashes of the best chain as we saw it, from a height downwards. */
export async function hashesDown(
  sql: Sql,
  currency: CurrencyCode,
  fromHeight: number,
  limit: number,
): Promise<readonly { readonly height: number; readonly hash: string }[]> {
  const { rows } = await sql.query<{ height: number; hash: string }>({
    name: 'hashes_down',
    text: 'select height, hash from blocks where currency = $1 and height <= $2 order by height desc limit $3',
    values: [currency, fromHeight, limit],
  });
  return rows;
}

/**
 * Every block up to the last of these was compared with all addresses, if each is still the one that was read and they follow those before.
 * @param blocks in their order, at least one
 */
export async function setDeepHeight(
  sql: Sql,
  currency: CurrencyCode,
  blocks: readonly { readonly height: number; readonly hash: string }[],
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'set_deep_height',
    text: `update chain_cursors c set deep_height = c.deep_height + cardinality($3::text[])
             where c.currency = $1 and c.deep_height = $2 - 1
               and not exists (
                 select from unnest($3::text[]) with ordinality as read(hash, nth)
                  where not exists (select from blocks b where b.currency = $1 and b.height = $2 + nth - 1 and b.hash = read.hash offset 0))`,
    values: [currency, blocks[0]?.height, blocks.map((block) => block.hash)],
  });
  return rowCount === 1;
}

/** The blocks of the best chain dated at or after a time, lowest first. */
export async function blocksSince(
  sql: Sql,
  currency: CurrencyCode,
  sinceMs: number,
): Promise<readonly { readonly height: number; readonly hash: string }[]> {
  const { rows } = await sql.query<{ height: number; hash: string }>({
    name: 'blocks_since',
    text: 'select height, hash from blocks where currency = $1 and time >= $2 order by height',
    values: [currency, new Date(sinceMs)],
  });
  return rows;
}

/** Whether a block is on the best chain as it was read; it stays there until the database transaction ends. */
export async function isInChain(
  sql: Sql,
  currency: CurrencyCode,
  block: { readonly height: number; readonly hash: string },
): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'is_in_chain',
    text: 'select 1 from blocks where currency = $1 and height = $2 and hash = $3 for key share',
    values: [currency, block.height, block.hash],
  });
  return rows.length > 0;
}

/** The height of a block of the best chain; null when no such block was read. */
export async function heightOf(sql: Sql, currency: CurrencyCode, hash: string): Promise<number | null> {
  const { rows } = await sql.query<{ height: number }>({
    name: 'height_of_block',
    text: 'select height from blocks where currency = $1 and hash = $2',
    values: [currency, hash],
  });
  return rows[0]?.height ?? null;
}
