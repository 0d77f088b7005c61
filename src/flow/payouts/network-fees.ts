// What sending a currency costs on its chain, for the families of all chains: what is held for it, and what it is expected to be.
import { type CurrencyCode, ETHER, isUtxo } from '../../core/currency.ts';
import { gasWorth, reservedGas, usualGas } from '../../core/payouts/gas.ts';
import { reservedFee, usualFee } from '../../core/payouts/outgoing-fees.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';
import { inputsOf } from './bitcoin-request.ts';

/** The fee of a usual payment, in minor units of the currency; null where there is no price of gas. @param feeRate as the nodes said last */
export async function usualNetworkFee(ctx: Context, sql: Sql, currency: CurrencyCode, feeRate: bigint): Promise<bigint | null> {
  if (isUtxo(currency)) return usualFee(currency, feeRate);
  return gasWorth(
    currency,
    usualGas(currency, feeRate),
    await latestRates(sql, ctx.ports.seals, [ETHER, currency], ctx.ports.clock.now()),
  );
}

/** What is held for the fee of paying an amount; null where there is no price of gas. */
export async function reservedNetworkFee(
  ctx: Context,
  sql: Sql,
  currency: CurrencyCode,
  { feeRate, amount }: { readonly feeRate: bigint; readonly amount: bigint },
): Promise<bigint | null> {
  if (isUtxo(currency)) return reservedFee(currency, feeRate, await inputsOf(sql, currency, amount));
  return gasWorth(
    currency,
    reservedGas(feeRate),
    await latestRates(sql, ctx.ports.seals, [ETHER, currency], ctx.ports.clock.now()),
  );
}
