// Money that has left without this database knowing why, and the outputs that it believes unspent.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Outpoint } from '../../core/ports.ts';
import type { Sql } from '../postgres/connect.ts';
import type { SpendableOutput } from './batches.ts';

export type UnknownMovement = {
  /** USD: a bank file. */
  readonly currency: CurrencyCode | 'USD';
  /** The file's name in the place of a txid. Null where an output is spent and nobody has found by what. */
  readonly txid: string | null;
  /** The block that held it when it was found; null = none did. */
  readonly blockHash: string | null;
  readonly finding: string;
  /** The outputs of ours that a transaction spends. */
  readonly spends?: readonly Outpoint[];
};
export type OpenMovement = UnknownMovement & {
  /** Of its block, while that is in the best chain. */
  readonly height: number | null;
};

/** What is found of an output of ours that something spends, and nobody has found what. */
export const UNEXPLAINED =
  'is spent, and nothing was found that spends it (an explorer of the chain names it: bursar payout recover <txid> --block <hash>)';

/** Whether one of these outputs is such a one. */
export async function isUnexplained(sql: Sql, currency: CurrencyCode, outputs: readonly Outpoint[]): Promise<boolean> {
  const named = new Set(outputs.map(({ txid, vout }) => `output ${txid}:${vout} ${UNEXPLAINED}`));
  return (await openMovements(sql)).some((one) => one.currency === currency && one.txid === null && named.has(one.finding));
}

/** Those that nobody has resolved, oldest first. */
export async function openMovements(sql: Sql): Promise<readonly OpenMovement[]> {
  const { rows } = await sql.query<OpenMovement>({
    name: 'open_movements',
    text: `select u.currency, u.txid, u.block_hash as "blockHash", u.finding, b.height
             from unknown_movements u left join blocks b on b.currency = u.currency and b.hash = u.block_hash
            where u.resolved_at is null order by u.id`,
    values: [],
  });
  return rows;
}

const spentBy = (outputs: readonly Outpoint[] | undefined): readonly string[] | null =>
  outputs?.map(({ txid, vout }) => `${txid}:${vout}`) ?? null;

/** Records them; one that is open already gets its block. */
export async function recordMovements(sql: Sql, movements: readonly UnknownMovement[], atMs: number): Promise<void> {
  for (const { currency, txid, blockHash, finding, spends } of movements) {
    await sql.query({
      name: 'record_movement',
      text: `insert into unknown_movements (currency, txid, block_hash, finding, seen_at, spends) values ($1, $2, $3, $4, $5, $6)
               on conflict (currency, coalesce(txid, finding)) where resolved_at is null
               do update set block_hash = coalesce(excluded.block_hash, unknown_movements.block_hash), finding = excluded.finding,
                             spends = coalesce(excluded.spends, unknown_movements.spends)`,
      values: [currency, txid, blockHash, finding, new Date(atMs), spentBy(spends)],
    });
  }
}

/** Ends what was open of a currency under other names than these: it was moved away, or is known by now. */
export async function closeMovements(sql: Sql, currency: 'USD', still: readonly string[], atMs: number): Promise<void> {
  await sql.query({
    name: 'close_movements',
    text: `update unknown_movements set resolved_at = $3, resolved_by = 'a later look', resolution = 'it is known, or no longer there'
            where currency = $1 and resolved_at is null and txid <> all ($2)`,
    values: [currency, still, new Date(atMs)],
  });
}

/** Outputs that were missing at the last look and are there again, or whose spender was found since, are no longer open by themselves. */
export async function closeUnexplained(sql: Sql, currency: CurrencyCode, still: readonly string[], atMs: number): Promise<void> {
  await sql.query({
    name: 'close_unexplained',
    text: `update unknown_movements set resolved_at = $3, resolved_by = 'a later look', resolution = 'the output is there, or what spends it was found'
            where currency = $1 and txid is null and resolved_at is null and finding <> all ($2)`,
    values: [currency, still, new Date(atMs)],
  });
}

/**
 * Ends what is open of transactions that can be mined no more: they are in no block, and another one, which is known here or was found, has spent an
 * output of ours that they spend, at this height or below it.
 */
export async function closeReplaced(
  sql: Sql,
  currency: CurrencyCode,
  { finalHeight, atMs }: { readonly finalHeight: number; readonly atMs: number },
): Promise<void> {
  await sql.query({
    name: 'close_replaced',
    text: `update unknown_movements u set resolved_at = $3, resolved_by = 'a later look', resolution = 'another transaction has spent the same output for good'
            where u.currency = $1 and u.resolved_at is null
              and not exists (select from blocks b where b.currency = u.currency and b.hash = u.block_hash)
              and (exists (select from unnest(u.spends) o
                             join outgoing_inputs i on i.currency = $1 and i.txid = split_part(o, ':', 1) and i.vout = split_part(o, ':', 2)::int
                            where i.spent_by <> u.txid and i.spent_height <= $2)
                -- what the outputs were that it has spent is not known here
                or exists (select from unknown_movements r join blocks b on b.currency = r.currency and b.hash = r.block_hash
                            where r.currency = $1 and r.txid <> u.txid and r.spends && u.spends and b.height <= $2))`,
    values: [currency, finalHeight, new Date(atMs)],
  });
}

