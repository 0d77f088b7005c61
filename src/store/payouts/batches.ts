// Batches: which payouts one transaction on a chain pays, and which of our outputs it spends. Both are fixed in one database transaction before
// anything is signed.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Outpoint } from '../../core/ports.ts';
import type { Sql } from '../postgres/connect.ts';
import { type Batch, isDue } from './batch-rows.ts';
import { wakeDriver } from './outgoing-facts.ts';
import { insertOwnAddress, isGone } from './own-outputs.ts';
import { isStale, takesAvailable } from './request-facts.ts';

/** An output of ours that may be spent, and where its key is. */
export type SpendableOutput = {
  readonly txid: string;
  readonly vout: number;
  readonly amount: bigint;
  readonly script: Buffer;
  readonly chain: 0 | 1;
  readonly index: number;
};

export type QueuedPayout = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly amount: bigint;
  readonly feeMax: bigint;
  readonly script: Buffer;
  /** The transaction whose payments go back; null for a payout. */
  readonly reimburses: string | null;
};

/** A merchant owes nothing, in no currency (behaviour §5). */
const OWES_NOTHING = (merchant: string): string =>
  `not exists (select 1 from ledger.account a join ledger.balance b on b.account_id = a.id
                where a.merchant_id = ${merchant} and a.kind = 'receivable' and b.amount > 0)`;

/**
 * Locks the payouts that the next batch can pay, oldest first. One whose merchant owes something stays where it is: nothing is committed
 * while a receivable is open, but for a reimbursement that takes nothing of the merchant's. A reimbursement whose payments are not all there
 * stays too.
 * @param only where one is named, that one or none
 * @param without those that are left out, by id
 */
export async function lockQueued(
  sql: Sql,
  currency: CurrencyCode,
  limit: number,
  { only = null, without = [] }: { readonly only?: string | null; readonly without?: readonly string[] } = {},
): Promise<readonly QueuedPayout[]> {
  type Row = { id: string; merchant_id: bigint; amount: string; fee_max: string; script: Buffer; reimburses: string | null };
  const { rows } = await sql.query<Row>({
    name: 'lock_queued_payouts',
    text: `select id, merchant_id, amount, fee_max, script, reimburses from payouts p
            where step = 'queued' and currency = $1 and script is not null and internal_to is null and (${OWES_NOTHING('p.merchant_id')} or not ${takesAvailable('p')})
              and ($3::text is null or id = $3) and id <> all ($4)
              and not ${isStale('p')}
            order by created_at, id limit $2 for update skip locked`,
    values: [currency, limit, only, without],
  });
  return rows.map((row) => ({
    id: row.id,
    merchantId: row.merchant_id,
    amount: BigInt(row.amount),
    feeMax: BigInt(row.fee_max),
    script: row.script,
    reimburses: row.reimburses,
  }));
}

/** Only one worker at a time chooses outputs of a currency. Held until the database transaction ends. */
export async function lockOutputs(sql: Sql, currency: CurrencyCode): Promise<void> {
  await sql.query({ name: 'lock_outputs', text: `select pg_advisory_xact_lock(hashtext('spend ' || $1))`, values: [currency] });
}

export type SpendableWanted = { readonly finalDepth: number; readonly maturity: number; readonly limit: number };

/**
 * Our outputs that no batch spends, in the order of preference: change and capital at final depth, customers' payments at final depth, and at
 * last change of ours with a confirmation. Of each the largest: whoever sends dust to our addresses must not hide what can be spent. A payment
 * to the address of another currency is left out: its key is in another account.
 */
export async function spendableOutputs(
  sql: Sql,
  currency: CurrencyCode,
  wanted: SpendableWanted,
): Promise<readonly SpendableOutput[]> {
  const { rows } = await sql.query<{ txid: string; vout: number; amount: string; script: Buffer; chain: 0 | 1; index: bigint }>({
    name: 'spendable_outputs',
    text: `with tip as (select height from chain_cursors where currency = $1)
           (select c.txid, c.vout, c.amount, c.script, 1 as chain, a.address_index as index
              from own_outputs c join own_addresses a on a.script = c.script, tip
             where c.currency = $1 and not c.spent and c.booked and c.height <= tip.height - $2 + 1
             order by c.amount desc limit $4)
           union all
           (select p.txid, p.vout, p.amount, t.script, 0, t.address_index
              from payments p join transactions t on t.id = p.transaction_id and t.currency = p.currency, tip
             where p.currency = $1 and p.part_key is not null and not p.spent
               and p.height <= tip.height - case when p.coinbase then greatest($2, $3) else $2 end + 1
             order by p.amount desc limit $4)
           union all
           (select c.txid, c.vout, c.amount, c.script, 1, a.address_index
              from own_outputs c join own_addresses a on a.script = c.script, tip
             where c.currency = $1 and not c.spent and c.booked and c.height > tip.height - $2 + 1
             order by c.amount desc limit $4)`,
    values: [currency, wanted.finalDepth, wanted.maturity, wanted.limit],
  });
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount), index: Number(row.index) }));
}

