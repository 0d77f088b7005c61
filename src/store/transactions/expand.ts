// What `expand` shows of one transaction. Anybody may pay one in as many outputs as he likes, and all of them are shown: PostgreSQL writes
// them as the JSON of the answer, which is a tenth of the work of making objects of them here, and is not done by the server's one thread.
import { CURRENCIES, PAYMENT_METHODS, type PaymentMethod } from '../../core/currency.ts';
import type { Rate } from '../../core/rate.ts';
import type { Sql } from '../postgres/connect.ts';
import { storedRate } from './transactions.ts';

/** Parts that may be long; each is JSON, null where it was not asked for. */
export type ExpandedList = 'payments' | 'events';
export type Expansion = {
  readonly merchantId: bigint;
  readonly rate: { readonly usd: Rate; readonly atMs: number; readonly sources: unknown };
  /** `[{txid, amount, confirmations, seen_at, counted}]` by the time of the sighting (behaviour §1). */
  readonly payments: string | null;
  /** `[{status, at, reason}]` in their order. */
  readonly events: string | null;
};

/** Units of a currency as answers write them (core/money's formatAmount). */
const AMOUNT = `case p.currency ${PAYMENT_METHODS.map((code) => `when '${code}' then ${amountOf(code)}`).join(' ')} end`;
function amountOf(code: PaymentMethod): string {
  const { decimals, quoteDecimals } = CURRENCIES[code];
  const exact = `(p.amount * 1e-${decimals}::numeric)::numeric(60, ${decimals})`;
  if (decimals === quoteDecimals) return `${exact}::text`;
  return `round(${exact}, greatest(${quoteDecimals}, scale(trim_scale(${exact}))))::text`;
}

/** UTC, ISO 8601 with milliseconds and Z. */
const isoTime = (instant: string): string => `to_char(${instant} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

const LISTS: Readonly<Record<ExpandedList, { readonly name: string; readonly text: string }>> = {
  payments: {
    name: 'expand_payments',
    text: `
      select '[' || coalesce(string_agg(format('{"txid":%s,"amount":"%s","confirmations":%s,"seen_at":"%s","counted":%s}',
               to_json(p.txid), ${AMOUNT}, case when p.height is null then 0 else greatest(0, c.height - p.height + 1) end,
               ${isoTime('greatest(p.seen_at, t.created_at)')}, p.counted::text), ',' order by p.seen_at, p.id), '') || ']' as list
        from decided_payments p join transactions t on t.id = p.transaction_id left join chain_cursors c on c.currency = p.currency
       where p.transaction_id = $1`,
  },
  events: {
    name: 'expand_events',
    text: `
      select '[' || coalesce(string_agg(format('{"status":%s,"at":"%s","reason":%s}',
               to_json(status), ${isoTime('at')}, to_json(reason)), ',' order by sequence), '') || ']' as list
        from events where object_id = $1`,
  },
};

/** What `expand` can show of one transaction; null when there is none. Only the lists that are wanted are read. */
export async function readExpansion(sql: Sql, id: string, wanted: ReadonlySet<string>): Promise<Expansion | null> {
  const head = await sql.query<{ merchant_id: bigint; rate: string; rate_at: Date; rate_sources: unknown }>({
    name: 'expand_transaction',
    text: 'select merchant_id, rate, rate_at, rate_sources from transactions where id = $1',
    values: [id],
  });
  const row = head.rows[0];
  if (row === undefined) return null;
  const list = async (name: ExpandedList): Promise<string | null> => {
    if (!wanted.has(name)) return null;
    const { rows } = await sql.query<{ list: string }>({ ...LISTS[name], values: [id] });
    return rows[0]?.list ?? null;
  };
  return {
    merchantId: row.merchant_id,
    rate: { usd: storedRate(row.rate), atMs: row.rate_at.getTime(), sources: row.rate_sources },
    payments: await list('payments'),
    events: await list('events'),
  };
}
