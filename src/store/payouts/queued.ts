// The payouts that wait for a batch, by their ids only.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

/** Ids of those in a currency, oldest first, without those that are left out. */
export async function queuedIds(
  sql: Sql,
  currency: CurrencyCode,
  { limit, without }: { readonly limit: number; readonly without: readonly string[] },
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'queued_payout_ids',
    text: `select id from payouts where step = 'queued' and currency = $1 and script is not null and internal_to is null and id <> all ($3)
            order by created_at, id limit $2`,
    values: [currency, limit, without],
  });
  return rows.map(({ id }) => id);
}
