// What decides whether a payout may be requested and whether it waits: whose an address is, what the chain costs, what is stopped, what the
// merchant owes, and which of its credits are not final.
import { finalDepth } from '../../core/confirmations.ts';
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import type { Rate } from '../../core/rate.ts';
import type { RowSeals } from '../../core/row-seals.ts';
import { CROWDED } from '../lightning/under-way.ts';
import { SETTINGS_COLUMNS, type SettingsColumns, type StoredSettings, settingsFrom } from '../merchants/settings.ts';
import type { Sql } from '../postgres/connect.ts';
import { rateBounds, sealedPrice } from '../transactions/rates.ts';
import { dueAgain } from './waiting-for-operator.ts';

export type ScriptOwner = {
  /** The merchant to whose transaction the script belongs, that transaction and its currency; null = none. */
  readonly merchantId: bigint | null;
  readonly transactionId: string | null;
  readonly currency: string | null;
  /** At which index of its account's key the address is said to be. */
  readonly addressIndex: bigint | null;
  /** It is an address of the service itself. */
  readonly isOurOwn: boolean;
};

type RawOwner = {
  merchant: string | null;
  transaction: string | null;
  currency: string | null;
  address_index: string | null;
  is_own: boolean;
};

/** SQL: whose each of the scripts in $1 is, in their order; the offset makes it one look by an index for each. */
const SCRIPT_OWNERS = `select t.merchant_id::text as merchant, t.id as transaction, t.currency, t.address_index::text as address_index,
         exists (select from own_addresses o where o.script = s.script) as is_own
    from unnest($1::bytea[]) with ordinality as s(script, n)
         left join lateral (select * from transactions t where t.script = s.script offset 0) t on true
   order by s.n`;

const ownerFrom = (raw: RawOwner): ScriptOwner => ({
  merchantId: raw.merchant === null ? null : BigInt(raw.merchant),
  transactionId: raw.transaction,
  currency: raw.currency,
  addressIndex: raw.address_index === null ? null : BigInt(raw.address_index),
  isOurOwn: raw.is_own,
});

/** @param merchant as SQL; a bare column name would mean the account's own */
export const owesOf = (merchant: string): string =>
  `exists (select from ledger.account a join ledger.balance b on b.account_id = a.id
            where a.merchant_id = ${merchant} and a.kind = 'receivable' and b.amount > 0)`;
/**
 * SQL: whether what a payout or reimbursement holds came out of its merchant's available balance, at least some of it. Of a reimbursement the
 * rest lay in suspense, and is the customer's.
 */
export const takesAvailable = (payout: string): string =>
  `(${payout}.reimburses is null
     or exists (select from ledger.entry e join ledger.posting l on l.entry_id = e.id join ledger.account a on a.id = l.account_id
                 where e.key = 'po:' || ${payout}.id || ':hold' and a.kind = 'available'))`;
/**
 * SQL: a payment that a reimbursement sends back is in no block now, or is no longer booked. It was final when it was let go; until something is
 * signed for it, a reorganisation may still take its payments away, and the judge looks at that minutes later.
 */
export const isStale = (payout: string): string =>
  `(${payout}.reimburses is not null
     and exists (select from reimbursement_shares c join decided_payments d on d.id = c.payment_id
                  where c.payout_id = ${payout}.id and (d.state <> 'mined' or d.part_key is null)))`;
/** Whether all payouts are stopped, as SQL. */
export const STOPPED = `exists (select from breakers where name = 'payouts' and cleared_at is null) as stopped`;

/** Whose an output script is. */
export async function readScriptOwner(sql: Sql, script: Uint8Array): Promise<ScriptOwner> {
  const { rows } = await sql.query<RawOwner>({
    name: 'payout_script_owner',
    text: SCRIPT_OWNERS,
    values: [[script]],
  });
  return ownerFrom(rows[0] as RawOwner);
}

export type RequestFacts = {
  readonly settings: StoredSettings;
  /** Minor units per 1,000 virtual bytes, as our nodes said last; null when none ever said it. */
  readonly feeRate: bigint | null;
  /** The largest outputs that can be spent, up to {@link LARGEST}. */
  readonly largest: readonly bigint[];
  /** The signer has confirmed a key of the currency that is in use. */
  readonly hasKey: boolean;
  /** At most 5 min old; null = there is none. */
  readonly rate: Rate | null;
  readonly isStopped: boolean;
  /** The merchant owes something, in any currency. */
  readonly owes: boolean;
};

/** As many as most payouts need; who needs more reads more. */
export const LARGEST = 8;

/** SQL: the amounts of the largest outputs that can be spent. */
const largest = (currency: string, limit: string): string =>
  `select q.amount::text as amount from (
     (select amount from payments where currency = ${currency} and part_key is not null and not spent and height is not null order by amount desc limit ${limit})
     union all
     (select amount from own_outputs where currency = ${currency} and booked and not spent and height is not null order by amount desc limit ${limit})) q
    order by q.amount desc limit ${limit}`;

