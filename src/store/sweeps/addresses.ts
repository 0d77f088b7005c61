// Addresses of transactions that hold booked payments in ether or a token: which are moved next, and what is on its way from or to them.
import type { EvmCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';
import { WRITTEN_OFF } from './written-off.ts';

/**
 * An address of a transaction (its receiving chain), with what of its own currency is booked there, final, and neither moved nor written off. `whole`: its payments that were
 * not moved whole, by which it has its place among the others.
 */
export type SweepableAddress = {
  readonly script: Buffer;
  readonly index: number;
  readonly amount: bigint;
  readonly whole: bigint;
};

/** How long an address rests after a sweep that failed: whatever made it fail would burn the gas again. */
const REST = "interval '6 hours'";
/** One that was made later than this was made by a clock that was fast and was put right. */
const AHEAD = "interval '1 hour'";

/** SQL: the outpoint that stands for the sender and any nonce of an output script. */
export const SENDER = (script: string): string => `lpad(encode(substr(${script}, 4), 'hex'), 64, '0')`;
/** SQL: what has left an address, or is about to, and what is gone from there otherwise. */
const GONE = (currency: string, script: string): string =>
  `${WRITTEN_OFF(currency, script)}
   + coalesce((select sum(i.amount) from outgoing_inputs i join outgoing_batches b on b.id = i.batch_id
              where i.currency = ${currency} and i.txid = ${SENDER(script)} and b.purpose = 'sweep' and b.state <> 'dead'), 0)`;
/** SQL: what is booked at an address and final. */
const BOOKED = (currency: string, script: string): string =>
  `(select coalesce(sum(q.amount), 0) from transactions owner join payments q on q.transaction_id = owner.id and q.currency = owner.currency
     where owner.script = ${script} and owner.currency = ${currency} and q.part_key is not null and q.state = 'mined' and q.lock is not null)`;

/**
 * Addresses whose payments that were not moved whole are at least this much, all final, the fullest first; none from which something is on its way.
 * @param which `after`: those behind this one; `only`: none but this one
 */
export async function sweepableAddresses(
  sql: Sql,
  currency: EvmCode,
  which: {
    readonly least: bigint;
    readonly nowMs: number;
    readonly limit: number;
    readonly after?: SweepableAddress | null;
    readonly only?: Buffer;
  },
): Promise<readonly SweepableAddress[]> {
  const { least, nowMs, limit, after = null, only = null } = which;
  const { rows } = await sql.query<{ script: Buffer; index: bigint; amount: string; whole: string }>({
    name: 'sweepable_addresses',
    text: `with unswept as materialized (
             select t.script, t.address_index, sum(p.amount) as amount from payments p join transactions t on t.id = p.transaction_id and t.currency = p.currency
              where p.currency = $1 and p.part_key is not null and not p.spent and p.height is not null and p.lock is not null and t.script is not null
                and ($7::bytea is null or t.script = $7)
              group by t.script, t.address_index having sum(p.amount) >= $2)
           select u.script, u.address_index as index, ${BOOKED('$1', 'u.script')} - (${GONE('$1', 'u.script')}) as amount, u.amount as whole
             from unswept u
            where ($6::bytea is null or (u.amount, u.script) < ($5::numeric, $6))
              and not exists (select from outgoing_inputs i join outgoing_batches b on b.id = i.batch_id
                               where i.currency = $1 and i.txid = ${SENDER('u.script')}
                                 and (b.state in ('reserved', 'signed', 'mined') or (b.state = 'dead' and b.created_at between $3::timestamptz - ${REST} and $3::timestamptz + ${AHEAD})))
            order by u.amount desc, u.script desc limit $4`,
    values: [currency, least, new Date(nowMs), limit, after?.whole ?? 0n, after?.script ?? null, only],
  });
  return rows.map(({ script, index, amount, whole }) => ({
    script,
    index: Number(index),
    amount: BigInt(amount),
    whole: BigInt(whole),
  }));
}

/** Whether there is anything to move at all, however little. */
export async function hasUnswept(sql: Sql, currency: EvmCode): Promise<boolean> {
  const { rows } = await sql.query<{ there: boolean }>({
    name: 'has_unswept',
    text: `select exists (select from payments p where p.currency = $1 and p.part_key is not null and not p.spent and p.height is not null and p.lock is not null) as there`,
    values: [currency],
  });
  return rows[0]?.there === true;
}

/** What lies at addresses of transactions and is not on its way to ours yet, final or not. */
export async function unsweptUnits(sql: Sql, currency: EvmCode): Promise<bigint> {
  const { rows } = await sql.query<{ amount: string }>({
    name: 'unswept_units',
    text: `with there as materialized (
             select t.script, sum(p.amount) as amount from payments p join transactions t on t.id = p.transaction_id and t.currency = p.currency
              where p.currency = $1 and p.part_key is not null and not p.spent and p.height is not null group by t.script),
           -- of a payment that is gone in part the rest is there
           parts as (
             select s.script, greatest(0, ${GONE('$1', 's.script')} - (
                      select coalesce(sum(p.amount), 0) from payments p join transactions t on t.id = p.transaction_id and t.currency = p.currency
                       where t.script = s.script and p.currency = $1 and p.part_key is not null and p.spent and p.height is not null)) as amount
               from there s where exists (select from written_off w where w.currency = $1 and w.script = s.script))
           select coalesce(sum(there.amount - least(there.amount, coalesce(parts.amount, 0))), 0) as amount from there left join parts using (script)`,
    values: [currency],
  });
  return BigInt(rows[0]?.amount ?? 0);
}

/** Marks which payments at an address its sweeps have taken, or are written off, the oldest first, as far as their amounts reach; the others wait for another one. */
export async function noteSwept(sql: Sql, currency: EvmCode, script: Uint8Array): Promise<void> {
  // in the order in which every writer locks payments
  await sql.query({
    name: 'lock_swept',
    text: `select p.id from payments p join transactions t on t.id = p.transaction_id where t.script = $1 and p.currency = $2 order by p.id for no key update of p`,
    values: [Buffer.from(script), currency],
  });
  await sql.query({
    name: 'note_swept',
    text: `with moved as materialized (select ${GONE('$1', '$2::bytea')} as amount),
           there as (
             select p.id, p.spent, sum(p.amount) over (order by p.height, p.id) <= moved.amount as taken
               from moved, payments p join transactions t on t.id = p.transaction_id and t.currency = p.currency
              where t.script = $2 and p.currency = $1 and p.part_key is not null and p.height is not null)
           update payments p set spent = there.taken from there where p.id = there.id and there.spent <> there.taken`,
    values: [currency, Buffer.from(script)],
  });
}

/** The block in which a payment to an address of a transaction was mined first; null: none was. */
export async function firstPaid(sql: Sql, currency: EvmCode, script: Uint8Array): Promise<number | null> {
  const { rows } = await sql.query<{ height: number | null }>({
    name: 'first_paid',
    text: `select min(p.height)::int as height from payments p join transactions t on t.id = p.transaction_id
            where t.script = $1 and p.currency = $2 and p.state = 'mined'`,
    values: [Buffer.from(script), currency],
  });
  return rows[0]?.height ?? null;
}

/** Whether ether for gas is on its way to an address. */
export async function isToppedUp(sql: Sql, script: Uint8Array): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'is_topped_up',
    text: `select 1 from outgoing_batches where target = $1 and purpose = 'top_up' and state in ('reserved', 'signed')`,
    values: [Buffer.from(script)],
  });
  return rows.length > 0;
}

