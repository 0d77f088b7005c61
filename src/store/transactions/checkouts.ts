// What the checkout page shows of transactions: any number of open pages is one statement.
import type { PaymentMethod } from '../../core/currency.ts';
import type { Rate } from '../../core/rate.ts';
import { IS_LOOKED_AT } from '../chain/node-conditions.ts';
import type { Sql } from '../postgres/connect.ts';
import { USABLE_NODE_STATES } from './quote-facts.ts';
import { CHECK_COLUMNS, type CheckRow, checkRow, type RawCheck, storedRate } from './transactions.ts';

export type CheckoutRow = CheckRow & {
  readonly businessName: string;
  readonly label: string | null;
  readonly address: string;
  readonly rate: Rate;
  readonly toleranceBps: number;
  readonly expiresAtMs: number;
  /** Of payments in the currency asked for that are neither in the mempool nor in the chain, and that nothing has replaced. */
  readonly awaited: bigint;
  /** Whether a payment would be seen now: by what a new transaction of this currency would be refused, too. */
  readonly isWatched: boolean;
  /** Whatever nothing has replaced, the newest first, {@link MOST_PAYMENTS} at most. */
  readonly payments: readonly CheckoutPayment[];
};

export type CheckoutPayment = {
  readonly currency: PaymentMethod;
  readonly txid: string;
  readonly minor: bigint;
  /** Neither in the mempool nor in the chain. */
  readonly isGone: boolean;
};

/** Anybody may pay in as many outputs as he likes; nobody reads more than these. */
export const MOST_PAYMENTS = 10;

type Raw = RawCheck & {
  business_name: string;
  label: string | null;
  address: string;
  rate: string;
  tolerance_bps: number;
  window_ends_at: Date;
  awaited: string;
  watched: boolean;
  payments: { currency: PaymentMethod; txid: string; amount: string; gone: boolean }[];
};

/** Those of these ids that exist, by id. */
export async function readCheckouts(sql: Sql, ids: readonly string[]): Promise<ReadonlyMap<string, CheckoutRow>> {
  const { rows } = await sql.query<Raw>({
    name: 'read_checkouts',
    text: `select ${CHECK_COLUMNS}, m.business_name, t.label, t.address, t.rate, t.tolerance_bps, t.window_ends_at,
                  (select coalesce(sum(p.amount), 0) from payments p
                    where p.transaction_id = t.id and p.state = 'gone' and p.currency = t.currency) as awaited,
                  exists (select 1 from node_conditions n where n.currency = t.currency and n.state in (${USABLE_NODE_STATES.map((state) => `'${state}'`).join()})
                                                            and ${IS_LOOKED_AT('n')}) as watched,
                  (select coalesce(json_agg(json_build_object('currency', p.currency, 'txid', p.txid, 'amount', p.amount::text, 'gone', p.state = 'gone')), '[]')
                     from (select currency, txid, amount, state from payments
                            where transaction_id = t.id and state <> 'conflicted' order by seen_at desc, id desc limit ${MOST_PAYMENTS}) p) as payments
             from transactions t join merchants m on m.id = t.merchant_id
            where t.id = any ((select $1::text[])::text[])`,
    values: [ids],
  });
  return new Map(rows.map((row) => [row.id, checkoutRow(row)]));
}

function checkoutRow(row: Raw): CheckoutRow {
  return {
    ...checkRow(row),
    businessName: row.business_name,
    label: row.label,
    address: row.address,
    rate: storedRate(row.rate),
    toleranceBps: row.tolerance_bps,
    expiresAtMs: row.window_ends_at.getTime(),
    awaited: BigInt(row.awaited),
    isWatched: row.watched,
    payments: row.payments.map(({ currency, txid, amount, gone }) => ({ currency, txid, minor: BigInt(amount), isGone: gone })),
  };
}
