// The prices in the database: the last good median of each currency, and its history.
import type { CurrencyCode } from '../../core/currency.ts';
import { formatRate, parseRate, type Rate } from '../../core/rate.ts';
import type { Judgement } from '../../core/rate-median.ts';
import { type RowSeals, rateFields } from '../../core/row-seals.ts';
import type { Sql } from '../postgres/connect.ts';

/** A source as a quote stores it and an answer shows it. */
export type StoredSource = { readonly source: string; readonly usd: string; readonly at: string };
export type LatestRate = { readonly usd: Rate; readonly atMs: number; readonly sources: readonly StoredSource[] };

const OLDEST_QUOTED_MS = 5 * 60_000;
const CLOCK_SLACK_MS = 60_000;
const DAY_MS = 86_400_000;

/** A row of `rates` as far as it was sealed. */
export type SealedPrice = {
  readonly currency: CurrencyCode;
  readonly usd: string;
  readonly at: Date;
  readonly seal: Uint8Array | null;
};

/**
 * The price of a row; null, and told, when it is not the one that the process with the key has fetched at that time. Null too where there is no
 * key: nobody can tell, and none is made for that.
 */
export function sealedPrice(seals: RowSeals, { currency, usd, at, seal }: SealedPrice): Rate | null {
  if (!seals.isKnown()) return null;
  const rate = parseRate(usd);
  if (rate !== null && seals.fits(rateFields(currency, formatRate(rate), at.getTime()), seal)) return rate;
  seals.report(`the price of ${currency} is not what was sealed: nothing is sold, paid or converted by it`);
  return null;
}

/**
 * The last good medians of the currencies asked for that are at most 5 min old; a currency without one, or whose row is not what was sealed, is
 * missing from the answer. A row more than a minute ahead of `nowMs` (the clock was set back) is none.
 */
export async function latestRates(
  sql: Sql,
  seals: RowSeals,
  currencies: readonly CurrencyCode[],
  nowMs: number,
): Promise<Map<CurrencyCode, LatestRate>> {
  const { rows } = await sql.query<SealedPrice & { readonly sources: StoredSource[] }>({
    name: 'latest_rates',
    text: 'select currency, usd, at, seal, sources from rates where currency = any($1) and at between $2 and $3',
    values: [currencies, ...rateBounds(nowMs)],
  });
  const found = new Map<CurrencyCode, LatestRate>();
  for (const row of rows) {
    const usd = sealedPrice(seals, row);
    if (usd !== null) found.set(row.currency, { usd, atMs: row.at.getTime(), sources: row.sources });
  }
  return found;
}

/** The currencies whose price could be used now and is not what was sealed. */
export async function foreignRates(sql: Sql, seals: RowSeals, nowMs: number): Promise<readonly CurrencyCode[]> {
  const { rows } = await sql.query<SealedPrice>({
    text: 'select currency, usd, at, seal from rates where at between $1 and $2 order by currency',
    values: [...rateBounds(nowMs)],
  });
  return rows.filter((row) => sealedPrice(seals, row) === null).map(({ currency }) => currency);
}

/** Forgets what another key has sealed: the prices are fetched again. */
export async function deleteRates(sql: Sql, currencies: readonly CurrencyCode[]): Promise<void> {
  await sql.query({ text: 'delete from rates where currency = any ($1)', values: [currencies] });
}

/** From when to when a price may be dated that is used now. */
export function rateBounds(nowMs: number): readonly [Date, Date] {
  return [new Date(nowMs - OLDEST_QUOTED_MS), new Date(nowMs + CLOCK_SLACK_MS)];
}

/** When the feeds were last asked for each currency that ever had a price, whatever they answered. */
export async function rateChecks(sql: Sql): Promise<Map<CurrencyCode, number>> {
  const { rows } = await sql.query<{ currency: CurrencyCode; checkedAt: Date }>({
    name: 'rate_checks',
    text: 'select currency, checked_at as "checkedAt" from rates',
    values: [],
  });
  return new Map(rows.map(({ currency, checkedAt }) => [currency, checkedAt.getTime()]));
}

/** What a source last answered: `silent` means that it answers without a usable price for any currency. */
export type RateSource = {
  readonly source: string;
  readonly state: 'answers' | 'silent' | 'unreachable';
  /** Why it is not reachable. */
  readonly reason: string | null;
};
export type RateSourceStatus = RateSource & { readonly sinceMs: number; readonly checkedAtMs: number };

const SOURCE_AGAIN_MS = 30_000;

