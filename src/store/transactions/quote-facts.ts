// What a quote needs: current prices and the state of each node, in one statement for all concurrent callers.
import type { CurrencyCode, PaymentMethod } from '../../core/currency.ts';
import type { Rate } from '../../core/rate.ts';
import type { RowSeals } from '../../core/row-seals.ts';
import { IS_LOOKED_AT } from '../chain/node-conditions.ts';
import type { Sql } from '../postgres/connect.ts';
import { sealedPrice } from './rates.ts';

export type QuoteFacts = {
  readonly rates: ReadonlyMap<PaymentMethod, { readonly usd: Rate; readonly atMs: number }>;
  /** The last known state of each node, {@link UNWATCHED} when no worker looks at it any more; a currency without a row was never seen. */
  readonly nodes: ReadonlyMap<PaymentMethod, string>;
};

/** A node that is only busy answers again in a moment; with any other state we could not see a payment. */
export const USABLE_NODE_STATES: readonly string[] = ['ready', 'busy'];

/** In the place of a node's state: what it was is too old to be relied on. */
export const UNWATCHED = 'unwatched';

/** Reads prices and node conditions as they are now; a price that is not what was sealed is none. */
export async function readQuoteFacts(sql: Sql, seals: RowSeals): Promise<QuoteFacts> {
  const { rows } = await sql.query<{
    currency: PaymentMethod;
    usd: string | null;
    at: Date | null;
    seal: Uint8Array | null;
    state: string | null;
  }>({
    name: 'read_quote_facts',
    text: `select coalesce(r.currency, n.currency) as currency, r.usd::text as usd, r.at, r.seal,
                  case when n.currency is null or ${IS_LOOKED_AT('n')} then n.state else '${UNWATCHED}' end as state
             from rates r full join node_conditions n on n.currency = r.currency`,
    values: [],
  });
  const rates = new Map<PaymentMethod, { usd: Rate; atMs: number }>();
  const nodes = new Map<PaymentMethod, string>();
  for (const row of rows) {
    if (row.usd !== null && row.at !== null) {
      const usd = sealedPrice(seals, { currency: row.currency as CurrencyCode, usd: row.usd, at: row.at, seal: row.seal });
      if (usd !== null) rates.set(row.currency, { usd, atMs: row.at.getTime() });
    }
    if (row.state !== null) nodes.set(row.currency, row.state);
  }
  return { rates, nodes };
}
