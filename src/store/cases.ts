// The judge's view: loads one transaction with its payments under the row lock. The difference is written by verdicts.ts.
import type { CurrencyCode } from '../core/currency.ts';
import type { CaseTransaction, ChainView, Coin, CoinState, DatedBlock, ReviewCause, Word } from '../core/judge/case.ts';
import { parseRate } from '../core/rate.ts';
import type { TransactionStatus } from '../core/transaction-states.ts';
import type { Sql } from './connect.ts';
import { storedRate } from './transactions.ts';

type TransactionRow = {
  id: string;
  merchant_id: bigint;
  currency: CurrencyCode;
  status: TransactionStatus;
  usd_minor: bigint;
  need: string;
  rate: string;
  tolerance_bps: number;
  late_payments: 'accept' | 'review';
  created_at: Date;
  window_ends_at: Date;
  confirmed_at: Date | null;
  succeeded_at: Date | null;
  word: Word;
  why: ReviewCause | null;
  barred: boolean;
  looked_up_at: Date | null;
  lookup_wanted: boolean;
  sequence: number;
};

/** Reads a transaction and locks its row until the database transaction ends; null when there is none (of this merchant, where one is named). */
export async function lockTransaction(sql: Sql, id: string, merchantId: bigint | null): Promise<CaseTransaction | null> {
  const { rows } = await sql.query<TransactionRow>({
    name: 'lock_transaction',
    text: `select id, merchant_id, currency, status, usd_minor, need, rate, tolerance_bps, late_payments, created_at, window_ends_at, confirmed_at,
                  succeeded_at, word, why, barred, looked_up_at, lookup_wanted, sequence
             from transactions where id = $1 and ($2::bigint is null or merchant_id = $2) for update`,
    values: [id, merchantId],
  });
  const row = rows[0];
  if (row === undefined) return null;
  return {
    id: row.id,
    merchantId: row.merchant_id,
    currency: row.currency,
    status: row.status,
    usdMinor: row.usd_minor,
    need: BigInt(row.need),
    rate: storedRate(row.rate),
    toleranceBps: row.tolerance_bps,
    latePolicy: row.late_payments,
    createdAtMs: row.created_at.getTime(),
    windowEndsAtMs: row.window_ends_at.getTime(),
    confirmedAtMs: row.confirmed_at?.getTime() ?? null,
    succeededAtMs: row.succeeded_at?.getTime() ?? null,
    word: row.word,
    why: row.why,
    barred: row.barred,
    lookedUpAtMs: row.looked_up_at?.getTime() ?? null,
    lookupWanted: row.lookup_wanted,
    sequence: row.sequence,
  };
}

type CoinRow = {
  id: bigint;
  currency: CurrencyCode;
  txid: string;
  vout: number;
  amount: string;
  coinbase: boolean;
  lock: 'instantsend' | 'chainlock' | null;
  state: CoinState;
  height: number | null;
  block_hash: string | null;
  block_time: Date | null;
  seen_at: Date;
  caught_up_at: Date;
  found_mined: boolean;
  gone_since: Date | null;
  last_height: number | null;
  conflict_txid: string | null;
  arrival_rate: string | null;
  noticed_at: Date | null;
  present: boolean;
  on_time_minor: string;
  value_rate: string | null;
  judged_block_hash: string | null;
  generation: number;
  credited: string;
  suspended: string;
  fee: string;
  in_available: string;
  in_suspense: string;
  in_refund: string;
  sent_back: string;
  owed: string;
  owed_fee: string;
  was_lost: boolean;
  counted: boolean;
  deposit_key: string | null;
  due_height: number | null;
  due_at: Date | null;
};

/** A node tells the second in which it saw a transaction or made a block, so what it dates may have come up to this much later. */
const DATED_WITHIN = '1 second';
/** How old the rate of a moment may be; one that was found in a block arrived by the block's date, whenever we read it. */
const RATE_AGE = '10 minutes';

/** SQL for the rate of a currency at a moment: the last one before, where that is old the first one after; null when there is none yet. */
function rateAt(currency: string, at: string): string {
  return `coalesce(
    (select h.usd::text from rate_history h
      where h.currency = ${currency} and h.at <= ${at} + interval '${DATED_WITHIN}' and h.at >= ${at} - interval '${RATE_AGE}'
      order by h.at desc limit 1),
    (select h.usd::text from rate_history h where h.currency = ${currency} and h.at > ${at} order by h.at limit 1))`;
}

