// The facts for the judge about locked transactions: their payments with the rates of their arrival, how far each chain was read, how
// blocks are dated. For many transactions in one statement.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { EVM_CODES, type PaymentMethod } from '../../core/currency.ts';
import type { ChainView, DatedBlock, Payment, PaymentState } from '../../core/judge/case.ts';
import { parseRate, type Rate } from '../../core/rate.ts';
import { agreedHeight } from '../chain/node-conditions.ts';
import { unconfirmedHeights } from '../chain/unconfirmed-blocks.ts';
import type { Sql } from '../postgres/connect.ts';
import { JUDGED_COLUMNS, type JudgedRow, judgedFields } from './judged-columns.ts';
import { IS_UNWRITTEN } from './payment-decisions.ts';

/** The facts of a payment and what the judge derived from it, as the driver returns them. */
export type PaymentRow = {
  id: bigint;
  transaction_id: string;
  currency: PaymentMethod;
  txid: string;
  vout: number;
  amount: string;
  coinbase: boolean;
  lock: 'instantsend' | 'chainlock' | null;
  state: PaymentState;
  height: number | null;
  block_hash: string | null;
  block_time: Date | null;
  seen_at: Date;
  caught_up_at: Date;
  found_mined: boolean;
  gone_since: Date | null;
  last_height: number | null;
  conflict_txid: string | null;
  noticed_at: Date | null;
} & JudgedRow;

const ON_ETHEREUM = EVM_CODES.map((code) => `'${code}'`).join();
/** SQL: a payment `p` is in the currency of its transaction `t`, and somebody has paid it (inQuotedCurrency of core/judge/payments). */
export const inQuotedCurrency = (p: string, t: string): string =>
  `(${p}.currency = ${t}.currency and not (${p}.coinbase and ${p}.currency in (${ON_ETHEREUM})))`;

/** A node gives the time of a transaction or block in whole seconds, so the real time may be up to this much later. */
const DATED_WITHIN = '1 second';
/** How old the rate of a moment may be. */
const RATE_AGE = '5 minutes';

/** SQL for the balance that payments in a currency go to, which is also what they are priced by. */
export const balanceSql = (currency: string): string =>
  `case ${currency} when '${LIGHTNING.code}' then '${LIGHTNING.balance}' else ${currency} end`;

/**
 * SQL for the rate of a currency at a moment: the last one before it, or the first one after it where that is too old; null when there is
 * none yet.
 */
export function rateAt(currency: string, at: string): string {
  const priced = balanceSql(currency);
  return `coalesce(
    (select h.usd::text from rate_history h
      where h.currency = ${priced} and h.at <= ${at} + interval '${DATED_WITHIN}' and h.at >= ${at} - interval '${RATE_AGE}'
      order by h.at desc limit 1),
    (select h.usd::text from rate_history h where h.currency = ${priced} and h.at > ${at} order by h.at limit 1))`;
}

export const PAYMENT_COLUMNS = `p.id, p.transaction_id, p.currency, p.txid, p.vout, p.amount, p.coinbase, p.lock, p.state, p.height, p.block_hash, p.block_time,
  p.seen_at, p.caught_up_at, p.found_mined, p.gone_since, p.last_height, p.conflict_txid, p.noticed_at,
  ${JUDGED_COLUMNS.map(({ column }) => `p.${column}`).join(', ')}`;

/** SQL for the moment at which a payment arrived: one that was found in a block arrived at the block's date, whenever we read it. */
export const ARRIVED_AT = 'case when p.found_mined then least(p.seen_at, p.block_time) else p.seen_at end';

/**
 * How far each chain was read, as the database answers it: currency, height, milliseconds, the hash of the last block, and the height up to
 * which two nodes agree (null: only one is configured), and those of blocks of which no second one could say what they pay.
 */
export type ChainViewRow = readonly [PaymentMethod, number, number, string, number | null, readonly number[] | null];
export const VIEWS = `select jsonb_agg(jsonb_build_array(c.currency, c.height, (extract(epoch from c.caught_up_at) * 1000)::bigint, c.hash, ${agreedHeight('n')},
                   (select jsonb_agg(distinct h.height) from ${unconfirmedHeights('c.currency')} h)))
                 from chain_cursors c left join node_conditions n using (currency)`;

