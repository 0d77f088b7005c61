// Prices in USD as scaled integers, and conversions with them. The quote's promise (behaviour §1): crypto_amount × exchange_rate ≥
// usd_amount, and one unit of the quote's last decimal less is below.
import { CURRENCIES, PAYMENT_METHODS, type PaymentMethod } from './currency.ts';
import { formatMinor, mulDivDown, mulDivUp } from './money.ts';

/** USD for one whole unit of a currency, in units of 10⁻⁸ USD. Always positive. */
export type Rate = bigint;
const RATE_DECIMALS = 8;
const RATE_UNIT = 10n ** 8n;
const CENTS_PER_USD = 100n;
/** Of each currency: how many units of amount times rate are one USD. */
const MINOR_PER_WHOLE = Object.fromEntries(
  PAYMENT_METHODS.map((code) => [code, RATE_UNIT * 10n ** BigInt(CURRENCIES[code].decimals)]),
) as Readonly<Record<PaymentMethod, bigint>>;

/** Reads a price with up to 8 decimals; null when it is not a positive decimal number of that form. */
export function parseRate(text: string): Rate | null {
  if (!/^\d{1,15}(\.\d{1,8})?$/.test(text)) return null;
  const [whole = '', fraction = ''] = text.split('.');
  const rate = BigInt(whole + fraction.padEnd(RATE_DECIMALS, '0'));
  return rate > 0n ? rate : null;
}

/** A price with 2 to 8 decimals, exactly the number that was used. */
export function formatRate(rate: Rate): string {
  return formatMinor(rate, RATE_DECIMALS).replace(/(\.\d{2}\d*?)0+$/, '$1');
}

/** Minor units to ask for, rounded up to the quote's precision. */
export function cryptoForUsdUp(usdMinor: bigint, currency: PaymentMethod, rate: Rate): bigint {
  const { decimals, quoteDecimals } = CURRENCIES[currency];
  const quoteUnits = mulDivUp(usdMinor * RATE_UNIT, 10n ** BigInt(quoteDecimals), CENTS_PER_USD * rate);
  return quoteUnits * 10n ** BigInt(decimals - quoteDecimals);
}

/** What must be given for a USD amount (cents), in minor units of the currency, rounded up to the minor unit. */
export function cryptoForUsdExactUp(usdMinor: bigint, currency: PaymentMethod, rate: Rate): bigint {
  return mulDivUp(usdMinor * RATE_UNIT, 10n ** BigInt(CURRENCIES[currency].decimals), CENTS_PER_USD * rate);
}

/** What a USD amount (cents) is worth in minor units of the currency, rounded down. */
export function cryptoForUsdDown(usdMinor: bigint, currency: PaymentMethod, rate: Rate): bigint {
  return mulDivDown(usdMinor * RATE_UNIT, 10n ** BigInt(CURRENCIES[currency].decimals), CENTS_PER_USD * rate);
}

/** What an amount is worth in cents, rounded down. */
export function usdForCryptoDown(minor: bigint, currency: PaymentMethod, rate: Rate): bigint {
  return mulDivDown(minor * CENTS_PER_USD, rate, MINOR_PER_WHOLE[currency]);
}

/** What an amount is worth in cents, rounded up. */
export function usdForCryptoUp(minor: bigint, currency: PaymentMethod, rate: Rate): bigint {
  return mulDivUp(minor * CENTS_PER_USD, rate, MINOR_PER_WHOLE[currency]);
}

/** An amount and the rate at which it is valued. */
export type Valued = { readonly minor: bigint; readonly rate: Rate };

/** What amounts of one currency are worth together in cents, rounded up once. */
export function usdForPartsUp(parts: readonly Valued[], currency: PaymentMethod): bigint {
  const worth = parts.reduce((total, { minor, rate }) => total + minor * rate, 0n);
  return mulDivUp(worth, CENTS_PER_USD, MINOR_PER_WHOLE[currency]);
}

/**
 * Whether amounts of one currency are together worth at least another value, less a tolerance; exact, nothing is rounded.
 * @param least the value to reach: an amount at its rate, or cents; less `lessUsd` ten-thousandths of a cent
 */
export function isWorth(
  parts: readonly Valued[],
  currency: PaymentMethod,
  least: Valued | { readonly usdMinor: bigint },
  lessUsd: bigint,
): boolean {
  const cent = MINOR_PER_WHOLE[currency] / CENTS_PER_USD;
  const worth = parts.reduce((total, { minor, rate }) => total + minor * rate, 0n);
  const wanted = 'usdMinor' in least ? least.usdMinor * cent : least.minor * least.rate;
  return worth >= wanted - (lessUsd * cent) / 10_000n;
}
