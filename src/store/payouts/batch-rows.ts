// Batches with all that belongs to them, as the driver reads them, and the lease under which one worker at a time works on a batch.
import type { CurrencyCode, UtxoCode } from '../../core/currency.ts';
import type { PayoutStatus } from '../../core/payouts/states.ts';
import type { Sql } from '../postgres/connect.ts';
import { type Attempt, readAttempts } from './attempts.ts';
import { isCapital } from './own-outputs.ts';

export type { Attempt } from './attempts.ts';

export type BatchState = 'reserved' | 'signed' | 'mined' | 'final' | 'dead';
/** `sweep`: what an address of a transaction holds, to the one payouts leave from; `top_up`: ether for gas to such an address. */
export type BatchPurpose = 'payout' | 'sweep' | 'top_up';
/** @typeParam Code its currency: of Bitcoin's family where nothing else is said */
export type Batch<Code extends CurrencyCode = UtxoCode> = {
  readonly id: string;
  readonly currency: Code;
  readonly state: BatchState;
  readonly purpose: BatchPurpose;
  /** Whom a sweep or a top-up pays; null of payouts. */
  readonly target: Buffer | null;
  readonly feeRate: bigint;
  /** On Ethereum's chain: what its first transaction offers the proposer (wei for each unit of gas), and the most gas; null elsewhere. */
  readonly gas: { readonly tip: bigint; readonly limit: number } | null;
  readonly changeIndex: number | null;
  /** The output script of its change; null where nothing comes back. */
  readonly changeScript: Buffer | null;
  readonly leaseEpoch: bigint;
  readonly minedAttempt: bigint | null;
  readonly createdAtMs: number;
  readonly inputs: readonly BatchInput[];
  /** In the order of their numbers. */
  readonly attempts: readonly Attempt[];
  /** In the order of the outputs. */
  readonly payouts: readonly BatchPayout[];
};
export type BatchInput = {
  readonly txid: string;
  readonly vout: number;
  readonly amount: bigint;
  readonly script: Buffer;
  readonly xpub: string;
  readonly chain: 0 | 1;
  readonly index: number;
  readonly spentBy: string | null;
  readonly spentHeight: number | null;
  /**
   * The height of the block that took away the transaction which made it: another transaction spends what that spent; 0 where that was
   * decided for good. Null while it stands.
   */
  readonly goneHeight: number | null;
  /** No block has what made it, and it is no change of ours, whose own batch is looked after. */
  readonly isNowhere: boolean;
};
export type BatchPayout = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly currency: CurrencyCode;
  readonly amount: bigint;
  readonly feeMax: bigint;
  readonly fee: bigint | null;
  readonly script: Buffer;
  readonly status: PayoutStatus;
  /** Cents when it was requested; null when no price was known. */
  readonly usdMinor: bigint | null;
  readonly sequence: number;
  /** The transaction whose payments go back; null for a payout. All of a batch are of one kind. */
  readonly reimburses: string | null;
};

/** SQL: nothing is due, leased or requested later than this after now: the clock that said so was fast. */
export const FURTHEST = "interval '1 hour'";
/** SQL: a time has come, or was set by a clock that was fast. @param now the parameter that holds the time */
export const isPast = (column: string, now: string): string => `(${column} <= ${now} or ${column} > ${now} + ${FURTHEST})`;
/** SQL: a batch is due. @param now the parameter that holds the time */
export const isDue = (now: string): string => isPast('due_at', now);

/**
 * Takes the lease of a batch that is due; returns its new epoch, or null when another worker holds it or nothing is due. The epoch rises with
 * every lease, and whatever is written under an older one is refused.
 */
export async function leaseBatch(
  sql: Sql,
  lease: {
    readonly owner: string;
    readonly currency: CurrencyCode;
    readonly nowMs: number;
    readonly untilMs: number;
    readonly not: readonly string[];
  },
): Promise<string | null> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'lease_batch',
    text: `update outgoing_batches set lease_owner = $1, lease_epoch = lease_epoch + 1, lease_until = $3, due_at = $3
            where id = (select id from outgoing_batches
                         where currency = $5 and ${isDue('$2')} and (lease_until is null or ${isPast('lease_until', '$2')}) and id <> all ($4)
                         order by due_at limit 1 for update skip locked)
            returning id`,
    values: [lease.owner, new Date(lease.nowMs), new Date(lease.untilMs), lease.not, lease.currency],
  });
  return rows[0]?.id ?? null;
}

