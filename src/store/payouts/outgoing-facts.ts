// What the chain shows of our outgoing transactions: which of them is in a block, which inputs are spent and by whom, which outputs are at our
// own addresses. Facts, never decisions; the watcher writes them in the database transaction of the block.

import type { BlockRef } from '../../core/block-ref.ts';
import { BALANCE_PLACE, DISPROVED_PLACE } from '../../core/currencies/evm.ts';
import { type CurrencyCode, isUtxo } from '../../core/currency.ts';
import type { EvmOutcome } from '../../core/evm/outcome.ts';
import type { Outpoint, OutputFacts, TransactionFacts } from '../../core/ports.ts';
import { insertSpends } from '../chain/payment-writes.ts';
import { LIGHTNING_PAYOUT_JOB } from '../lightning/payment-rows.ts';
import type { Sql } from '../postgres/connect.ts';
import { CHOSEN_AT_ONCE, inParts } from '../postgres/in-parts.ts';
import { forgetGivenUp } from './given-up.ts';
import { isCapital } from './own-outputs.ts';

/** The name of the worker's job that drives payouts: it is woken when facts about them have changed. */
export const PAYOUT_JOB = 'payouts';
/** All jobs that let payouts leave by themselves, as a message that wakes them. */
export const PAYOUT_JOBS = `${PAYOUT_JOB},${LIGHTNING_PAYOUT_JOB}`;

/**
 * Records what one block shows of our outgoing transactions. Strangers choose what is in a block, so it is looked up in slices, each by itself.
 * @param touched its transactions that touch something watched
 * @param owners the scripts (hex) that belong to a merchant's transaction, and so are none of our own
 */
export async function recordOutgoing(
  sql: Sql,
  currency: CurrencyCode,
  block: BlockRef,
  touched: readonly TransactionFacts[],
  owners: { has(script: string): boolean },
): Promise<void> {
  const spends = touched.flatMap((facts) =>
    facts.spends.map((spend) => ({ ...spend, by: facts.txid, outcome: facts.outcome ?? null })),
  );
  const outputs = touched.flatMap((facts) =>
    facts.outputs
      .filter(({ script }) => !owners.has(script))
      .map((output) => ({ txid: facts.txid, coinbase: facts.coinbase, ...output })),
  );
  let changed = 0;
  await inParts(spends, CHOSEN_AT_ONCE, async (part) => {
    changed += await recordSpends(sql, currency, block, part);
    if (isUtxo(currency)) changed += await recordUndone(sql, currency, block, part);
  });
  const capital = new Set<string>();
  await inParts(outputs, CHOSEN_AT_ONCE, async (part) => {
    const recorded = await recordOwnOutputs(sql, currency, block, part);
    changed += recorded.length;
    for (const { txid, capital: isCapital } of recorded) if (isCapital) capital.add(txid);
  });
  if (isUtxo(currency) && capital.size > 0) {
    await insertSpends(sql, currency, inputsOf(touched.filter(({ txid }) => capital.has(txid))));
    await forgetGivenUp(sql, currency, [...capital]);
  }
  if (changed > 0) await wakeDriver(sql);
}

/** What transactions spend: another one that spends the same undoes them. */
const inputsOf = (transactions: readonly TransactionFacts[]) =>
  transactions.flatMap(({ txid, inputs }) => inputs.map((input) => ({ prevTxid: input.txid, prevVout: input.vout, txid })));

type Spend = Outpoint & { readonly by: string; readonly outcome: EvmOutcome | null };

async function recordSpends(sql: Sql, currency: CurrencyCode, block: BlockRef, spends: readonly Spend[]): Promise<number> {
  const { rowCount } = await sql.query({
    // planned each time, as whose script it is (store/chain/script-owners.ts)
    text: `with found as materialized (
             select o.txid, o.vout, o.batch_id, o.freed, s.by, s.result, s.gas_paid
               from unnest($3::text[], $4::int[], $5::text[], $7::text[], $8::numeric[]) as s(txid, vout, by, result, gas_paid)
              cross join lateral (select txid, vout, batch_id, freed from outgoing_inputs where currency = $1 and txid = s.txid and vout = s.vout offset 0) o),
           of_batch as (
             update outgoing_inputs i set spent_by = f.by, spent_height = $2 from found f
              where i.currency = $1 and i.txid = f.txid and i.vout = f.vout and not i.freed returning f.by, f.result, f.gas_paid, i.batch_id),
           -- a dead batch has given its outputs back, and its transaction is mined after all: they become its own when an operator says so
           spent as (
             select by, result, gas_paid, batch_id from of_batch
             union all
             select f.by, f.result, f.gas_paid, f.batch_id from found f join outgoing_attempts a on a.currency = $1 and a.txid = f.by and a.batch_id = f.batch_id
              where f.freed),
           mined as (
             update outgoing_attempts t set height = $2, block_hash = $6, result = s.result, gas_paid = s.gas_paid
               from (select distinct on (by) by, result, gas_paid from spent) s where t.currency = $1 and t.txid = s.by returning 1),
           -- they spend the same: whatever said that another one of the batch is in a block was wrong
           displaced as (
             update outgoing_attempts set height = null, block_hash = null, result = null, gas_paid = null
              where batch_id in (select batch_id from spent) and height is not null and txid not in (select by from spent) returning txid),
           undone as (
             update own_outputs set height = null, block_hash = null where currency = $1 and txid in (select txid from displaced) returning 1),
           -- what stood in its way until a block had it does so no more
           due as (update outgoing_batches set due_at = '-infinity', trouble = null where id in (select batch_id from spent) returning 1)
           select 1 from spent`,
    values: [
      currency,
      block.height,
      ...spentColumns(spends),
      block.hash,
      spends.map(({ outcome }) => outcome?.result ?? null),
      spends.map(({ outcome }) => outcome?.gasPaid ?? null),
    ],
  });
  return rowCount ?? 0;
}

