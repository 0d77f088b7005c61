// Transactions as merchants see them: created in batches, checked in batches. Lists are in lists.ts, the judge's view
// of them is in cases.ts.
import type { PaymentMethod } from '../../core/currency.ts';
import { parseRate, type Rate } from '../../core/rate.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import { IS_LOOKED_AT } from '../chain/node-conditions.ts';
import type { Sql } from '../postgres/connect.ts';
import { USABLE_NODE_STATES } from './quote-facts.ts';

export type NewTransaction = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly currency: PaymentMethod;
  readonly usdMinor: bigint;
  readonly amountDue: bigint;
  /** The price that `amountDue` was computed with. */
  readonly rate: string;
  readonly label: string | null;
  readonly email: string | null;
  readonly address: string;
  readonly script: Uint8Array;
  readonly addressIndex: number;
  readonly createdAtMs: number;
  readonly windowEndsAtMs: number;
};

/**
 * Writes transactions with their first event, in one statement; tolerance and late policy are copied from the merchant's settings, the
 * rate's time and sources from the price in force. Returns for each whether it was written: not if the price has changed or its node cannot
 * be used or is not looked at, so that a caller with remembered prices cannot sell at an old one.
 */
export async function insertTransactions(sql: Sql, rows: readonly NewTransaction[]): Promise<readonly boolean[]> {
  const column = <K extends keyof NewTransaction>(name: K) => rows.map((row) => row[name]);
  const result = await sql.query<{ object_id: string }>({
    name: 'insert_transactions',
    text: `
      with input as (
        select * from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::numeric[], $6::numeric[], $7::text[], $8::text[],
                             $9::text[], $10::bytea[], $11::bigint[], $12::float8[], $13::float8[])
          as t(id, merchant_id, currency, usd_minor, amount_due, rate, label, email, address, script, address_index, created_ms, window_ends_ms)
      ), timed as (
        select *, ${instant('created_ms')} as created_at, ${instant('window_ends_ms')} as window_ends_at from input
      ), made as (
        insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, label, email, address, script,
                                  address_index, created_at, window_ends_at, due_at, tolerance_bps, late_payments)
        select i.id, i.merchant_id, i.currency, 'started', i.usd_minor, i.amount_due, r.usd, r.at, r.sources, i.label, i.email, i.address, i.script,
               i.address_index, i.created_at, i.window_ends_at, i.window_ends_at, s.tolerance_bps, s.late_payments
          from timed i join merchant_settings s using (merchant_id) join rates r on r.currency = i.currency and r.usd = i.rate
               join node_conditions n on n.currency = i.currency and n.state in (${USABLE_NODE_STATES.map((state) => `'${state}'`).join()})
                                     and ${IS_LOOKED_AT('n')}
        returning id, merchant_id, created_at
      )
      insert into events (merchant_id, object_id, sequence, type, status, reason, at)
      select merchant_id, id, 1, 'transaction.started', 'started', 'created', created_at from made
      returning object_id`,
    values: [
      column('id'),
      numberArray(column('merchantId')),
      column('currency'),
      numberArray(column('usdMinor')),
      numberArray(column('amountDue')),
      numberArray(column('rate')),
      column('label'),
      column('email'),
      column('address'),
      column('script'),
      numberArray(column('addressIndex')),
      numberArray(column('createdAtMs')),
      numberArray(column('windowEndsAtMs')),
    ],
  });
  const made = new Set(result.rows.map((row) => row.object_id));
  return rows.map((row) => made.has(row.id));
}

/** Milliseconds since 1970 as an instant, to the millisecond. */
function instant(name: string): string {
  return `timestamptz 'epoch' + ${name} * interval '1 millisecond'`;
}

/** PostgreSQL's text of an array whose elements need no quotes: four times as fast as the driver's, which checks each element for them. */
function numberArray(list: readonly (number | bigint | string)[]): string {
  return `{${list.join()}}`;
}

export type CheckRow = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly status: TransactionStatus;
  readonly currency: PaymentMethod;
  readonly amountDue: bigint;
  readonly received: bigint;
  readonly usdMinor: bigint;
  readonly confirmations: number;
  readonly createdAtMs: number;
  readonly confirmedAtMs: number | null;
  readonly sequence: number;
};

export type RawCheck = {
  id: string;
  merchant_id: bigint;
  status: TransactionStatus;
  currency: PaymentMethod;
  amount_due: string;
  crypto_received: string;
  usd_minor: bigint;
  confirmations: number;
  created_at: Date;
  confirmed_at: Date | null;
  sequence: number;
};

/** In review the payments may be on several chains, each with its own tip; otherwise there is one tip. */
export const CHECK_COLUMNS = `t.id, t.merchant_id, t.status, t.currency, t.amount_due, t.crypto_received, t.usd_minor, t.created_at, t.confirmed_at, t.sequence,
  case when t.confirmed_from_height is null then 0
       when t.status = 'review' then coalesce(
         (select greatest(0, min(case when p.height is null then 0 else k.height - p.height + 1 end))
            from payments p join chain_cursors k on k.currency = p.currency where p.transaction_id = t.id and p.state in ('mempool', 'mined')), 0)
       else greatest(0, (select c.height from chain_cursors c where c.currency = t.confirmed_from_currency) - t.confirmed_from_height + 1)
  end as confirmations`;

/** A transaction as `/check_transaction` needs it, from columns of one row; amounts in minor units. */
export function checkRow(row: RawCheck): CheckRow {
  return {
    id: row.id,
    merchantId: row.merchant_id,
    status: row.status,
    currency: row.currency,
    amountDue: BigInt(row.amount_due),
    received: BigInt(row.crypto_received),
    usdMinor: row.usd_minor,
    confirmations: row.confirmations,
    createdAtMs: row.created_at.getTime(),
    confirmedAtMs: row.confirmed_at?.getTime() ?? null,
    sequence: row.sequence,
  };
}

/**
 * What check_transaction shows, for each id; null where there is none. The caller compares whose it is. The ids are in a subselect: with a
 * value that the planner cannot see no plan is better than the general one, so the statement is planned five times per session and not at
 * every call, which cost as much as all the rest of it.
 */
export async function readChecks(sql: Sql, ids: readonly string[]): Promise<readonly (CheckRow | null)[]> {
  const { rows } = await sql.query<RawCheck>({
    name: 'read_checks',
    text: `select ${CHECK_COLUMNS} from transactions t where t.id = any ((select $1::text[])::text[])`,
    values: [ids],
  });
  const byId = new Map(rows.map((row) => [row.id, checkRow(row)]));
  return ids.map((id) => byId.get(id) ?? null);
}

/** A rate as the database stores it. */
export function storedRate(text: string): Rate {
  const rate = parseRate(text);
  if (rate === null) throw new Error(`the database holds the rate ${text}`);
  return rate;
}