export type ChainFacts = {
  readonly chains: ReadonlyMap<PaymentMethod, ChainView>;
  /** The last block of each chain, to notice when it has changed. */
  readonly tips: ReadonlyMap<PaymentMethod, { readonly height: number; readonly hash: string }>;
  /** The payments of each transaction in the order in which they were seen, each with the rate of its arrival where that is known. */
  readonly payments: ReadonlyMap<string, readonly Payment[]>;
  /** Those of which an earlier verdict is not written to all payments yet: nothing can be decided about them before that. */
  readonly unwritten: ReadonlySet<string>;
};

/**
 * The payments of locked transactions and how far each chain was read, at one moment: if a chain advanced, or reorganised, in between, a
 * payment would look deeper, or gone for longer, than it is.
 * @param contestedLimitMinor cents: the limit above which two nodes must hold a payment's block
 */
export async function readChainFacts(
  sql: Sql,
  transactionIds: readonly string[],
  contestedLimitMinor: bigint,
): Promise<ChainFacts> {
  const { rows } = await sql.query<
    PaymentRow & {
      id: bigint | null;
      arrival_rate: string | null;
      views: readonly ChainViewRow[] | null;
      unwritten: string[] | null;
    }
  >({
    name: 'read_chain_facts',
    text: `
      with payments as materialized (
        select ${PAYMENT_COLUMNS}, ${ARRIVED_AT} as arrived_at
          from payments p where p.transaction_id = any ($1)),
      rates as materialized (
        select a.currency, a.arrived_at, ${rateAt('a.currency', 'a.arrived_at')} as arrival_rate
          from (select distinct currency, arrived_at from payments) a)
      select case when row_number() over () = 1 then (${VIEWS}) end as views,
             case when row_number() over () = 1 then (select array_agg(w.id) from unnest($1::text[]) as w(id) where ${IS_UNWRITTEN('w.id')}) end as unwritten, p.*
        from (values (1)) one left join (select * from payments join rates using (currency, arrived_at)) p on true order by p.seen_at, p.id`,
    values: [transactionIds],
  });
  const views = rows.find((row) => row.views !== null)?.views ?? [];
  const found = rows.filter((row) => row.id !== null);
  const spends = await readSpends(
    sql,
    found.map((row) => ({ currency: row.currency, txid: row.txid, conflictTxid: row.conflict_txid })),
  );
  const payments = new Map<string, Payment[]>(transactionIds.map((id) => [id, []]));
  for (const row of found) {
    const rate = row.arrival_rate === null ? null : parseRate(row.arrival_rate);
    payments.get(row.transaction_id)?.push(paymentOf(row, rate, spends.get(row.txid)));
  }
  const unwritten = new Set(rows.find((row) => row.unwritten !== null)?.unwritten ?? []);
  return { ...chainFactsOf(views, contestedLimitMinor), payments, unwritten };
}

/** The chains as {@link VIEWS} returns them. */
export function chainFactsOf(views: readonly ChainViewRow[], contestedLimitMinor: bigint): Pick<ChainFacts, 'chains' | 'tips'> {
  return {
    chains: new Map(
      views.map(([currency, tipHeight, timeMs, , height, heights]) => {
        if (height === null) return [currency, { tipHeight, timeMs }];
        const unconfirmed = heights === null ? {} : { unconfirmed: new Set(heights) };
        return [currency, { tipHeight, timeMs, agreed: { height, limitMinor: contestedLimitMinor, ...unconfirmed } }];
      }),
    ),
    tips: new Map(views.map(([currency, height, , hash]) => [currency, { height, hash }])),
  };
}

/** What a payment spends, where that is not needed. */
export const NOTHING: readonly string[] = [];

/** A payment as the judge sees it, with the rate of its arrival and what it spends, where these are known. */
export function paymentOf(row: PaymentRow, arrivalRate: Rate | null, spends: readonly string[] = NOTHING): Payment {
  return {
    id: row.id,
    currency: row.currency,
    txid: row.txid,
    vout: row.vout,
    amount: BigInt(row.amount),
    coinbase: row.coinbase,
    lock: row.lock,
    state: row.state,
    height: row.height,
    blockHash: row.block_hash,
    blockTimeMs: row.block_time?.getTime() ?? null,
    seenAtMs: row.seen_at.getTime(),
    caughtUpAtMs: row.caught_up_at.getTime(),
    foundMined: row.found_mined,
    goneSinceMs: row.gone_since?.getTime() ?? null,
    lastHeight: row.last_height,
    conflictTxid: row.conflict_txid,
    spends,
    arrivalRate,
    classified: row.noticed_at !== null,
    ...judgedFields(row),
  };
}

