// The nonces of our addresses on Ethereum's chain: which is next, how many the chain has used, and what is on its way out. What an operator has had
// booked as used by an authorization (after-restore/authorized-nonces.ts) counts as used.
import { GAS } from '../../core/currencies/evm.ts';
import type { EvmCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

/** SQL: the nonces of a sender ($2) of a currency ($1), each with its batch, if it has one, and the height at which a block shows it to be used. */
const OF_SENDER = `
             select vout as nonce, spent_height as used_at, batch_id from outgoing_inputs where currency = $1 and txid = $2
             union all select nonce, height, null from authorized_nonces where currency = $1 and sender = $2`;

/**
 * The next nonce of a sender: none is ever reserved twice. The lock of the currency's outputs is held.
 * @param sender as an input's txid
 * @returns null while none was ever reserved here
 */
export async function nextNonce(sql: Sql, currency: EvmCode, sender: string): Promise<number | null> {
  const { rows } = await sql.query<{ next: number | null }>({
    name: 'next_nonce',
    text: `select (max(nonce) + 1)::int as next from (${OF_SENDER}) q`,
    values: [currency, sender],
  });
  return rows[0]?.next ?? null;
}

/** What batches of a sender take that no block up to a height holds: how many, their amounts, and the most that their gas may cost in wei. */
export async function openOutflow(
  sql: Sql,
  { currency, sender }: { readonly currency: EvmCode; readonly sender: string },
  height: number,
): Promise<{ readonly count: number; readonly hasUnsigned: boolean; readonly units: bigint; readonly gas: bigint }> {
  const { rows } = await sql.query<{ count: number; unsigned: boolean | null; units: string; gas: string }>({
    name: 'open_evm_outflow',
    text: `select count(*)::int as count, bool_or(b.state = 'reserved') as unsigned, coalesce(sum(i.amount), 0) as units,
                  coalesce(sum(coalesce((select max(a.vbytes * a.max_fee) from outgoing_attempts a where a.batch_id = b.id), b.gas_limit * b.fee_rate::numeric)), 0) as gas
             from outgoing_batches b join outgoing_inputs i on i.batch_id = b.id
            where b.currency = $1 and i.txid = $3 and b.state <> 'dead' and (i.spent_height is null or i.spent_height > $2)`,
    values: [currency, height, sender],
  });
  const row = rows[0];
  return {
    count: row?.count ?? 0,
    hasUnsigned: row?.unsigned === true,
    units: BigInt(row?.units ?? 0),
    gas: BigInt(row?.gas ?? 0),
  };
}

/**
 * How many nonces of a sender blocks up to a height have used, as far as it is known here without a gap: of what was forgotten together the newest
 * may be booked first. Null while none was ever reserved. What was booked of the time before the first that was signed here is no gap.
 */
export async function usedNonces(sql: Sql, currency: EvmCode, sender: string, height: number): Promise<number | null> {
  const { rows } = await sql.query<{ used: number | null }>({
    name: 'used_nonces',
    text: `with signed as (
             select i.vout from outgoing_inputs i
              where i.currency = $1 and i.txid = $2
                and (not exists (select from outgoing_attempts a where a.batch_id = i.batch_id)
                     or exists (select from outgoing_attempts a where a.batch_id = i.batch_id and length(a.raw) > 0))
              order by i.vout limit 1),
           first as (
             select coalesce((select vout from signed), (select min(nonce) from (${OF_SENDER}) q)) as nonce),
           used as (
             select u.vout, lead(u.vout) over (order by u.vout) as next
               from (select distinct q.nonce as vout from (${OF_SENDER}) q, first where q.nonce >= first.nonce and q.used_at <= $3) u)
           select case when exists (select from used where used.vout = first.nonce)
                       then (select min(vout) + 1 from used where next is distinct from vout + 1) else nonce end::int as used from first`,
    values: [currency, sender, height],
  });
  return rows[0]?.used ?? null;
}

/** What blocks up to a height show to have used a nonce of a sender, and is not known here: what it has taken is not either. Null: nothing. */
export async function unknownSend(sql: Sql, currency: EvmCode, sender: string, height: number): Promise<string | null> {
  const { rows } = await sql.query<{ txid: string }>({
    name: 'unknown_send',
    text: `select i.spent_by as txid from outgoing_inputs i
            where i.currency = $1 and i.txid = $2 and i.spent_height <= $3
              and not exists (select from outgoing_attempts a where a.currency = i.currency and a.txid = i.spent_by)
              and not exists (select from authorized_nonces n where n.currency = i.currency and n.sender = i.txid and n.nonce = i.vout)
            order by i.vout limit 1`,
    values: [currency, sender, height],
  });
  return rows[0]?.txid ?? null;
}

/** A payout of a sender that had failed and was given back, and that has left all the same, as a block up to a height shows. Null: none. */
export async function leftAfterAll(sql: Sql, currency: EvmCode, sender: string, height: number): Promise<string | null> {
  const { rows } = await sql.query<{ txid: string }>({
    name: 'left_after_all',
    text: `select a.txid from outgoing_inputs i join outgoing_batches b on b.id = i.batch_id join outgoing_attempts a on a.batch_id = b.id
            where i.currency = $1 and i.txid = $2 and b.purpose = 'payout' and b.state = 'dead' and a.height <= $3 and a.result in ('paid', 'unclear')
            order by i.vout limit 1`,
    values: [currency, sender, height],
  });
  return rows[0]?.txid ?? null;
}

/** Those of a sender's nonces from one on that something is known to have used. */
export async function knownNonces(sql: Sql, currency: EvmCode, sender: string, from: number): Promise<Set<number>> {
  const { rows } = await sql.query<{ vout: number }>({
    name: 'known_nonces',
    text: `select distinct nonce as vout from (${OF_SENDER}) q where nonce >= $3 and used_at is not null`,
    values: [currency, sender, from],
  });
  return new Set(rows.map(({ vout }) => vout));
}

/** All of a sender's nonces that something is reserved for, was signed for, or is known to have used. */
export async function reservedNonces(sql: Sql, currency: EvmCode, sender: string): Promise<Set<number>> {
  const { rows } = await sql.query<{ vout: number }>({
    name: 'reserved_nonces',
    text: `select distinct nonce as vout from (${OF_SENDER}) q`,
    values: [currency, sender],
  });
  return new Set(rows.map(({ vout }) => vout));
}

/** How many nonces of a sender are used or signed for, as far as it is known here; null while none is. */
export async function signedNonces(sql: Sql, currency: EvmCode, sender: string): Promise<number | null> {
  const { rows } = await sql.query<{ signed: number | null }>({
    name: 'signed_nonces',
    text: `select (max(nonce) + 1)::int as signed from (${OF_SENDER}) q
            where used_at is not null or exists (select from outgoing_attempts a where a.batch_id = q.batch_id)`,
    values: [currency, sender],
  });
  return rows[0]?.signed ?? null;
}

/**
 * Ends what is open of transactions that can be mined no more: no block has them, and of each nonce that they name it is known that another one has used
 * it, at this height or below it.
 */
export async function closeDisplaced(
  sql: Sql,
  currency: EvmCode,
  { finalHeight, atMs }: { readonly finalHeight: number; readonly atMs: number },
): Promise<void> {
  await sql.query({
    name: 'close_displaced',
    text: `update unknown_movements u set resolved_at = $3, resolved_by = 'a later look', resolution = 'another transaction has used its nonce for good'
            where u.currency = $1 and u.resolved_at is null and cardinality(u.spends) > 0
              and not exists (select from blocks b where b.currency = u.currency and b.hash = u.block_hash)
              and not exists (select from unnest(u.spends) o where not exists (
                    select from (select txid, vout, spent_by, spent_height from outgoing_inputs where currency = $1
                                 union all select sender, nonce, txid, height from authorized_nonces where currency = $1) used
                     where used.txid = split_part(o, ':', 1) and used.vout = split_part(o, ':', 2)::int
                       and used.spent_by <> u.txid and used.spent_height <= $2))`,
    values: [currency, finalHeight, new Date(atMs)],
  });
}

/** The block of the best chain at a height, as it was read here; null where none was. */
export async function readBlockHash(sql: Sql, currency: EvmCode, height: number): Promise<string | null> {
  const { rows } = await sql.query<{ hash: string }>({
    name: 'block_hash_at',
    text: 'select hash from blocks where currency = $1 and height = $2',
    values: [currency, height],
  });
  return rows[0]?.hash ?? null;
}

/** Batches whose transactions are signed and in no block. */
export async function openBatches(sql: Sql, currency: EvmCode): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'open_evm_batches',
    text: `select b.id from outgoing_batches b join outgoing_inputs i on i.batch_id = b.id
            where b.currency = $1 and b.state = 'signed' and i.spent_by is null order by i.vout`,
    values: [currency],
  });
  return rows.map(({ id }) => id);
}