/** This block spends elsewhere what made capital of ours, which is in no block any more: whatever spends that capital is looked at again. */
async function recordUndone(sql: Sql, currency: CurrencyCode, block: BlockRef, spends: readonly Spend[]): Promise<number> {
  const { rowCount } = await sql.query({
    // planned each time, as whose script it is (store/chain/script-owners.ts)
    text: `with rivals as materialized (
             select distinct i.txid from unnest($3::text[], $4::int[], $5::text[]) as s(txid, vout, by)
              cross join lateral (select txid from payment_inputs where currency = $1 and prev_txid = s.txid and prev_vout = s.vout offset 0) i
              where i.txid <> s.by),
           undone as (
             update own_outputs c set gone_height = $2 from rivals r
              where c.currency = $1 and c.txid = r.txid and c.height is null returning c.txid, c.vout),
           due as (
             update outgoing_batches set due_at = '-infinity'
              where id in (select i.batch_id from undone u join outgoing_inputs i on i.currency = $1 and i.txid = u.txid and i.vout = u.vout) returning 1)
           select 1 from undone`,
    values: [currency, block.height, ...spentColumns(spends)],
  });
  return rowCount ?? 0;
}

/** What is spent, and by which transaction: txids, output numbers and spending txids, for one `unnest`. */
const spentColumns = (spends: readonly Spend[]) =>
  [spends.map((spend) => spend.txid), spends.map((spend) => spend.vout), spends.map((spend) => spend.by)] as const;

type Output = OutputFacts & { readonly txid: string; readonly coinbase: boolean };

/**
 * In another block a transaction on Ethereum's chain may pay something else: what was recorded at a place where another amount is now, or another
 * address, is gone. What is booked, or was until an entry said that it is gone, stands behind all places of transactions: so an entry says that it is
 * gone, and no other one gets its keys.
 */
async function displaceOwnOutputs(sql: Sql, currency: CurrencyCode, outputs: readonly Output[]): Promise<void> {
  if (isUtxo(currency)) return;
  await sql.query({
    name: 'displace_own_outputs',
    text: `with other as (
             delete from own_outputs c using unnest($2::text[], $3::int[], $4::numeric[], $5::bytea[]) as o(txid, vout, amount, script)
              where c.currency = $1 and c.txid = o.txid and c.vout = o.vout and (c.amount <> o.amount or c.script <> o.script)
             returning c.*)
           insert into own_outputs (currency, txid, vout, amount, script, coinbase, of_block, booked, lost)
             select $1, o.txid,
                    coalesce((select max(x.vout) from own_outputs x where x.currency = $1 and x.txid = o.txid and x.vout >= $6 and x.vout < $7), $6)
                      + row_number() over (partition by o.txid order by o.vout),
                    o.amount, o.script, o.coinbase, o.of_block, o.booked, o.lost
               from other o where o.booked or o.lost > 0`,
    values: [
      currency,
      outputs.map((output) => output.txid),
      outputs.map((output) => output.vout),
      outputs.map((output) => output.amountMinor),
      outputs.map((output) => Buffer.from(output.script, 'hex')),
      DISPROVED_PLACE,
      BALANCE_PLACE,
    ],
  });
}

