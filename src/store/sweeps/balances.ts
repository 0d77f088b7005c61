// What is known here to have come to our addresses on Ethereum's chain and gone from them, up to a block, and what a node has said that they hold
// there. The audit names the differences (store/ledger/balance-audit.ts).
import type { BlockRef } from '../../core/block-ref.ts';
import { BALANCE_PLACE, DISPROVED_PLACE } from '../../core/currencies/evm.ts';
import { type CurrencyCode, ETHER, EVM_CODES, type EvmCode } from '../../core/currency.ts';
import type { SaidToHold } from '../../core/evm/port.ts';
import type { Sql } from '../postgres/connect.ts';
import { SENDER } from './addresses.ts';
import { WRITTEN_OFF } from './written-off.ts';

/** What is written off is not taken from it: whoever compares does that, so that it counts at once. */
export type KnownBalance = { readonly script: Buffer; readonly known: bigint };

/** SQL: what a mined transaction of a batch has moved: the outpoint's amount, but for what of it was gas, or was not sent. */
const MOVED = `case when b.purpose = 'sweep' and a.currency = '${ETHER}' then i.amount - a.gas_paid
                    when b.purpose = 'payout' and a.currency = '${ETHER}' then i.amount - a.fee
                    else i.amount end`;
/**
 * SQL: what it asks for is gone from its sender; what has not arrived of that is written off where it should have. What an operator has had booked as
 * having taken nothing of its currency has no bytes, and is dead.
 */
const HAS_MOVED = `((a.result = 'paid' and not (b.state = 'dead' and length(a.raw) = 0))
                      or (a.result = 'unclear' and b.purpose <> 'top_up' and b.state = 'final'))`;
/** SQL: batches with their one input and the transaction of theirs that a block up to $2 holds. */
const MINED = `outgoing_batches b join outgoing_inputs i on i.batch_id = b.id join outgoing_attempts a on a.batch_id = b.id and a.height <= $2`;

/** Addresses at which a node has denied what is known, and that are asked about before others: one that is wrong may deny them all. */
const MOST_DENIED = 50;

/**
 * The addresses that are compared next: our own ones and those that differed, some at which a node has denied what is known, then those at which
 * something is written off, and those of transactions from which nothing was moved yet, of each the longest not compared first.
 */
export function balancesToCompare(
  sql: Sql,
  currency: EvmCode,
  { height, limit }: { readonly height: number; readonly limit: number },
): Promise<readonly KnownBalance[]> {
  return knownOf(sql, {
    chosen: `
             select s.script from (
               select script from own_addresses where currency = $1
               union select c.script from address_balances c where c.currency = $1 and (c.said_less is not null or c.found <> ${KNOWN})
               union select script from written_off where currency = $1
               union select t.script from payments p join transactions t on t.id = p.transaction_id
                      where p.currency = $1 and p.part_key is not null and not p.spent and p.height is not null and t.currency in (${EVM})) s
               left join address_balances c on c.currency = $1 and c.script = s.script
              -- strangers choose how many hold too little to be moved
              order by (exists (select from own_addresses o where o.currency = $1 and o.script = s.script)
                        or coalesce(c.found <> ${KNOWN}, false)) desc,
                       (c.said_less is not null and row_number() over (partition by c.said_less is null order by c.compared_at) <= ${MOST_DENIED}) desc,
                       c.compared_at nulls first limit $3`,
    values: [currency, height, limit],
  });
}

/** What is known to be at some addresses after a block. */
export function knownBalances(
  sql: Sql,
  currency: EvmCode,
  { height, scripts }: { readonly height: number; readonly scripts: readonly Buffer[] },
): Promise<readonly KnownBalance[]> {
  const chosen = 'select script from unnest($3::bytea[]) as u(script)';
  return knownOf(sql, { chosen, values: [currency, height, scripts] });
}