type Spender = Pick<Payment, 'currency' | 'txid' | 'conflictTxid'>;

/** What payments that another payment of the same transaction replaced spend, by txid. */
export async function readSpends(sql: Sql, payments: readonly Spender[]): Promise<ReadonlyMap<string, readonly string[]>> {
  if (payments.every((payment) => payment.conflictTxid === null)) return new Map();
  const txids = new Set(payments.map((payment) => payment.txid));
  const replaced = new Map(
    payments
      .filter((payment) => payment.conflictTxid !== null && txids.has(payment.conflictTxid))
      .map((payment) => [`${payment.currency} ${payment.txid}`, payment]),
  );
  if (replaced.size === 0) return new Map();
  const { rows } = await sql.query<{ txid: string; spends: string[] }>({
    name: 'read_spends',
    text: `select i.txid, array_agg(i.prev_txid || ':' || i.prev_vout order by i.prev_txid, i.prev_vout) as spends
             from unnest($1::text[], $2::text[]) as w(currency, txid) join payment_inputs i using (currency, txid)
            group by i.txid`,
    values: [[...replaced.values()].map((payment) => payment.currency), [...replaced.values()].map((payment) => payment.txid)],
  });
  return new Map(rows.map((row) => [row.txid, row.spends]));
}

export type WantedBlocks = {
  readonly currency: PaymentMethod;
  readonly heights: readonly number[];
  /** For a block dated later than this, the rate at its date is read too, like that of a payment's arrival. */
  readonly ratesAfterMs: number;
};

/**
 * The blocks at the heights that each transaction needs, as far as they are kept; null when a chain's last block is no longer the same.
 * @param options.tips the last block of each chain when its payments were read
 * @param options.nowMs no rate of a later time is read
 */
export async function readBlocks(
  sql: Sql,
  wanted: readonly WantedBlocks[],
  options: { readonly tips: ChainFacts['tips']; readonly nowMs: number },
): Promise<readonly ReadonlyMap<number, DatedBlock>[] | null> {
  const asked = wanted.flatMap(({ currency, heights, ratesAfterMs }, n) =>
    heights.map((height) => ({ n, currency, height, ratesAfterMs })),
  );
  if (asked.length === 0) return wanted.map(() => new Map());
  const tips = [...options.tips].filter(([currency]) => wanted.some((one) => one.currency === currency));
  const { rows } = await sql.query<{ n: number; height: number; time: Date; usd: string | null }>({
    name: 'read_dated_blocks',
    text: `
      select w.n, b.height, b.time, case when b.time > w.rates_after then ${rateAt('b.currency', 'least(b.time, $5)')} end as usd
        from unnest($1::int[], $2::text[], $3::int[], $4::timestamptz[]) as w(n, currency, height, rates_after)
        join blocks b on b.currency = w.currency and b.height = w.height
      union all
      select -1, t.height, now(), null from unnest($6::text[], $7::int[], $8::text[]) as t(currency, height, hash)
       where not exists (select 1 from blocks b where b.currency = t.currency and b.height = t.height and b.hash = t.hash)`,
    values: [
      asked.map((one) => one.n),
      asked.map((one) => one.currency),
      asked.map((one) => one.height),
      asked.map((one) => new Date(one.ratesAfterMs).toISOString()),
      new Date(options.nowMs),
      tips.map(([currency]) => currency),
      tips.map(([, tip]) => tip.height),
      tips.map(([, tip]) => tip.hash),
    ],
  });
  if (rows.some((row) => row.n === -1)) return null;
  const found = wanted.map(() => new Map<number, DatedBlock>());
  for (const { n, height, time, usd } of rows)
    found[n]?.set(height, { timeMs: time.getTime(), rate: usd === null ? null : parseRate(usd) });
  return found;
}
