// What a second reading of the chains found at our addresses, block by block at final depth, independently of what the watchers recorded.
// The audit compares it with payments and ledger.

import type { BlockRef } from '../../core/block-ref.ts';
import type { CurrencyCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';
import { CursorMoved } from './blocks.ts';
import { noteEarly } from './early-payments.ts';

export type Reconciled = {
  /** Nothing at or below this block is read. */
  readonly fromHeight: number;
  /** The last block that was read, with its hash. */
  readonly height: number;
  readonly hash: string;
  /** Why the second reading cannot continue although the node answers; null while it can. */
  readonly trouble: string | null;
};
export type Receipt = {
  readonly txid: string;
  readonly vout: number;
  readonly amount: bigint;
  readonly coinbase: boolean;
  readonly transactionId: string;
};
/** After a reorganisation deeper than this the second reading restarts from the beginning. */
const KEPT_BLOCKS = 2_000;

/** How far the second reading of a chain has come; null before it began. */
export async function readReconciled(sql: Sql, currency: CurrencyCode): Promise<Reconciled | null> {
  const { rows } = await sql.query<{ from_height: number; height: number; hash: string; trouble: string | null }>({
    name: 'read_reconciled',
    text: 'select from_height, height, hash, trouble from chain_reconciled where currency = $1',
    values: [currency],
  });
  const row = rows[0];
  return row === undefined ? null : { fromHeight: row.from_height, height: row.height, hash: row.hash, trouble: row.trouble };
}

/**
 * Records why the second reading cannot continue, or (null) that it can.
 * @param trouble `lastsMs`: after how long on the chain's clock the audit names it; what was recorded before may count earlier, unless it was read on since
 */
export async function setReconciledTrouble(
  sql: Sql,
  currency: CurrencyCode,
  trouble: { readonly reason: string; readonly lastsMs: number; readonly wasReadOn: boolean } | null,
): Promise<void> {
  await sql.query({
    name: 'set_reconciled_trouble',
    // a clock that is set at this moment moves both
    text: `with k as materialized (select caught_up_at from chain_cursors where currency = $1 for share)
           update chain_reconciled set trouble = $2,
                  trouble_counts_from = case when $2::text is not null
                    then least(case when not $4 then trouble_counts_from end, (select caught_up_at from k) + $3 * interval '1 ms') end
            where currency = $1`,
    values: [currency, trouble?.reason ?? null, trouble?.lastsMs ?? 0, trouble?.wasReadOn ?? false],
  });
}

/** Begins where the watchers began: nothing at or below that block can be ours. Does nothing when it has begun already, or no block is known. */
export async function beginReconciled(sql: Sql, currency: CurrencyCode, atMs: number): Promise<void> {
  await sql.query({
    name: 'begin_reconciled',
    text: `with begun as (
             insert into chain_reconciled (currency, from_height, height, hash, updated_at)
               select currency, height, height, hash, $2 from blocks where currency = $1 order by height limit 1
               on conflict (currency) do nothing returning currency, height, hash)
           insert into chain_reconciled_blocks (currency, height, hash) select currency, height, hash from begun`,
    values: [currency, new Date(atMs)],
  });
}

/** Records what the next block holds for us, in an open transaction. @throws CursorMoved when another process has read on meanwhile */
export async function addReceipts(
  sql: Sql,
  currency: CurrencyCode,
  change: { readonly after: BlockRef; readonly block: BlockRef; readonly receipts: readonly Receipt[]; readonly atMs: number },
): Promise<void> {
  const { after, block, receipts } = change;
  const { rowCount } = await sql.query({
    name: 'move_reconciled',
    text: `update chain_reconciled set height = $4, hash = $5, updated_at = $6 where currency = $1 and height = $2 and hash = $3`,
    values: [currency, after.height, after.hash, block.height, block.hash, new Date(change.atMs)],
  });
  if (rowCount !== 1) throw new CursorMoved(`the second reading of ${currency} has moved`);
  await keepBlock(sql, currency, block);
  await sql.query({
    name: 'forget_reconciled_blocks',
    text: 'delete from chain_reconciled_blocks where currency = $1 and height <= $2',
    values: [currency, block.height - KEPT_BLOCKS],
  });
  if (receipts.length === 0) return;
  await sql.query({
    name: 'add_receipts',
    text: `insert into chain_receipts (currency, height, block_hash, txid, vout, amount, coinbase, transaction_id)
             select $1, $2, $3, * from unnest($4::text[], $5::int[], $6::numeric[], $7::boolean[], $8::text[])
             on conflict (currency, txid, vout) do update set height = excluded.height, block_hash = excluded.block_hash, amount = excluded.amount`,
    values: [
      currency,
      block.height,
      block.hash,
      receipts.map((one) => one.txid),
      receipts.map((one) => one.vout),
      receipts.map((one) => one.amount),
      receipts.map((one) => one.coinbase),
      receipts.map((one) => one.transactionId),
    ],
  });
  const outputs = receipts.map((one) => ({ ...one, seenOrder: null, entered: null }));
  await noteEarly(sql, currency, { height: block.height, atMs: change.atMs }, outputs);
}

/** The second reading restarts above this block. */
export async function rewindReconciled(sql: Sql, currency: CurrencyCode, to: BlockRef, atMs: number): Promise<void> {
  await sql.query({
    name: 'rewind_reconciled',
    text: `update chain_reconciled set height = $2, hash = $3, from_height = least(from_height, $2), updated_at = $4 where currency = $1 and height >= $2`,
    values: [currency, to.height, to.hash, new Date(atMs)],
  });
  await sql.query({
    name: 'drop_receipts_above',
    text: 'delete from chain_receipts where currency = $1 and height > $2',
    values: [currency, to.height],
  });
  await sql.query({
    name: 'drop_reconciled_blocks_above',
    text: 'delete from chain_reconciled_blocks where currency = $1 and height > $2',
    values: [currency, to.height],
  });
  await keepBlock(sql, currency, to);
}

/** The same, where the second reading has come further than this block: what was said of one above it is no longer what is said. */
export async function rewindBelow(sql: Sql, currency: CurrencyCode, to: BlockRef, atMs: number): Promise<void> {
  const at = await readReconciled(sql, currency);
  if (at !== null && at.height > to.height) await rewindReconciled(sql, currency, to, atMs);
}

/**
 * The same, where the second reading has passed this block and did not find there what is recorded of it by now: on Ethereum's chain a node may show
 * more of a block later, or name other places.
 */
export async function rewindWhereUnfound(
  sql: Sql,
  currency: CurrencyCode,
  { height, hash, previousHash }: BlockRef & { readonly previousHash: string },
  atMs: number,
): Promise<void> {
  const { rows } = await sql.query({
    name: 'unfound_in_block',
    text: `select from payments p where p.currency = $1 and p.height = $2 and p.block_hash = $3
              and not exists (select from chain_receipts r where r.currency = $1 and r.txid = p.txid and r.vout = p.vout
                                 and r.block_hash = p.block_hash and r.amount = p.amount and r.transaction_id = p.transaction_id) limit 1`,
    values: [currency, height, hash],
  });
  if (rows.length > 0) await rewindBelow(sql, currency, { height: height - 1, hash: previousHash }, atMs);
}

/** The blocks that the second reading has read, from a height downwards; only the newest are kept. */
export async function reconciledDown(
  sql: Sql,
  currency: CurrencyCode,
  fromHeight: number,
  limit: number,
): Promise<readonly BlockRef[]> {
  const { rows } = await sql.query<{ height: number; hash: string }>({
    name: 'reconciled_down',
    text: 'select height, hash from chain_reconciled_blocks where currency = $1 and height <= $2 order by height desc limit $3',
    values: [currency, fromHeight, limit],
  });
  return rows;
}

async function keepBlock(sql: Sql, currency: CurrencyCode, block: BlockRef): Promise<void> {
  await sql.query({
    name: 'keep_reconciled_block',
    text: `insert into chain_reconciled_blocks (currency, height, hash) values ($1, $2, $3)
             on conflict (currency, height) do update set hash = excluded.hash`,
    values: [currency, block.height, block.hash],
  });
}