/** @param asked `chosen`: SQL of the scripts; its first two parameters are currency and height */
async function knownOf(
  sql: Sql,
  { chosen, values }: { readonly chosen: string; readonly values: readonly unknown[] },
): Promise<readonly KnownBalance[]> {
  const { rows } = await sql.query<{ script: Buffer; known: string }>({
    text: `with chosen as materialized (${chosen})
           select s.script,
                  coalesce((select sum(p.amount) from transactions t join payments p on p.transaction_id = t.id
                             where t.script = s.script and p.currency = $1 and p.state = 'mined' and p.height <= $2), 0)
                + coalesce((select sum(e.amount) from transactions t join early_payments e on e.transaction_id = t.id
                             where t.script = s.script and e.currency = $1 and e.accepted_at is null and e.height <= $2), 0)
                + coalesce((select sum(o.amount) from own_outputs o where o.script = s.script and o.currency = $1 and o.height <= $2
                               -- a sweep from an address that a restored database has forgotten is among those below
                               and not exists (select 1 from outgoing_attempts a join outgoing_batches b on b.id = a.batch_id
                                                where a.currency = o.currency and a.txid = o.txid and b.purpose <> 'payout')), 0)
                + coalesce((select sum(${MOVED}) from ${MINED} where b.target = s.script and a.currency = $1 and ${HAS_MOVED}), 0)
                - coalesce((select sum(case when ${HAS_MOVED} and a.currency = $1 then ${MOVED} else 0 end
                                       + case when $1 = '${ETHER}' then a.gas_paid else 0 end)
                              from ${MINED} where i.currency in (${EVM}) and i.txid = ${SENDER('s.script')}), 0) as known
             from chosen s
            -- what it has sent to another one of ours is no loss, and is booked once two nodes show it
            where not exists (select from forgotten_moves m where m.sender = ${SENDER('s.script')} and m.height <= $2)
              -- nor what has not ended yet, and may not have arrived whole
              and not exists (select from ${MINED} where a.result = 'unclear' and b.state not in ('final', 'dead')
                                 and i.currency = $1 and i.txid = ${SENDER('s.script')})`,
    values: [...values],
  });
  return rows.map((row) => ({ script: row.script, known: BigInt(row.known) }));
}
const EVM = EVM_CODES.map((code) => `'${code}'`).join();

/** What is known at an address is derived anew, after the block up to which it was compared last: what has left it is booked meanwhile. */
export async function knownAnew(sql: Sql, script: Buffer): Promise<void> {
  const { rows } = await sql.query<{ currency: EvmCode; height: number }>({
    name: 'compared_up_to',
    text: 'select currency, height from address_balances where script = $1 order by currency for no key update',
    values: [script],
  });
  for (const { currency, height } of rows)
    for (const { known } of await knownBalances(sql, currency, { height, scripts: [script] }))
      await sql.query({
        name: 'known_anew',
        text: 'update address_balances set known = $3 where currency = $1 and script = $2',
        values: [currency, script, known],
      });
}

/** What was at an address before its transaction was made, and is no payment (`txid:vout`): none of it is booked. */
export async function unbookedAt(
  sql: Sql,
  currency: EvmCode,
  { height, script }: { readonly height: number; readonly script: Buffer },
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ outpoint: string }>({
    name: 'early_at_address',
    text: `select e.txid || ':' || e.vout as outpoint from transactions t join early_payments e on e.transaction_id = t.id
            where t.script = $2 and e.currency = $1 and e.accepted_at is null and e.height <= $3 order by e.height, e.txid, e.vout`,
    values: [currency, script, height],
  });
  return rows.map(({ outpoint }) => outpoint);
}

/** The highest block that the second reading has read in every currency of the chain; null while one has not begun. */
export async function comparableBlock(sql: Sql, currencies: readonly EvmCode[]): Promise<BlockRef | null> {
  const { rows } = await sql.query<BlockRef & { count: number }>({
    name: 'comparable_block',
    text: `select c.height, c.hash, (count(*) over ())::int as count from chain_reconciled c
             join blocks b on b.currency = c.currency and b.height = c.height and b.hash = c.hash where c.currency = any ($1)
            order by c.height limit 1`,
    values: [currencies],
  });
  const [row] = rows;
  return row?.count === currencies.length ? { height: row.height, hash: row.hash } : null;
}

/** SQL: of a compared balance, what is known to be at the address, without what was written off there. */
export const KNOWN = `(c.known - ${WRITTEN_OFF('c.currency', 'c.script', 'c.height')})`;
/** SQL: a balance that was compared has less than is known. */
const IS_LESS = `c.found < ${KNOWN}`;

/** Whether an address of our own holds less than is known, by the last comparison: something has left that is not known. */
export async function isMissingAtOwn(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ missing: boolean }>({
    name: 'is_missing_at_own',
    text: `select exists (select from own_addresses o join address_balances c on c.script = o.script where ${IS_LESS}) as missing`,
    values: [],
  });
  return rows[0]?.missing === true;
}

