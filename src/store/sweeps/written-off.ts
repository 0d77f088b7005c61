// What is gone from our addresses on Ethereum's chain although nothing of ours has taken it, and is booked as lost: it counts as gone wherever what an
// address holds is derived.
import type { BlockRef } from '../../core/block-ref.ts';
import type { EvmCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

/** SQL: what is written off at an address. @param height up to this block; absent: by now */
export const WRITTEN_OFF = (currency: string, script: string, height?: string): string =>
  `coalesce((select sum(w.amount) from written_off w where w.currency = ${currency} and w.script = ${script}${height === undefined ? '' : ` and w.height <= ${height}`}), 0)`;

type WriteOff = {
  readonly currency: EvmCode;
  readonly script: Uint8Array;
  /** Below zero: it is there again. */
  readonly amount: bigint;
  readonly block: BlockRef;
  readonly batchId: string | null;
  /** The transaction of somebody else by which the address has sent it; absent: it is gone otherwise, or is there again. */
  readonly leftBy?: string | null;
  readonly by: string;
  readonly evidence: string;
  readonly atMs: number;
};

/** It stays: what is there again is another one, below zero. */
export async function insertWriteOff(sql: Sql, of: WriteOff): Promise<void> {
  const { currency, script, amount, block, batchId, leftBy = null, by, evidence, atMs } = of;
  await sql.query({
    name: 'insert_write_off',
    text: `insert into written_off (currency, script, amount, height, block_hash, batch_id, left_by, said_by, evidence, at)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    values: [currency, Buffer.from(script), amount, block.height, block.hash, batchId, leftBy, by, evidence, new Date(atMs)],
  });
}

/** What is written off at an address, what of that an operator has said, and how often one has; the lock of the currency's outputs is held. */
export async function writtenOff(
  sql: Sql,
  currency: EvmCode,
  script: Uint8Array,
): Promise<{ readonly amount: bigint; readonly said: bigint; readonly times: number }> {
  const { rows } = await sql.query<{ amount: string; said: string; times: number }>({
    name: 'written_off_at',
    text: `select coalesce(sum(amount), 0) as amount, coalesce(sum(amount) filter (where batch_id is null), 0) as said,
                  (count(*) filter (where batch_id is null))::int as times
             from written_off where currency = $1 and script = $2`,
    values: [currency, Buffer.from(script)],
  });
  const { amount = 0, said = 0, times = 0 } = rows[0] ?? {};
  return { amount: BigInt(amount), said: BigInt(said), times };
}

/** Whether what an address has sent in a transaction of somebody else is written off already. */
export async function isWrittenOff(sql: Sql, script: Uint8Array, txid: string): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'is_written_off',
    text: 'select from written_off where script = $1 and left_by = $2 limit 1',
    values: [Buffer.from(script), txid],
  });
  return rows.length > 0;
}

/** What was written off of a batch's move. */
export async function writtenOffOf(sql: Sql, batchId: string): Promise<bigint> {
  const { rows } = await sql.query<{ amount: string }>({
    name: 'written_off_of_batch',
    text: 'select coalesce(sum(amount), 0) as amount from written_off where batch_id = $1',
    values: [batchId],
  });
  return BigInt(rows[0]?.amount ?? 0);
}