/** Returns which of them are our own, and whether nobody here has signed what made them. */
async function recordOwnOutputs(
  sql: Sql,
  currency: CurrencyCode,
  block: BlockRef,
  outputs: readonly Output[],
): Promise<readonly { readonly txid: string; readonly capital: boolean }[]> {
  await displaceOwnOutputs(sql, currency, outputs);
  const { rows } = await sql.query<{ txid: string; capital: boolean }>({
    // planned each time, as whose script it is (store/chain/script-owners.ts)
    text: `insert into own_outputs (currency, txid, vout, amount, script, height, block_hash, coinbase, of_block, booked, lost)
             select $1, o.txid, o.vout, o.amount, a.script, $2, $3, o.coinbase, o.coinbase or o.leaves,
                    -- no entry knows what a sweep brings from an address that this database has forgotten: it was restored, and the signer has
                    -- told it of the sweep
                    -- what a contract that we have paid sends back is no change of ours either
                    $8 and exists (select 1 from outgoing_attempts t join outgoing_batches b on b.id = t.batch_id
                             where t.currency = $1 and t.txid = o.txid and b.purpose = 'payout'),
                    -- entries of what was at its place have other keys
                    coalesce((select max(x.lost) + 1 from own_outputs x where x.currency = $1 and x.txid = o.txid and x.vout >= $11 and x.vout < $12), 0)
               from unnest($4::text[], $5::int[], $6::numeric[], $7::bytea[], $9::boolean[], $10::boolean[])
                      as o(txid, vout, amount, script, coinbase, leaves)
              cross join lateral (select script from own_addresses where script = o.script and currency = $1 offset 0) a
              where o.amount > 0
             on conflict (currency, txid, vout) do update
               set height = excluded.height, block_hash = excluded.block_hash, gone_height = null, booked = own_outputs.booked or excluded.booked
             returning txid, ${isCapital('own_outputs')} as capital`,
    values: [
      currency,
      block.height,
      block.hash,
      outputs.map((output) => output.txid),
      outputs.map((output) => output.vout),
      outputs.map((output) => output.amountMinor),
      outputs.map((output) => Buffer.from(output.script, 'hex')),
      isUtxo(currency),
      outputs.map((output) => output.coinbase),
      outputs.map((output) => output.pegOut === true),
      DISPROVED_PLACE,
      BALANCE_PLACE,
    ],
  });
  return rows;
}

/** A reorganisation removed every block above a height: what was in them is in none until the new branch shows it. */
export async function takeBackOutgoing(sql: Sql, currency: CurrencyCode, height: number): Promise<void> {
  const { rowCount } = await sql.query({
    name: 'take_back_outgoing',
    text: `with attempts as (
             update outgoing_attempts set height = null, block_hash = null, result = null, gas_paid = null where currency = $1 and height > $2 returning 1),
           outputs as (
             update own_outputs
                set height = null, block_hash = null, gone_height = case when of_block then coalesce(height, gone_height) when gone_height > $2 then null else gone_height end
              where currency = $1 and (height > $2 or gone_height > $2) returning 1),
           inputs as (
             update outgoing_inputs set spent_by = null, spent_height = null where currency = $1 and spent_height > $2 returning batch_id),
           -- what was undone may be so no more: a dead batch gives it back
           dead as (
             select i.batch_id from outgoing_batches b join outgoing_inputs i on i.batch_id = b.id
              where b.currency = $1 and b.state = 'dead' and b.tip is null and i.spent_by is null and not i.freed),
           due as (
             update outgoing_batches set due_at = '-infinity' where id in (select batch_id from inputs union all select batch_id from dead) returning 1),
           authorized as (delete from authorized_nonces where currency = $1 and height > $2 returning 1)
           select 1 from attempts union all select 1 from outputs union all select 1 from due`,
    values: [currency, height],
  });
  if ((rowCount ?? 0) > 0) await wakeDriver(sql);
}

/**
 * The same for what one block is no longer said to have used the inputs of a batch for. @param by the transaction that it was said to hold
 * @returns whether that was recorded
 */
export async function takeBackSpend(
  sql: Sql,
  batchId: string,
  { height, by }: { readonly height: number; readonly by: string },
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'take_back_spend',
    text: `with attempts as (
             update outgoing_attempts set height = null, block_hash = null, result = null, gas_paid = null where batch_id = $1 and height = $2 and txid = $3 returning 1),
           inputs as (
             update outgoing_inputs set spent_by = null, spent_height = null where batch_id = $1 and spent_height = $2 and spent_by = $3 and not freed returning 1),
           taken as (select 1 from attempts union all select 1 from inputs),
           -- until its driver has looked at it again, its state says what it was before
           due as (update outgoing_batches set due_at = '-infinity' where id = $1 and exists (select from taken) returning 1)
           select 1 from taken`,
    values: [batchId, height, by],
  });
  return (rowCount ?? 0) > 0;
}

/** The same for outputs at our own addresses that one block is no longer said to hold. @param at currency, height, hash and scripts */
export async function takeBackOwn(sql: Sql, at: readonly unknown[]): Promise<void> {
  const { rowCount } = await sql.query({
    name: 'take_back_own_outputs',
    text: `update own_outputs set height = null, block_hash = null where currency = $1 and height = $2 and block_hash = $3 and script = any ($4)`,
    values: [...at],
  });
  if ((rowCount ?? 0) > 0) await wakeDriver(sql);
}

/** Wakes the driver's job when the database transaction commits. */
export async function wakeDriver(sql: Sql): Promise<void> {
  await sql.query({ name: 'wake_payout_driver', text: `select pg_notify('hurry', $1)`, values: [PAYOUT_JOBS] });
}