/** The amounts of the largest outputs that can be spent now, in minor units, largest first. */
export async function largestOutputs(sql: Sql, currency: CurrencyCode, limit: number): Promise<readonly bigint[]> {
  const { rows } = await sql.query<{ amount: string }>({
    name: 'largest_outputs',
    text: largest('$1', '$2'),
    values: [currency, limit],
  });
  return rows.map(({ amount }) => BigInt(amount));
}

/**
 * What a merchant's requests for payouts are judged by besides the balances, in one statement.
 * @returns with `owners`: whose each of the scripts is, in their order
 */
export async function readRequestFacts(
  sql: Sql,
  seals: RowSeals,
  of: {
    readonly merchantId: bigint;
    readonly scripts: readonly Uint8Array[];
    readonly currency: CurrencyCode;
    readonly nowMs: number;
  },
): Promise<RequestFacts & { readonly owners: readonly ScriptOwner[] }> {
  type Row = SettingsColumns & {
    owners: readonly RawOwner[];
    fee_rate: bigint | null;
    largest: readonly string[];
    has_key: boolean;
    usd: string | null;
    at: Date;
    seal: Uint8Array | null;
    stopped: boolean;
    owes: boolean;
  };
  const { rows } = await sql.query<Row>({
    name: 'payout_request_facts',
    text: `select ${SETTINGS_COLUMNS}, (select json_agg(o) from (${SCRIPT_OWNERS}) o) as owners, ${STOPPED}, ${owesOf('$2')} as owes,
                  (select fee_rate from fee_rates where currency = $3) as fee_rate, array(${largest('$3', String(LARGEST))}) as largest,
                  exists (select from account_xpubs where currency = $3 and origin = 'signer' and retired_at is null and confirmed_at is not null) as has_key,
                  r.usd::text as usd, r.at, r.seal
             from merchant_settings left join rates r on r.currency = $3 and r.at between $4 and $5 where merchant_id = $2`,
    values: [of.scripts, of.merchantId, of.currency, ...rateBounds(of.nowMs)],
  });
  const row = rows[0] as Row;
  return {
    owners: row.owners.map(ownerFrom),
    settings: settingsFrom(row),
    feeRate: row.fee_rate,
    largest: row.largest.map(BigInt),
    hasKey: row.has_key,
    rate: row.usd === null ? null : sealedPrice(seals, { currency: of.currency, usd: row.usd, at: row.at, seal: row.seal }),
    isStopped: row.stopped,
    owes: row.owes,
  };
}

/**
 * Whether all payouts are stopped, and whether the merchant owes something, in any currency.
 * @param payoutId one that is there: a debt does not hold up a reimbursement that takes nothing of what is available
 */
export async function readStops(
  sql: Sql,
  merchantId: bigint,
  payoutId: string | null = null,
): Promise<{ readonly isStopped: boolean; readonly owes: boolean }> {
  const { rows } = await sql.query<{ stopped: boolean; owes: boolean }>({
    name: 'payout_stops',
    text: `select ${STOPPED}, ${owesOf('$1::bigint')}
                  and ($2::text is null or exists (select from payouts p where p.id = $2 and ${takesAvailable('p')})) as owes`,
    values: [merchantId, payoutId],
  });
  return { isStopped: rows[0]?.stopped === true, owes: rows[0]?.owes === true };
}

/**
 * Whether a batch for which nothing was signed must not be signed now: payouts are stopped, a merchant owes something, or what a reimbursement sends
 * back is not there any more.
 */
export async function mustNotLeave(sql: Sql, batchId: string): Promise<boolean> {
  const { rows } = await sql.query<{ must: boolean }>({
    name: 'batch_must_not_leave',
    text: `select exists (select from breakers where name = 'payouts' and cleared_at is null)
                  or exists (select from payouts p where batch_id = $1 and ((${owesOf('p.merchant_id')} and ${takesAvailable('p')}) or ${isStale('p')})) as must`,
    values: [batchId],
  });
  return rows[0]?.must === true;
}

/** One at a time of a merchant's payouts is measured against what may leave before its credits are final; until the transaction ends. */
export async function lockUnfinal(sql: Sql, merchantId: bigint): Promise<void> {
  await sql.query({
    name: 'lock_unfinal',
    text: `select pg_advisory_xact_lock(hashtextextended('unfinal ' || $1::text, 0))`,
    values: [merchantId],
  });
}

/** Of one currency, in minor units: what payments below their final depth have credited, what is available, what waiting payouts hold. */
export type UnfinalCredit = {
  readonly currency: CurrencyCode;
  readonly unfinal: bigint;
  readonly available: bigint;
  readonly waiting: bigint;
};