/** The largest payments that no batch spends, whatever their depth. `isElsewhere`: at an address that was given out for another currency. */
export async function largestPayments(
  sql: Sql,
  currency: CurrencyCode,
  limit: number,
): Promise<readonly (Pick<SpendableOutput, 'amount' | 'script' | 'chain' | 'index'> & { readonly isElsewhere: boolean })[]> {
  const { rows } = await sql.query<{ amount: string; script: Buffer; index: bigint; elsewhere: boolean }>({
    name: 'largest_payments',
    text: `select p.amount, t.script, t.address_index as index, t.currency <> p.currency as elsewhere
             from payments p join transactions t on t.id = p.transaction_id
            where p.currency = $1 and p.part_key is not null and not p.spent and p.height is not null order by p.amount desc limit $2`,
    values: [currency, limit],
  });
  return rows.map(({ amount, script, index, elsewhere }) => ({
    amount: BigInt(amount),
    script,
    chain: 0,
    index: Number(index),
    isElsewhere: elsewhere,
  }));
}

export type NewBatch = {
  readonly id: string;
  readonly currency: CurrencyCode;
  readonly feeRate: bigint;
  /** On Ethereum's chain, as in {@link Batch}. */
  readonly gas?: Batch['gas'];
  /** Absent: it pays payouts. */
  readonly sweep?: { readonly purpose: 'sweep' | 'top_up'; readonly target: Uint8Array };
  readonly accountId: bigint;
  /** Null where nothing comes back. */
  readonly change: { readonly index: number; readonly script: Uint8Array } | null;
  readonly inputs: readonly SpendableOutput[];
  /** In the order of the outputs. */
  readonly payoutIds: readonly string[];
  readonly atMs: number;
};

/** Writes a batch with its inputs, and puts its payouts into it. The rows of the payouts and the outputs' lock are held. */
export async function insertBatch(sql: Sql, batch: NewBatch): Promise<void> {
  await sql.query({
    name: 'insert_batch',
    text: `insert into outgoing_batches (id, currency, state, fee_rate, change_index, due_at, created_at, tip, gas_limit, purpose, target) values ($1, $2, 'reserved', $3, $4, $5, $5, $6, $7, $8, $9)`,
    values: [
      batch.id,
      batch.currency,
      batch.feeRate,
      batch.change?.index ?? null,
      new Date(batch.atMs),
      batch.gas?.tip ?? null,
      batch.gas?.limit ?? null,
      batch.sweep?.purpose ?? 'payout',
      batch.sweep === undefined ? null : Buffer.from(batch.sweep.target),
    ],
  });
  if (batch.change !== null) await insertOwnAddress(sql, batch.accountId, batch.currency, batch.change);
  await insertInputs(sql, batch);
  await sql.query({
    name: 'payouts_into_batch',
    text: `update payouts p set step = 'batched', held_reason = null, batch_id = $1, batch_position = o.n - 1 from unnest($2::text[]) with ordinality as o(id, n) where p.id = o.id`,
    values: [batch.id, batch.payoutIds],
  });
}

async function insertInputs(sql: Sql, batch: NewBatch): Promise<void> {
  const { inputs } = batch;
  await sql.query({
    name: 'insert_outgoing_inputs',
    text: `with spends as (
             select * from unnest($4::text[], $5::int[], $6::numeric[], $7::bytea[], $8::int[], $9::bigint[]) as t(txid, vout, amount, script, chain, index)),
           payment as (update payments p set spent = true from spends s where p.currency = $2 and p.txid = s.txid and p.vout = s.vout),
           own as (update own_outputs c set spent = true from spends s where c.currency = $2 and c.txid = s.txid and c.vout = s.vout)
           insert into outgoing_inputs (currency, batch_id, account_xpub_id, txid, vout, amount, script, chain, address_index)
             select $2, $1, $3, txid, vout, amount, script, chain, index from spends`,
    values: [
      batch.id,
      batch.currency,
      batch.accountId,
      inputs.map((output) => output.txid),
      inputs.map((output) => output.vout),
      inputs.map((output) => output.amount),
      inputs.map((output) => output.script),
      inputs.map((output) => output.chain),
      inputs.map((output) => output.index),
    ],
  });
}

/** When the last batch of a currency was made; null = never. */
export async function lastBatchAt(sql: Sql, currency: CurrencyCode): Promise<number | null> {
  const { rows } = await sql.query<{ at: Date | null }>({
    name: 'last_batch_at',
    text: `select max(created_at) as at from outgoing_batches where currency = $1 and state in ('reserved', 'signed', 'mined')`,
    values: [currency],
  });
  return rows[0]?.at?.getTime() ?? null;
}