/** What was recorded of a transaction: `open` waits for an operator, `resolved` is over; null = nothing. */
export async function movementOf(sql: Sql, currency: CurrencyCode, txid: string): Promise<'open' | 'resolved' | null> {
  const { rows } = await sql.query<{ isOpen: boolean }>({
    name: 'movement_of',
    text: `select resolved_at is null as "isOpen" from unknown_movements where currency = $1 and txid = $2 order by id desc limit 1`,
    values: [currency, txid],
  });
  const [row] = rows;
  if (row === undefined) return null;
  return row.isOpen ? 'open' : 'resolved';
}

type Resolution = {
  readonly by: string;
  readonly text: string;
  readonly atMs: number;
  /** What was booked of it: its block, and all the outputs that it spends. */
  readonly booked?: { readonly blockHash: string; readonly spends: readonly Outpoint[] };
};

/** Ends what is open of a transaction; returns whether something was. */
export async function resolveMovement(
  sql: Sql,
  of: { readonly currency: CurrencyCode | 'USD'; readonly txid: string },
  { by, text, atMs, booked }: Resolution,
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'resolve_movement',
    text: `update unknown_movements set resolved_at = $5, resolved_by = $3, resolution = $4, block_hash = coalesce($6, block_hash), spends = coalesce($7, spends)
            where currency = $1 and txid = $2 and resolved_at is null`,
    values: [of.currency, of.txid, by, text, new Date(atMs), booked?.blockHash ?? null, spentBy(booked?.spends)],
  });
  return rowCount === 1;
}

export type BelievedOutput = Omit<SpendableOutput, 'amount'>;

/** Our booked outputs that nothing spends as far as this database knows, those of batches without a signature included; the largest ones. */
export async function believedUnspent(sql: Sql, currency: CurrencyCode, limit: number): Promise<readonly BelievedOutput[]> {
  const { rows } = await sql.query<Omit<BelievedOutput, 'index'> & { index: bigint }>({
    name: 'believed_unspent',
    text: `select txid, vout, script, chain, index from (
             select c.txid, c.vout, c.amount, c.script, 1 as chain, a.address_index as index
               from own_outputs c join own_addresses a on a.script = c.script
              where c.currency = $1 and not c.spent and c.booked and c.height is not null
             union all
             select p.txid, p.vout, p.amount, t.script, 0, t.address_index
               from payments p join transactions t on t.id = p.transaction_id and t.currency = p.currency
              where p.currency = $1 and p.part_key is not null and not p.spent and p.height is not null
             union all
             select i.txid, i.vout, i.amount, i.script, i.chain, i.address_index
               from outgoing_inputs i join outgoing_batches b on b.id = i.batch_id
              where i.currency = $1 and b.state = 'reserved') q order by amount desc limit $2`,
    values: [currency, limit],
  });
  return rows.map((row) => ({ ...row, index: Number(row.index) }));
}

/** The heights of the blocks that have made these outputs of ours; without those of which it is not known. */
export async function heightsOfOutputs(
  sql: Sql,
  currency: CurrencyCode,
  outpoints: readonly { readonly txid: string; readonly vout: number }[],
): Promise<readonly { readonly txid: string; readonly vout: number; readonly height: number }[]> {
  const { rows } = await sql.query<{ txid: string; vout: number; height: number }>({
    name: 'heights_of_outputs',
    text: `with asked as (select * from unnest($2::text[], $3::int[]) as a(txid, vout))
           select c.txid, c.vout, c.height from asked a join own_outputs c on c.currency = $1 and c.txid = a.txid and c.vout = a.vout
            where c.height is not null
           union
           select p.txid, p.vout, p.height from asked a join payments p on p.currency = $1 and p.txid = a.txid and p.vout = a.vout
            where p.part_key is not null and p.height is not null`,
    values: [currency, outpoints.map(({ txid }) => txid), outpoints.map(({ vout }) => vout)],
  });
  return rows;
}

/** Those of the outputs that are booked outputs of ours, with the batch that spends them (null = none). */
export async function forgottenOutputs(
  sql: Sql,
  currency: CurrencyCode,
  outpoints: readonly { readonly txid: string; readonly vout: number }[],
): Promise<readonly (SpendableOutput & { readonly batchId: string | null })[]> {
  type Row = Omit<SpendableOutput, 'amount' | 'index'> & { amount: string; index: bigint; batchId: string | null };
  const { rows } = await sql.query<Row>({
    name: 'forgotten_outputs',
    text: `with asked as (select * from unnest($2::text[], $3::int[]) as a(txid, vout))
           select c.txid, c.vout, c.amount, c.script, 1 as chain, o.address_index as index, i.batch_id as "batchId"
             from asked a join own_outputs c on c.currency = $1 and c.txid = a.txid and c.vout = a.vout and c.booked
             join own_addresses o on o.script = c.script
             left join outgoing_inputs i on i.currency = $1 and i.txid = a.txid and i.vout = a.vout and not i.freed
           union all
           select p.txid, p.vout, p.amount, t.script, 0, t.address_index, i.batch_id
             from asked a join payments p on p.currency = $1 and p.txid = a.txid and p.vout = a.vout and p.part_key is not null
             join transactions t on t.id = p.transaction_id and t.currency = p.currency
             left join outgoing_inputs i on i.currency = $1 and i.txid = a.txid and i.vout = a.vout and not i.freed
           order by txid, vout`,
    values: [currency, outpoints.map(({ txid }) => txid), outpoints.map(({ vout }) => vout)],
  });
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount), index: Number(row.index) }));
}