/** How many sweeps of a currency wait for the next blocks. @param base wei: those that offer less for a unit of gas wait for fees to fall */
export async function openSweeps(sql: Sql, currency: EvmCode, base: bigint): Promise<number> {
  const { rows } = await sql.query<{ count: number }>({
    name: 'open_sweeps',
    text: `select count(*)::int as count from outgoing_batches b
            where b.currency = $1 and b.purpose = 'sweep'
              and (b.state = 'reserved' or (b.state = 'signed' and (select max(a.max_fee) from outgoing_attempts a where a.batch_id = b.id) >= $2))`,
    values: [currency, base],
  });
  return rows[0]?.count ?? 0;
}

/** The address of a transaction with this output script: its currency, and its index in the receiving chain; null for any other script. */
export async function addressOfScript(
  sql: Sql,
  script: Uint8Array,
): Promise<{ readonly currency: EvmCode; readonly index: number } | null> {
  const { rows } = await sql.query<{ currency: EvmCode; index: bigint | null }>({
    name: 'address_of_script',
    text: 'select currency, address_index as index from transactions where script = $1',
    values: [Buffer.from(script)],
  });
  const [row] = rows;
  return row === undefined || row.index === null ? null : { currency: row.currency, index: Number(row.index) };
}

/** Which of these output scripts (hex) are ours on Ethereum's chain: of our own addresses, or of those of transactions. */
export async function ourScripts(sql: Sql, scripts: readonly string[]): Promise<ReadonlySet<string>> {
  if (scripts.length === 0) return new Set();
  const { rows } = await sql.query<{ script: string }>({
    name: 'our_evm_scripts',
    text: `select encode(s.script, 'hex') as script from unnest($1::bytea[]) as s(script)
            where exists (select from own_addresses a where a.script = s.script) or exists (select from transactions t where t.script = s.script)`,
    values: [scripts.map((script) => Buffer.from(script, 'hex'))],
  });
  return new Set(rows.map(({ script }) => script));
}

/** Those of them at which nobody records what arrives of a currency, whoever has sent it: payouts of another one leave from there. */
export async function unreadScripts(sql: Sql, currency: EvmCode, scripts: readonly string[]): Promise<ReadonlySet<string>> {
  if (scripts.length === 0) return new Set();
  const { rows } = await sql.query<{ script: string }>({
    name: 'unread_evm_scripts',
    text: `select encode(s.script, 'hex') as script from unnest($1::bytea[]) as s(script)
            where exists (select from own_addresses a where a.script = s.script and a.currency <> $2)
              and not exists (select from transactions t where t.script = s.script)`,
    values: [scripts.map((script) => Buffer.from(script, 'hex')), currency],
  });
  return new Set(rows.map(({ script }) => script));
}

/** What an address has sent, and did something else than it asks for, as a block shows, and has not ended. `target`, `amount`: what it asks for. */
export type UnclearSend = {
  readonly batchId: string;
  readonly purpose: 'sweep' | 'payout';
  readonly txid: string;
  readonly target: Buffer;
  readonly amount: bigint;
};

/** The first of an address; null: none. */
export async function unclearSend(sql: Sql, currency: EvmCode, sender: string): Promise<UnclearSend | null> {
  const { rows } = await sql.query<Omit<UnclearSend, 'amount'> & { amount: string }>({
    name: 'unclear_send',
    text: `select b.id as "batchId", b.purpose, a.txid, coalesce(b.target, (select p.script from payouts p where p.batch_id = b.id)) as target, i.amount from outgoing_batches b join outgoing_inputs i on i.batch_id = b.id join outgoing_attempts a on a.batch_id = b.id
            where i.currency = $1 and i.txid = $2 and b.purpose in ('sweep', 'payout') and b.state not in ('final', 'dead') and a.result = 'unclear'
            order by i.vout limit 1`,
    values: [currency, sender],
  });
  const [row] = rows;
  return row === undefined ? null : { ...row, amount: BigInt(row.amount) };
}