/** Records what all configured sources answered in one reading; an unchanged state is written every half minute. Other sources are deleted. */
export async function recordRateSources(sql: Sql, sources: readonly RateSource[], atMs: number): Promise<void> {
  await sql.query({
    name: 'record_rate_sources',
    text: `
      with said as (select * from unnest($1::text[], $2::text[], $3::text[]) as s(source, state, reason)),
      gone as (delete from rate_sources where source <> all ($1::text[]))
      insert into rate_sources as r (source, state, reason, since, checked_at)
      select s.source, s.state, s.reason, $4, $4 from said s left join rate_sources k using (source)
       where k.source is null or (k.state, k.reason) is distinct from (s.state, s.reason) or k.checked_at not between $5 and $4
       order by s.source
      on conflict (source) do update set state = excluded.state, reason = excluded.reason, checked_at = excluded.checked_at,
        since = case when r.state = excluded.state then least(r.since, excluded.since) else excluded.since end`,
    values: [
      sources.map((one) => one.source),
      sources.map((one) => one.state),
      sources.map((one) => one.reason?.slice(0, 300) ?? null),
      new Date(atMs),
      new Date(atMs - SOURCE_AGAIN_MS),
    ],
  });
}

/** Every source that a worker has asked, by name. */
export async function readRateSources(sql: Sql): Promise<readonly RateSourceStatus[]> {
  const { rows } = await sql.query<RateSource & { since: Date; checked_at: Date }>({
    name: 'read_rate_sources',
    text: 'select source, state, reason, since, checked_at from rate_sources order by source',
    values: [],
  });
  return rows.map(({ source, state, reason, since, checked_at }) => ({
    source,
    state,
    reason,
    sinceMs: since.getTime(),
    checkedAtMs: checked_at.getTime(),
  }));
}

/**
 * Writes the result of one reading of the feeds. A judgement without a price leaves the last good one as it is. A reading that began before
 * the stored one changes nothing (two pollers may overlap). Each price is sealed with its time.
 * @param atMs when the reading began
 * @returns whether this was the first price in a new hour: then the caller prunes
 */
export async function saveRates(
  sql: Sql,
  seals: RowSeals,
  judgements: readonly Judgement[],
  atMs: number,
): Promise<{ newHour: boolean }> {
  const at = new Date(atMs);
  const { rows } = await sql.query<{ newHour: boolean }>({
    name: 'save_rates',
    text: `
      with judged as (
        select * from unnest($2::text[], $3::numeric[], $4::jsonb[], $5::jsonb[], $6::bytea[]) as j(currency, usd, sources, left_out, seal)
      ), kept as (
        insert into rates as r (currency, usd, at, sources, left_out, checked_at, seal)
        select currency, usd, $1::timestamptz, sources, left_out, $1::timestamptz, seal from judged where usd is not null order by currency
        on conflict (currency) do update
          set usd = excluded.usd, at = excluded.at, sources = excluded.sources, left_out = excluded.left_out, checked_at = excluded.checked_at,
              seal = excluded.seal
          where r.checked_at not between excluded.checked_at + interval '1 microsecond' and excluded.checked_at + interval '1 minute'
        returning r.currency, r.usd
      ), refused as (
        update rates r set left_out = j.left_out, checked_at = $1::timestamptz from judged j
        where j.usd is null and r.currency = j.currency and r.checked_at <= $1::timestamptz
      ), ahead as (
        -- what is dated ahead of now was noted before the clock was set back: at those times to come it would stand for an old price
        delete from rate_history h using kept k where h.currency = k.currency and h.at > $1::timestamptz + interval '1 minute'
      ), compared as (
        select k.currency, k.usd, last.usd as last_usd, last.at as last_at from kept k left join lateral (
          select h.usd, h.at from rate_history h where h.currency = k.currency and h.at <= $1::timestamptz order by h.at desc limit 1
        ) last on true
      ), noted as (
        insert into rate_history (currency, at, usd)
        select currency, $1::timestamptz, usd from compared where last_usd is distinct from usd or last_at <= $1::timestamptz - interval '1 minute'
        on conflict (currency, at) do update set usd = excluded.usd
      )
      select coalesce(bool_or(date_trunc('hour', last_at) < date_trunc('hour', $1::timestamptz)), false) as "newHour" from compared`,
    values: [
      at,
      judgements.map((one) => one.currency),
      judgements.map((one) => (one.usd === null ? null : formatRate(one.usd))),
      judgements.map((one) => JSON.stringify(one.used.map(storedSource))),
      judgements.map((one) => JSON.stringify(one.leftOut)),
      judgements.map((one) =>
        one.usd === null ? null : seals.seal(rateFields(one.currency, formatRate(one.usd), at.getTime())),
      ),
    ],
  });
  return rows[0] ?? { newHour: false };
}

/** Thins the history of two to three days ago to one row a minute, and deletes what is older than 90 days. */
export async function pruneRateHistory(sql: Sql, nowMs: number): Promise<void> {
  await sql.query({
    name: 'thin_rate_history',
    text: `
      delete from rate_history h where at between $1 and $2 and exists (
        select 1 from rate_history e where e.currency = h.currency and e.at < h.at and e.at >= date_trunc('minute', h.at))`,
    values: [new Date(nowMs - 3 * DAY_MS), new Date(nowMs - 2 * DAY_MS)],
  });
  await sql.query({
    name: 'prune_rate_history',
    text: 'delete from rate_history where at < $1',
    values: [new Date(nowMs - 90 * DAY_MS)],
  });
}

function storedSource(used: Judgement['used'][number]): StoredSource {
  return { source: used.source, usd: formatRate(used.usd), at: new Date(used.atMs).toISOString() };
}