/**
 * Every currency in which a merchant has credits that are not final.
 * @param but a payout that does not count as waiting
 */
export async function readUnfinal(sql: Sql, merchantId: bigint, but: string | null): Promise<readonly UnfinalCredit[]> {
  const depths = CURRENCY_CODES.map((currency) => finalDepth(currency));
  const { rows } = await sql.query<{ currency: CurrencyCode; unfinal: string; available: string; waiting: string }>({
    name: 'payout_unfinal',
    // only the newest blocks and what is in none are read, each by its index (the offset keeps the planner from reading a merchant's all)
    text: `with credits as (
             select f.currency, sum(p.in_available) as amount
               from unnest($3::text[], $4::int[], $5::boolean[]) as f(currency, depth, locks) join chain_cursors c on c.currency = f.currency
               cross join lateral (
                 select m.transaction_id, m.in_available, m.lock from decided_payments m
                  where m.currency = f.currency and m.height is not null and m.height > c.height - f.depth + 1
                 union all
                 select u.transaction_id, u.in_available, u.lock from decided_payments u
                  where u.currency = f.currency and u.state in ('mempool', 'gone')) p
               cross join lateral (select t.merchant_id from transactions t where t.id = p.transaction_id offset 0) t
              where p.in_available > 0 and t.merchant_id = $1 and not (f.locks and p.lock is not distinct from 'chainlock')
              group by f.currency),
           held as (
             select coalesce(source_currency, currency) as currency, sum(coalesce(source_amount, amount + fee_max)) as amount from payouts
              where merchant_id = $1 and step = 'held' and status = 'pending' and reimburses is null and id is distinct from $2 group by 1)
           select c.currency, c.amount as unfinal, coalesce(h.amount, 0) as waiting,
                  coalesce((select b.amount from ledger.account a join ledger.balance b on b.account_id = a.id
                             where a.merchant_id = $1 and a.kind = 'available' and a.currency = c.currency), 0) as available
             from credits c left join held h using (currency)`,
    values: [merchantId, but, CURRENCY_CODES, depths.map(({ depth }) => depth), depths.map(({ lock }) => lock !== null)],
  });
  return rows.map(({ currency, unfinal, available, waiting }) => ({
    currency,
    unfinal: BigInt(unfinal),
    available: BigInt(available),
    waiting: BigInt(waiting),
  }));
}

export type ToReconsider = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly createdAt: Date;
  readonly isNotFinal: boolean;
  /** It waits until fewer of its merchant are under way. */
  readonly isCrowded: boolean;
  readonly isReimbursement: boolean;
  /** The balance that pays it, and what it holds of that. */
  readonly currency: string;
  readonly holds: bigint;
};

/**
 * Payouts that may go on or must wait, oldest first: those whose reason may have ended, and queued ones while payouts are stopped or whose
 * merchant owes something now.
 * @param after the last that was looked at; null = from the oldest on
 */
export async function payoutsToReconsider(
  sql: Sql,
  wanted: { readonly limit: number; readonly after: Pick<ToReconsider, 'id' | 'createdAt'> | null; readonly nowMs: number },
): Promise<readonly ToReconsider[]> {
  const owes = owesOf('p.merchant_id');
  const isStopped = `exists (select from breakers where name = 'payouts' and cleared_at is null)`;
  const { rows } = await sql.query<Omit<ToReconsider, 'holds'> & { holds: string }>({
    name: 'payouts_to_reconsider',
    text: `select p.id, p.merchant_id as "merchantId", p.created_at as "createdAt", p.held_reason is not distinct from 'not_final' as "isNotFinal",
                  p.held_reason is not distinct from 'cool_down' as "isCrowded", p.reimburses is not null as "isReimbursement",
                  coalesce(p.source_currency, p.currency) as currency, coalesce(p.source_amount, p.amount + p.fee_max) as holds
             from payouts p
            where p.step in ('held', 'queued') and (p.reimburses is null or p.batch_id is not null or p.held_reason = 'cool_down') and (p.created_at, p.id) > ($2, $3)
              and case when p.step = 'queued' then ${isStopped} or ${owes}
                       when p.held_reason = 'breaker' then not ${isStopped}
                       when p.held_reason = 'receivable' then not ${owes}
                       when p.held_reason = 'approval' and p.batch_id is not null then ${dueAgain('p', '$4::timestamptz')}
                       when p.held_reason = 'approval' then p.approved_at is not null
                       when p.held_reason = 'cool_down' then (p.merchant_id, p.reimburses is null) not in (${CROWDED})
                       else p.held_reason = 'not_final' end
            order by p.created_at, p.id limit $1`,
    values: [wanted.limit, wanted.after?.createdAt ?? '-infinity', wanted.after?.id ?? '', new Date(wanted.nowMs)],
  });
  return rows.map((row) => ({ ...row, holds: BigInt(row.holds) }));
}
