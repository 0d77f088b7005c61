// A merchant's available balances, from the ledger's balance rows.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

/** The available balances in minor units; a currency that was never booked is left out. */
export async function readAvailable(sql: Sql, merchantId: bigint): Promise<ReadonlyMap<CurrencyCode, bigint>> {
  const { rows } = await sql.query<{ currency: CurrencyCode; amount: string }>({
    name: 'balances_available',
    text: `select a.currency, b.amount from ledger.account a join ledger.balance b on b.account_id = a.id
            where a.merchant_id = $1 and a.kind = 'available'`,
    values: [merchantId],
  });
  return new Map(rows.map((row) => [row.currency, BigInt(row.amount)]));
}
