// The signed transactions of batches and what each payout pays of their fees: stored before they are sent, never changed afterwards.
import type { CurrencyCode } from '../../core/currency.ts';
import type { EvmOutcome } from '../../core/evm/outcome.ts';
import type { Sql } from '../postgres/connect.ts';

export type NewAttempt = {
  readonly batchId: string;
  readonly number: number;
  readonly currency: CurrencyCode;
  readonly txid: string;
  readonly raw: Buffer;
  readonly fee: bigint;
  readonly vbytes: number;
  readonly feeRate: bigint;
  /** On Ethereum's chain: the most that a unit of gas may cost, in wei; null elsewhere. */
  readonly maxFee: bigint | null;
  readonly change: { readonly vout: number; readonly amount: bigint } | null;
  readonly epoch: bigint;
  /** The signer's own number of it. */
  readonly sequence: number;
  /** What it pays to others than the payouts and us. */
  readonly lost: bigint;
  readonly signedAtMs: number;
  /** In the order of the outputs. */
  readonly shares: readonly { readonly payoutId: string; readonly fee: bigint }[];
};

/** Stores a signed transaction; the batch is signed from now on. The batch's row is locked. */
export async function insertAttempt(sql: Sql, attempt: NewAttempt): Promise<void> {
  await sql.query({
    name: 'insert_attempt',
    text: `with batch as (update outgoing_batches set state = case when state = 'reserved' then 'signed' else state end, fee_rate = $9 where id = $1),
           -- its change is in a block that was read before it was written back: that is no capital
           change as (update own_outputs set booked = true where currency = $3 and txid = $4 and vout = $8 and not booked),
           made as (
             insert into outgoing_attempts (batch_id, number, currency, txid, raw, fee, vbytes, change_vout, change_amount, lease_epoch, signed_at, sequence, lost, max_fee)
               values ($1, $2, $3, $4, $5, $6, $7, $8, $10, $11, $12, $15, $16, $17) returning id)
           insert into outgoing_shares (attempt_id, payout_id, vout, fee)
             select made.id, s.payout_id, s.n - 1, s.fee from made, unnest($13::text[], $14::numeric[]) with ordinality as s(payout_id, fee, n)`,
    values: [
      attempt.batchId,
      attempt.number,
      attempt.currency,
      attempt.txid,
      attempt.raw,
      attempt.fee,
      attempt.vbytes,
      attempt.change?.vout ?? null,
      attempt.feeRate,
      attempt.change?.amount ?? null,
      attempt.epoch,
      new Date(attempt.signedAtMs),
      attempt.shares.map((share) => share.payoutId),
      attempt.shares.map((share) => share.fee),
      attempt.sequence,
      attempt.lost,
      attempt.maxFee,
    ],
  });
}

/**
 * Stores a transaction that does what a signed one of the same batch does, with its signatures written in another way: the signer knows nothing of
 * it (sequence 0), so it has none of the signer's numbers, but one below zero. Nothing where it is stored already.
 */
export async function insertTwin(
  sql: Sql,
  attemptId: bigint,
  { txid, raw }: { readonly txid: string; readonly raw: Buffer },
): Promise<void> {
  await sql.query({
    name: 'insert_twin',
    text: `with of as (select a.* from outgoing_attempts a where a.id = $1),
           batch as materialized (select b.id from outgoing_batches b where b.id = (select batch_id from of) for update),
           made as (
             insert into outgoing_attempts (batch_id, number, currency, txid, raw, fee, vbytes, change_vout, change_amount, lease_epoch, sequence, signed_at,
                                            sent_at, lost, max_fee)
               select batch.id, (select least(min(number), 0) - 1 from outgoing_attempts where batch_id = batch.id), currency, $2, $3, fee, vbytes, change_vout,
                      change_amount, lease_epoch, 0, signed_at, sent_at, lost, max_fee from of, batch
               on conflict (currency, txid) do nothing returning id)
           insert into outgoing_shares (attempt_id, payout_id, vout, fee)
             select made.id, s.payout_id, s.vout, s.fee from made, outgoing_shares s where s.attempt_id = $1`,
    values: [attemptId, txid, raw],
  });
}

/** What is booked beside the payouts of a batch: by the newest of its transactions that an operator has had booked, of which one is mined at most. */
export async function bookedBeside(sql: Sql, batchId: string): Promise<bigint> {
  const { rows } = await sql.query<{ outflow: string }>({
    name: 'booked_beside',
    text: `select lost + case when exists (select from outgoing_shares s where s.attempt_id = a.id) then 0 else fee end as outflow
             from outgoing_attempts a where batch_id = $1 and sequence = 0 order by number desc limit 1`,
    values: [batchId],
  });
  return BigInt(rows[0]?.outflow ?? 0);
}