/** One of the outputs that is a payment which is not booked yet; null = none is. */
export async function unbookedOutput(sql: Sql, currency: CurrencyCode, outpoints: readonly Outpoint[]): Promise<Outpoint | null> {
  const { rows } = await sql.query<Outpoint>({
    name: 'unbooked_output',
    text: `select p.txid, p.vout from unnest($2::text[], $3::int[]) as a(txid, vout)
             join payments p on p.currency = $1 and p.txid = a.txid and p.vout = a.vout
            where p.part_key is null order by 1, 2 limit 1`,
    values: [currency, outpoints.map(({ txid }) => txid), outpoints.map(({ vout }) => vout)],
  });
  return rows[0] ?? null;
}

/** A payout that nothing was signed for. */
export type UnsignedPayout = {
  readonly id: string;
  readonly script: string;
  /** The most and the least that its output has: of a reimbursement the network fee is taken from it. */
  readonly amount: bigint;
  readonly least: bigint;
  /** The transaction whose payments go back; null for a payout. */
  readonly reimburses: string | null;
};

/** Payouts of a currency that are open and that no stored signature pays: a transaction that pays one was forgotten, or is a stranger's. */
export async function unsignedPayouts(sql: Sql, currency: CurrencyCode): Promise<readonly UnsignedPayout[]> {
  type Row = { id: string; script: string; amount: string; least: string; reimburses: string | null };
  const { rows } = await sql.query<Row>({
    name: 'unsigned_payouts',
    text: `select p.id, encode(p.script, 'hex') as script, p.amount, p.reimburses,
                  case when p.reimburses is null then p.amount else p.amount - p.fee_max end as least from payouts p
            where p.currency = $1 and p.step <> 'ended' and p.script is not null and p.internal_to is null
              and not exists (select 1 from outgoing_shares s where s.payout_id = p.id) order by p.created_at, p.id`,
    values: [currency],
  });
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount), least: BigInt(row.least) }));
}

export type DecidedPayout = UnsignedPayout & {
  readonly outcome: 'paid' | 'failed';
  /** What was taken from our side when it was decided as paid. */
  readonly booked: bigint;
  /** Outputs that are none of ours were taken to have paid it. */
  readonly byOthers: boolean;
};

/** Those that an operator has decided, that nothing was signed for, and that no movement was found for since. */
export async function decidedPayouts(sql: Sql, currency: CurrencyCode): Promise<readonly DecidedPayout[]> {
  type Row = Omit<DecidedPayout, 'amount' | 'least' | 'booked'> & { amount: string; least: string; booked: string };
  const { rows } = await sql.query<Row>({
    name: 'decided_payouts',
    text: `select p.id, encode(p.script, 'hex') as script, p.amount, p.reimburses, case p.status when 'completed' then 'paid' else 'failed' end as outcome,
                  case when p.reimburses is null then p.amount else p.amount - p.fee_max end as least, p.amount as booked,
                  exists (select from ledger.entry e where e.key = 'found:' || lower(p.currency) || ':' || p.id) as "byOthers"
             from payouts p
            where p.currency = $1 and p.step = 'ended' and p.resolved and p.script is not null and (p.status = 'completed' or p.reimburses is null)
              and not exists (select 1 from outgoing_shares s where s.payout_id = p.id)
              and not exists (select from ledger.entry e where e.key = 'adopted:' || p.id) order by p.created_at, p.id`,
    values: [currency],
  });
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount), least: BigInt(row.least), booked: BigInt(row.booked) }));
}

/** Whether an output is what such a payout asks for. */
export function paysPayout(output: { readonly script: string; readonly amountMinor: bigint }, payout: UnsignedPayout): boolean {
  return output.script === payout.script && output.amountMinor <= payout.amount && output.amountMinor >= payout.least;
}

/** Those of the transactions that were signed here. */
export async function signedHere(sql: Sql, currency: CurrencyCode, txids: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ txid: string }>({
    name: 'signed_here',
    text: 'select txid from outgoing_attempts where currency = $1 and txid = any ($2)',
    values: [currency, txids],
  });
  return new Set(rows.map((row) => row.txid));
}

/** The blocks of the best chain above a height as they were read, lowest first. */
export async function blocksAbove(
  sql: Sql,
  currency: CurrencyCode,
  height: number,
): Promise<readonly { readonly height: number; readonly hash: string }[]> {
  const { rows } = await sql.query<{ height: number; hash: string }>({
    name: 'blocks_above',
    text: 'select height, hash from blocks where currency = $1 and height > $2 order by height',
    values: [currency, height],
  });
  return rows;
}