export type PayoutWork = {
  readonly currency: CurrencyCode;
  /** Payouts wait for a batch. */
  readonly queued: boolean;
  /** Outputs lie at our own addresses that no entry knows, or lay there and are gone. */
  readonly unbooked: boolean;
  /** A batch is due, or will be soon: another worker may have died over it. */
  readonly soon: boolean;
  /** A batch waits for its first signature. */
  readonly reserved: boolean;
};
const SOON_MS = 20_000;

/** The currencies of which there is something to do: payouts to batch, batches that are due, outputs of our own to book. */
export async function readWork(sql: Sql, nowMs: number): Promise<readonly PayoutWork[]> {
  const { rows } = await sql.query<PayoutWork>({
    name: 'read_payout_work',
    text: `with queued as (select distinct currency from payouts where step = 'queued' and script is not null and internal_to is null),
           soon as (select distinct currency from outgoing_batches where ${isDue('$1::timestamptz')}),
           unbooked as (select currency from own_outputs where not booked and height is not null
                        union select currency from own_outputs c where ${isGone('c')})
           select currency, currency in (select * from queued) as queued, currency in (select * from unbooked) as unbooked,
                  currency in (select * from soon) as soon,
                  exists (select from outgoing_batches b where b.currency = q.currency and ${isDue('$1::timestamptz')} and b.state = 'reserved') as reserved
             from (select * from queued union select * from soon union select * from unbooked) q`,
    values: [new Date(nowMs + SOON_MS)],
  });
  return rows;
}

/**
 * Gives a reservation up for which no signature can exist: its payouts are queued again, its outputs and the address of its change are free, and
 * nothing of it stays. Nothing happens (false) when the lease is another one by now, or when a signed transaction was stored.
 */
export async function giveUpBatch(sql: Sql, batchId: string, epoch: bigint): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'give_up_batch',
    text: `with batch as (delete from outgoing_batches where id = $1 and lease_epoch = $2 and state = 'reserved' returning id, change_index),
           freed as (delete from outgoing_inputs where batch_id in (select id from batch) returning currency, txid, vout, account_xpub_id, freed as elsewhere),
           payment as (update payments p set spent = false from freed f where (p.currency, p.txid, p.vout) = (f.currency, f.txid, f.vout) and not elsewhere),
           own as (update own_outputs c set spent = false from freed f where (c.currency, c.txid, c.vout) = (f.currency, f.txid, f.vout) and not elsewhere),
           address as (
             delete from own_addresses a where not exists (select from own_outputs c where c.script = a.script)
                and (account_xpub_id, address_index) in (select f.account_xpub_id, b.change_index from freed f, batch b)),
           queued as (update payouts set step = 'queued', batch_id = null where batch_id in (select id from batch))
           select id from batch`,
    values: [batchId, epoch],
  });
  return rowCount === 1;
}

/** The batches that spend these outputs. */
export async function batchesOfOutputs(
  sql: Sql,
  currency: CurrencyCode,
  outputs: readonly Outpoint[],
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ batch_id: string }>({
    name: 'batches_of_outputs',
    text: `select distinct i.batch_id from unnest($2::text[], $3::int[]) as t(txid, vout)
             join outgoing_inputs i on i.currency = $1 and i.txid = t.txid and i.vout = t.vout and not i.freed`,
    values: [currency, outputs.map(({ txid }) => txid), outputs.map(({ vout }) => vout)],
  });
  return rows.map((row) => row.batch_id);
}

/** What spends what a dead batch would have made is looked at again: nothing of it can be mined either. */
export async function descendantsDue(sql: Sql, batchId: string): Promise<void> {
  const { rowCount } = await sql.query({
    name: 'descendants_due',
    text: `update outgoing_batches set due_at = '-infinity' where state <> 'dead' and id in (
             select i.batch_id from outgoing_attempts a join outgoing_inputs i on i.currency = a.currency and i.txid = a.txid and not i.freed
              where a.batch_id = $1)`,
    values: [batchId],
  });
  if ((rowCount ?? 0) > 0) await wakeDriver(sql);
}

/** Gives the outputs of a dead batch back that nothing has spent: none of its transactions can be mined any more. */
export async function freeInputs(sql: Sql, currency: CurrencyCode, batchId: string, outputs: readonly Outpoint[]): Promise<void> {
  await sql.query({
    name: 'free_inputs',
    text: `with freed as (
             update outgoing_inputs i set freed = true from unnest($3::text[], $4::int[]) as t(txid, vout)
              where i.batch_id = $2 and i.currency = $1 and i.txid = t.txid and i.vout = t.vout and not i.freed returning i.txid, i.vout),
           payment as (update payments p set spent = false from freed f where p.currency = $1 and p.txid = f.txid and p.vout = f.vout)
           update own_outputs c set spent = false from freed f where c.currency = $1 and c.txid = f.txid and c.vout = f.vout`,
    values: [currency, batchId, outputs.map(({ txid }) => txid), outputs.map(({ vout }) => vout)],
  });
}