/** The payments of a locked transaction in the order in which they were seen, each with the rate of its arrival where one is known. */
export async function readCoins(sql: Sql, transactionId: string): Promise<Coin[]> {
  const { rows } = await sql.query<CoinRow>({
    name: 'read_coins',
    text: `
      select p.*, ${rateAt('p.currency', 'a.at')} as arrival_rate
        from payments p cross join lateral (select case when p.found_mined then least(p.seen_at, p.block_time) else p.seen_at end as at) a
       where p.transaction_id = $1 order by p.seen_at, p.id`,
    values: [transactionId],
  });
  const spends = await readSpends(sql, rows);
  return rows.map((row) => ({
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
    spends: spends.get(row.txid) ?? [],
    arrivalRate: row.arrival_rate === null ? null : parseRate(row.arrival_rate),
    classified: row.noticed_at !== null,
    present: row.present,
    onTimeMinor: BigInt(row.on_time_minor),
    valueRate: row.value_rate === null ? null : storedRate(row.value_rate),
    judgedBlockHash: row.judged_block_hash,
    generation: row.generation,
    credited: BigInt(row.credited),
    suspended: BigInt(row.suspended),
    fee: BigInt(row.fee),
    inAvailable: BigInt(row.in_available),
    inSuspense: BigInt(row.in_suspense),
    inRefund: BigInt(row.in_refund),
    sentBack: BigInt(row.sent_back),
    owed: BigInt(row.owed),
    owedFee: BigInt(row.owed_fee),
    wasLost: row.was_lost,
    counts: row.counted,
    depositEntryKey: row.deposit_key,
    dueHeight: row.due_height,
    dueAtMs: row.due_at?.getTime() ?? null,
  }));
}

/** What the payments spend that were replaced by another one of the same transaction. */
async function readSpends(sql: Sql, coins: readonly CoinRow[]): Promise<ReadonlyMap<string, readonly string[]>> {
  const txids = new Set(coins.map((coin) => coin.txid));
  const replaced = coins.filter((coin) => coin.conflict_txid !== null && txids.has(coin.conflict_txid));
  if (replaced.length === 0) return new Map();
  const { rows } = await sql.query<{ txid: string; spends: string[] }>({
    name: 'read_spends',
    text: `select i.txid, array_agg(i.prev_txid || ':' || i.prev_vout order by i.prev_txid, i.prev_vout) as spends
             from (select distinct * from unnest($1::text[], $2::text[]) as t(currency, txid)) w join payment_inputs i using (currency, txid)
            group by i.txid`,
    values: [replaced.map((coin) => coin.currency), replaced.map((coin) => coin.txid)],
  });
  return new Map(rows.map((row) => [row.txid, row.spends]));
}

/**
 * How far each chain was read.
 * @param contestedLimitMinor cents: the limit on a chain over which our nodes contradict each other
 */
export async function readChainViews(sql: Sql, contestedLimitMinor: bigint): Promise<Map<CurrencyCode, ChainView>> {
  const { rows } = await sql.query<{ currency: CurrencyCode; height: number; caught_up_at: Date; contested: boolean }>({
    name: 'read_chain_views',
    text: `select c.currency, c.height, c.caught_up_at, n.contested is not null as contested
             from chain_cursors c left join node_conditions n using (currency)`,
    values: [],
  });
  return new Map(
    rows.map((row) => {
      const view = { tipHeight: row.height, timeMs: row.caught_up_at.getTime() };
      return [row.currency, row.contested ? { ...view, contestedAboveMinor: contestedLimitMinor } : view];
    }),
  );
}

/**
 * Blocks of a chain at these heights, those that are kept.
 * @param options.ratesAfterMs of a block dated later than this the rate of its date is read too, as that of a payment's arrival is
 */
export async function readBlocks(
  sql: Sql,
  currency: CurrencyCode,
  options: { readonly heights: readonly number[]; readonly ratesAfterMs: number; readonly nowMs: number },
): Promise<Map<number, DatedBlock>> {
  if (options.heights.length === 0) return new Map();
  const { rows } = await sql.query<{ height: number; time: Date; usd: string | null }>({
    name: 'read_dated_blocks',
    text: `
      select b.height, b.time, case when b.time > $3 then ${rateAt('b.currency', 'least(b.time, $4)')} end as usd
        from blocks b where b.currency = $1 and b.height = any ($2)`,
    values: [currency, options.heights, new Date(options.ratesAfterMs), new Date(options.nowMs)],
  });
  return new Map(
    rows.map(({ height, time, usd }) => [height, { timeMs: time.getTime(), rate: usd === null ? null : parseRate(usd) }]),
  );
}