/**
 * Raises the epoch of a lease that is still ours: whatever was asked of the signer under the one before is refused from now on. Returns the
 * new one, or null when another worker has the batch.
 */
export async function raiseLease(sql: Sql, batchId: string, epoch: bigint): Promise<bigint | null> {
  const { rows } = await sql.query<{ lease_epoch: bigint }>({
    name: 'raise_lease',
    text: 'update outgoing_batches set lease_epoch = lease_epoch + 1 where id = $1 and lease_epoch = $2 returning lease_epoch',
    values: [batchId, epoch],
  });
  return rows[0]?.lease_epoch ?? null;
}

/** Ends a lease that is still ours, and says when the batch is looked at again (null = when the chain shows something new). */
export async function endLease(sql: Sql, batchId: string, epoch: bigint, dueAtMs: number | null): Promise<void> {
  await sql.query({
    name: 'end_lease',
    text: `update outgoing_batches set lease_until = null, lease_owner = null,
                  due_at = case when due_at = '-infinity' then due_at else $3 end
            where id = $1 and lease_epoch = $2`,
    values: [batchId, epoch, dueAtMs === null ? null : new Date(dueAtMs)],
  });
}

type BatchRow<Code> = {
  id: string;
  currency: Code;
  tip: string | null;
  gas_limit: number | null;
  state: BatchState;
  purpose: BatchPurpose;
  target: Buffer | null;
  fee_rate: bigint;
  change_index: bigint | null;
  change_script: Buffer | null;
  lease_epoch: bigint;
  mined_attempt: bigint | null;
  created_at: Date;
};