export type Attempt = {
  readonly id: bigint;
  /** The signer's of those of a batch; below zero: somebody else has written its signatures. */
  readonly number: number;
  readonly txid: string;
  readonly raw: Buffer;
  readonly fee: bigint;
  readonly signedAtMs: number;
  readonly sentAtMs: number | null;
  readonly height: number | null;
  readonly blockHash: string | null;
  /** On Ethereum's chain: the most gas, the most that a unit of it may cost in wei, and how it ended. */
  readonly vbytes: number;
  readonly maxFee: bigint | null;
  readonly outcome: EvmOutcome | null;
};

/** The attempts of a batch in the order of their numbers. */
export async function readAttempts(sql: Sql, batchId: string): Promise<Attempt[]> {
  const { rows } = await sql.query<{
    id: bigint;
    number: number;
    txid: string;
    raw: Buffer;
    fee: string;
    signed_at: Date;
    sent_at: Date | null;
    height: number | null;
    block_hash: string | null;
    vbytes: number;
    max_fee: string | null;
    result: EvmOutcome['result'] | null;
    gas_paid: string | null;
  }>({
    name: 'batch_attempts',
    text: `select id, number, txid, raw, fee, signed_at, sent_at, height, block_hash, vbytes, max_fee, result, gas_paid from outgoing_attempts where batch_id = $1 order by number`,
    values: [batchId],
  });
  return rows.map((row) => ({
    id: row.id,
    number: row.number,
    txid: row.txid,
    raw: row.raw,
    fee: BigInt(row.fee),
    signedAtMs: row.signed_at.getTime(),
    sentAtMs: row.sent_at?.getTime() ?? null,
    height: row.height,
    blockHash: row.block_hash,
    vbytes: row.vbytes,
    maxFee: row.max_fee === null ? null : BigInt(row.max_fee),
    outcome: row.result === null ? null : { result: row.result, gasPaid: BigInt(row.gas_paid ?? 0) },
  }));
}

/** What each payout of a batch pays of each attempt's fee, by attempt and payout. */
export async function readShares(sql: Sql, batchId: string): Promise<ReadonlyMap<bigint, ReadonlyMap<string, bigint>>> {
  const { rows } = await sql.query<{ attempt_id: bigint; payout_id: string; fee: string }>({
    name: 'batch_shares',
    text: `select s.attempt_id, s.payout_id, s.fee from outgoing_shares s join outgoing_attempts a on a.id = s.attempt_id where a.batch_id = $1`,
    values: [batchId],
  });
  return new Map(
    [...Map.groupBy(rows, (row) => row.attempt_id)].map(([id, shares]) => [
      id,
      new Map(shares.map((share) => [share.payout_id, BigInt(share.fee)])),
    ]),
  );
}

/** Notes that a node has taken a signed transaction; it is sent again until a block has it. */
export async function markSent(sql: Sql, attemptId: bigint, atMs: number): Promise<void> {
  await sql.query({
    name: 'mark_attempt_sent',
    text: 'update outgoing_attempts set sent_at = $2 where id = $1',
    values: [attemptId, new Date(atMs)],
  });
}

/** The newest signature of the signer that is stored here: its number and its transaction; 0 and null when none is. */
export async function lastSignature(sql: Sql): Promise<{ readonly sequence: number; readonly txid: string | null }> {
  const { rows } = await sql.query<{ sequence: bigint; txid: string }>({
    name: 'last_signature',
    text: 'select sequence, txid from outgoing_attempts where sequence > 0 order by id desc limit 1',
    values: [],
  });
  const [row] = rows;
  return row === undefined ? { sequence: 0, txid: null } : { sequence: Number(row.sequence), txid: row.txid };
}

/** Whether a transaction that the signer has signed is stored here. */
export async function isStored(sql: Sql, currency: CurrencyCode, txid: string): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'is_attempt_stored',
    text: 'select 1 from outgoing_attempts where currency = $1 and txid = $2',
    values: [currency, txid],
  });
  return rows.length > 0;
}

/** Those of the payouts whose hold was taken again after they had been cancelled. */
export async function heldAgain(sql: Sql, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'payouts_held_again',
    text: `select id from unnest($1::text[]) as t(id) where exists (select 1 from ledger.entry e where e.key = 'po:' || t.id || ':hold_again')`,
    values: [ids],
  });
  return new Set(rows.map(({ id }) => id));
}
