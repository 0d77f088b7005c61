// Amounts: whole minor units as bigint, with their currency. The only file that does arithmetic on amounts; decimal strings exist only
// where requests are read and answers written. Every rounding function names its direction.
import { CURRENCIES, decimalsOf, type LedgerCurrency, type PaymentMethod } from './currency.ts';

/** The form of every amount in requests and answers (behaviour §1). */
const AMOUNT = /^(0|[1-9]\d{0,17})(\.\d{1,18})?$/;

/** The form of an amount, in words and as a pattern. */
export function amountForm(decimals: number): { readonly accepted: string; readonly pattern: string } {
  return {
    accepted: `a decimal string with at most 18 digits before the point and at most ${decimals} behind it, such as "25.00"; no sign, exponent, space or leading zero`,
    pattern: `^(0|[1-9][0-9]{0,17})(\\.[0-9]{1,${decimals}})?$`,
  };
}

export type ParsedAmount = { readonly minor: bigint } | { readonly problem: 'malformed' | 'too-many-decimals' };

/**
 * Reads a decimal string into minor units.
 * @param text an amount as sent, e.g. `"25.00"`
 * @param decimals the decimals of the unit; more digits than that are refused even when they are zeros
 */
export function parseAmount(text: string, decimals: number): ParsedAmount {
  if (!AMOUNT.test(text)) return { problem: 'malformed' };
  const [whole = '', fraction = ''] = text.split('.');
  if (fraction.length > decimals) return { problem: 'too-many-decimals' };
  return { minor: BigInt(whole + fraction.padEnd(decimals, '0')) };
}

/** Minor units as a decimal string with exactly `decimals` digits behind the point (none and no point for 0). */
export function formatMinor(minor: bigint, decimals: number): string {
  const sign = minor < 0n ? '-' : '';
  const digits = (minor < 0n ? -minor : minor).toString().padStart(decimals + 1, '0');
  return decimals === 0 ? sign + digits : `${sign}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/**
 * An amount as answers write it: all decimals of its currency; where quotes have fewer, at least those, and trailing zeros beyond them are
 * cut off.
 */
export function formatAmount(minor: bigint, currency: LedgerCurrency | PaymentMethod): string {
  if (currency === 'USD') return formatMinor(minor, decimalsOf(currency));
  const { decimals, quoteDecimals } = CURRENCIES[currency];
  const text = formatMinor(minor, decimals);
  const shortest = text.length - (decimals - quoteDecimals);
  let end = text.length;
  while (end > shortest && text[end - 1] === '0') end -= 1;
  return text.slice(0, end);
}

/** Σ of the amounts; zero for none. */
export function sum(amounts: Iterable<bigint>): bigint {
  let total = 0n;
  for (const amount of amounts) total += amount;
  return total;
}
/** a + b, both in minor units of one currency. */
export function plus(a: bigint, b: bigint): bigint {
  return a + b;
}
/** a − b, which may be negative: callers that must not go below zero use {@link atLeastZero}. */
export function minus(a: bigint, b: bigint): bigint {
  return a - b;
}
/** −a: the other side of a posting. */
export function negated(a: bigint): bigint {
  return -a;
}
/** a, or zero where a is negative. */
export function atLeastZero(a: bigint): bigint {
  return a < 0n ? 0n : a;
}
/** The smaller of two amounts of one currency. */
export function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
/** The larger of two amounts of one currency. */
export function greatest(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
/** amount × basisPoints, in ten-thousandths of the amount's unit: exact. */
export function basisPointsExact(amount: bigint, basisPoints: number): bigint {
  return amount * BigInt(basisPoints);
}
/** amount × basisPoints / 10,000, rounded down. */
export function basisPointsDown(amount: bigint, basisPoints: number): bigint {
  return (amount * BigInt(basisPoints)) / 10_000n;
}
/** amount × basisPoints / 10,000 of a non-negative amount, rounded up. */
export function basisPointsUp(amount: bigint, basisPoints: number): bigint {
  return mulDivUp(amount, BigInt(basisPoints), 10_000n);
}
/** a × b / c of non-negative numbers, rounded down. */
export function mulDivDown(a: bigint, b: bigint, c: bigint): bigint {
  return (a * b) / c;
}
/** a × b / c of non-negative numbers, rounded up. */
export function mulDivUp(a: bigint, b: bigint, c: bigint): bigint {
  return (a * b + c - 1n) / c;
}