/** A batch with all that belongs to it; its row and its payouts' rows are locked where `lock`. Null when there is none. */
export async function readBatch<Code extends CurrencyCode = UtxoCode>(
  sql: Sql,
  batchId: string,
  { lock }: { readonly lock: boolean },
): Promise<Batch<Code> | null> {
  const suffix = lock ? ' for update' : '';
  const { rows } = await sql.query<BatchRow<Code>>({
    name: `read_batch${lock ? '_locked' : ''}`,
    text: `select id, currency, state, purpose, target, fee_rate, tip, gas_limit, change_index, lease_epoch, mined_attempt, created_at,
                  (select a.script from own_addresses a where a.address_index = change_index and a.account_xpub_id =
                     (select i.account_xpub_id from outgoing_inputs i where i.batch_id = outgoing_batches.id limit 1)) as change_script
             from outgoing_batches where id = $1${suffix}`,
    values: [batchId],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const payouts = await readPayouts(sql, batchId, suffix);
  return {
    id: row.id,
    currency: row.currency,
    state: row.state,
    purpose: row.purpose,
    target: row.target,
    feeRate: row.fee_rate,
    gas: row.tip === null ? null : { tip: BigInt(row.tip), limit: row.gas_limit ?? 0 },
    changeIndex: row.change_index === null ? null : Number(row.change_index),
    changeScript: row.change_script,
    leaseEpoch: row.lease_epoch,
    minedAttempt: row.mined_attempt,
    createdAtMs: row.created_at.getTime(),
    inputs: await readInputs(sql, batchId),
    attempts: await readAttempts(sql, batchId),
    payouts,
  };
}

async function readPayouts(sql: Sql, batchId: string, suffix: string): Promise<BatchPayout[]> {
  const { rows } = await sql.query<{
    id: string;
    merchant_id: bigint;
    currency: CurrencyCode;
    amount: string;
    fee_max: string;
    fee: string | null;
    script: Buffer;
    status: PayoutStatus;
    usd_minor: bigint | null;
    sequence: number;
    reimburses: string | null;
    batch_position: number;
  }>({
    name: `batch_payouts${suffix === '' ? '' : '_locked'}`,
    // in the order of their ids, the order in which every writer locks payouts
    text: `select id, merchant_id, currency, amount, fee_max, fee, script, status, usd_minor, sequence, reimburses, batch_position from payouts where batch_id = $1 order by id${suffix}`,
    values: [batchId],
  });
  return rows
    .sort((a, b) => a.batch_position - b.batch_position)
    .map((row) => ({
      id: row.id,
      merchantId: row.merchant_id,
      currency: row.currency,
      amount: BigInt(row.amount),
      feeMax: BigInt(row.fee_max),
      fee: row.fee === null ? null : BigInt(row.fee),
      script: row.script,
      status: row.status,
      usdMinor: row.usd_minor,
      sequence: row.sequence,
      reimburses: row.reimburses,
    }));
}

async function readInputs(sql: Sql, batchId: string): Promise<BatchInput[]> {
  const { rows } = await sql.query<{
    txid: string;
    vout: number;
    amount: string;
    script: Buffer;
    xpub: string;
    chain: 0 | 1;
    address_index: bigint;
    spent_by: string | null;
    spent_height: number | null;
    gone_height: number | null;
    is_nowhere: boolean | null;
  }>({
    name: 'batch_inputs',
    text: `select i.txid, i.vout, i.amount, i.script, x.xpub, i.chain, i.address_index, i.spent_by, i.spent_height, n.is_nowhere,
                  coalesce(
                    (select v.height from payments p join conflicting_transactions v on v.currency = p.currency and v.txid = p.conflict_txid
                      where p.currency = i.currency and p.txid = i.txid and p.vout = i.vout and p.state = 'conflicted'),
                    -- a miner made it with a block: another one is in its place
                    (select p.last_height from payments p
                      where p.currency = i.currency and p.txid = i.txid and p.vout = i.vout and p.coinbase and p.state = 'gone'),
                    -- capital, and what its payer had spent is spent elsewhere
                    (select c.gone_height from own_outputs c where c.currency = i.currency and c.txid = i.txid and c.vout = i.vout and c.height is null),
                    -- our own change: another transaction of its batch was mined, or one that is none of ours
                    (select min(f.spent_height) from outgoing_attempts a join outgoing_inputs f on f.batch_id = a.batch_id
                      where a.currency = i.currency and a.txid = i.txid and a.height is null and f.spent_by <> a.txid),
                    -- its batch is dead, because what that spends is gone: decided at final depth
                    (select 0 from outgoing_attempts a join outgoing_batches b on b.id = a.batch_id
                      where a.currency = i.currency and a.txid = i.txid and a.height is null and b.state = 'dead'),
                    -- an operator has said so, and no block has had it since
                    case when n.is_nowhere and i.undone_height >= n.last_height then i.undone_height end) as gone_height
             from outgoing_inputs i join account_xpubs x on x.id = i.account_xpub_id
             left join lateral (
               select p.state <> 'mined' as is_nowhere, coalesce(p.last_height, 0) as last_height from payments p
                where p.currency = i.currency and p.txid = i.txid and p.vout = i.vout
               union all
               select c.height is null and ${isCapital('c')}, 0 from own_outputs c where c.currency = i.currency and c.txid = i.txid and c.vout = i.vout
               limit 1) n on true
            where i.batch_id = $1 order by i.txid, i.vout`,
    values: [batchId],
  });
  return rows.map((row) => ({
    txid: row.txid,
    vout: row.vout,
    amount: BigInt(row.amount),
    script: row.script,
    xpub: row.xpub,
    chain: row.chain,
    index: Number(row.address_index),
    spentBy: row.spent_by,
    spentHeight: row.spent_height,
    goneHeight: row.gone_height,
    isNowhere: row.is_nowhere ?? false,
  }));
}

/** The new state of a batch whose row is locked. */
export async function setBatchState(
  sql: Sql,
  batchId: string,
  to: { readonly state: BatchState; readonly minedAttempt: bigint | null },
): Promise<void> {
  await sql.query({
    name: 'set_batch_state',
    text: 'update outgoing_batches set state = $2, mined_attempt = $3 where id = $1',
    values: [batchId, to.state, to.minedAttempt],
  });
}

/** What an operator must know of a batch; null = nothing any more. */
export async function setBatchTrouble(sql: Sql, batchId: string, trouble: string | null): Promise<void> {
  await sql.query({
    name: 'set_batch_trouble',
    text: 'update outgoing_batches set trouble = $2 where id = $1 and trouble is distinct from $2',
    values: [batchId, trouble],
  });
}