/**
 * What its merchant's payments in ether to contracts have come to, when another one is next: a contract may do something else in its block than
 * when it was tried, and the gas of what fails is the service's.
 * @returns `under_way`: one is signed, and no block has shown that it was taken; `reverted`: the last that a block held failed, and no person has
 *   approved this one
 */
export async function contractPayees(sql: Sql, payoutId: string): Promise<'under_way' | 'reverted' | null> {
  const { rows } = await sql.query<{ under_way: boolean; reverted: boolean | null }>({
    name: 'contract_payees',
    text: `with next as (select id, merchant_id, currency, approved_at from payouts where id = $1),
           others as (
             select b.state, b.gas_limit, a.result, a.height
               from next join payouts p on p.merchant_id = next.merchant_id and p.currency = next.currency and p.id <> next.id
               join outgoing_batches b on b.id = p.batch_id
               left join outgoing_attempts a on a.batch_id = b.id and a.height is not null
              where b.tip is not null)
           select exists (select from others where state in ('reserved', 'signed') and gas_limit > $2 and result is distinct from 'paid') as under_way,
                  -- an address that was plain when it was tried, and had code in the block, counts too
                  (select result = 'failed' and next.approved_at is null from next, others where result is not null and (gas_limit > $2 or result = 'failed')
                    order by height desc limit 1) as reverted`,
    values: [payoutId, GAS.plain],
  });
  const [row] = rows;
  return row?.under_way === true ? 'under_way' : row?.reverted === true ? 'reverted' : null;
}
