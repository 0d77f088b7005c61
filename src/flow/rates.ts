// The current price of each currency, for /get_rates. The quote reads the same rows.
import { CURRENCY_CODES, type CurrencyCode } from '../core/currency.ts';
import { type LatestRate, latestRates } from '../store/transactions/rates.ts';
import type { Context } from './context.ts';

/** The price of every currency that has one at most 5 min old, in the order of a balances answer; the others are left out. */
export async function getRates(ctx: Context): Promise<Partial<Record<CurrencyCode, LatestRate>>> {
  const rates = await latestRates(ctx.db, CURRENCY_CODES, ctx.ports.clock.now());
  return Object.fromEntries(CURRENCY_CODES.flatMap((code) => (rates.has(code) ? [[code, rates.get(code)]] : [])));
}