export type MoreAtOwn = {
  readonly script: Buffer;
  readonly height: number;
  readonly amount: bigint;
  /** What was taken back there besides. */
  readonly gone: bigint;
  /** What of all that is known to have come there is written off. */
  readonly writtenOff: bigint;
};

/** SQL: the balances of our own addresses in a currency ($1) that were compared. */
const AT_OWN = 'own_addresses o join address_balances c on c.currency = o.currency and c.script = o.script where o.currency = $1';

/** SQL: what was recorded there and is in no block now: it is the first of what an address may hold beyond what is known. */
const GONE = `coalesce((select sum(g.amount) from own_outputs g where g.currency = c.currency and g.script = c.script and g.height is null
                            and (g.vout < ${DISPROVED_PLACE} or g.vout >= ${BALANCE_PLACE})), 0)`;

/**
 * The addresses of our own that held more than is known after the block of the last comparison, and how much more, in minor units, than what was
 * taken back there besides.
 */
export async function moreAtOwn(sql: Sql, currency: CurrencyCode): Promise<readonly MoreAtOwn[]> {
  const { rows } = await sql.query<{ script: Buffer; height: number; amount: string; gone: string; writtenOff: string }>({
    name: 'more_at_own',
    text: `select c.script, c.height, c.found - ${KNOWN} - ${GONE} as amount, ${GONE} as gone, ${WRITTEN_OFF('c.currency', 'c.script', 'c.height')} as "writtenOff"
             from ${AT_OWN} and c.found > ${KNOWN} + ${GONE}`,
    values: [currency],
  });
  return rows.map(({ amount, gone, writtenOff, ...row }) => ({
    ...row,
    amount: BigInt(amount),
    gone: BigInt(gone),
    writtenOff: BigInt(writtenOff),
  }));
}

/** What is known at addresses of our own that held something else is derived anew: it may have been recorded since they were compared. */
export async function ownKnownAnew(sql: Sql, currency: CurrencyCode): Promise<void> {
  const { rows } = await sql.query<{ script: Buffer }>({
    name: 'otherwise_at_own',
    text: `select c.script from ${AT_OWN} and c.found <> ${KNOWN} order by c.script`,
    values: [currency],
  });
  for (const { script } of rows) await knownAnew(sql, script);
}

/**
 * The first block in which something is known to have come to an address of our own that holds less than is known: what it has sent since may be what
 * is missing. Null: it holds what is known, in every currency.
 */
export async function missingSince(sql: Sql, script: Buffer): Promise<number | null> {
  const { rows } = await sql.query<{ height: number | null }>({
    name: 'missing_since',
    text: `select min(height) as height from own_outputs
            where script = $1 and exists (select from address_balances c where c.script = $1 and ${IS_LESS})`,
    values: [script],
  });
  return rows[0]?.height ?? null;
}

type ComparedBalance = KnownBalance & { readonly said: SaidToHold };

/** Stores what nodes have said of addresses after a block. */
export async function saveBalances(
  sql: Sql,
  currency: EvmCode,
  { height, atMs }: { readonly height: number; readonly atMs: number },
  compared: readonly ComparedBalance[],
): Promise<void> {
  await sql.query({
    name: 'save_balances',
    text: `insert into address_balances (currency, script, height, known, found, said_less, said_less_by, compared_at)
             select $1, t.script, $2, t.known, t.found, t.less, t.less_by, $3
               from unnest($4::bytea[], $5::numeric[], $6::numeric[], $7::numeric[], $8::text[]) as t(script, known, found, less, less_by)
             on conflict (currency, script) do update set height = excluded.height, known = excluded.known, found = excluded.found,
               said_less = excluded.said_less, said_less_by = excluded.said_less_by, compared_at = excluded.compared_at`,
    values: [
      currency,
      height,
      new Date(atMs),
      compared.map(({ script }) => script),
      compared.map(({ known }) => known),
      compared.map(({ said }) => said.most),
      compared.map(({ said }) => said.less?.amount ?? null),
      compared.map(({ said }) => said.less?.by ?? null),
    ],
  });
}

/** The highest block that both readings have read, with what came to old addresses too where that counts; null while there is none. */
export async function knownUpTo(sql: Sql, currency: EvmCode, withOld: boolean): Promise<number | null> {
  const { rows } = await sql.query<{ height: number | null }>({
    name: 'known_up_to',
    text: `select least(c.height, k.height, case when $2 then k.deep_height end) as height from chain_reconciled c join chain_cursors k on k.currency = c.currency
            where c.currency = $1`,
    values: [currency, withOld],
  });
  return rows[0]?.height ?? null;
}
