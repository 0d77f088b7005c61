// The numbers of behaviour §3 and §5 that a merchant can rely on, written a second time: nothing here is taken from the product, so that a
// mistake there is not repeated here.

export const CURRENCIES = ['BTC', 'LTC', 'ETH', 'BCH', 'DASH', 'DOGE', 'USDT'] as const;
export type Currency = (typeof CURRENCIES)[number];
/** What a customer can choose. */
export type Chosen = Currency | 'BTC-LN';
export const METHODS = ['bitcoin', 'lightning', 'usdt', 'ach'] as const;
export type Method = (typeof METHODS)[number];

const DECIMALS: Readonly<Record<Currency | 'USD', number>> = {
  BTC: 8,
  LTC: 8,
  ETH: 18,
  BCH: 8,
  DASH: 8,
  DOGE: 8,
  USDT: 6,
  USD: 2,
};
/** The least that a method pays out, in its unit. */
export const MINIMUM: Readonly<Record<Method, bigint>> = { bitcoin: 100_000n, lightning: 1n, usdt: 50_000_000n, ach: 10_000n };
export const UNIT: Readonly<Record<Method, Currency | 'USD'>> = { bitcoin: 'BTC', lightning: 'BTC', usdt: 'USDT', ach: 'USD' };
export const balanceOf = (chosen: Chosen): Currency => (chosen === 'BTC-LN' ? 'BTC' : chosen);

/** Base units of a decimal number, exactly. */
export function units(amount: string, currency: Currency | 'USD'): bigint {
  const [whole = '0', part = ''] = amount.replace('-', '').split('.');
  const size = BigInt(whole + part.padEnd(DECIMALS[currency], '0'));
  return amount.startsWith('-') ? -size : size;
}
/** As many decimals as the currency has. */
export function inWords(amount: bigint, currency: Currency | 'USD'): string {
  const digits = amount.toString().padStart(DECIMALS[currency] + 1, '0');
  return `${digits.slice(0, -DECIMALS[currency])}.${digits.slice(-DECIMALS[currency])}`;
}

const divideUp = (above: bigint, below: bigint): bigint => (above + below - 1n) / below;
/** 1 %, rounded up to the cent. */
export const achFee = (cents: bigint): bigint => divideUp(cents, 100n);
/** @param price dollars for one whole unit, as a decimal number */
export function bought(cents: bigint, currency: Currency, price: string, rounded: 'up' | 'down'): bigint {
  const [whole = '0', part = ''] = price.split('.');
  const above = cents * 10n ** BigInt(DECIMALS[currency]) * 10n ** BigInt(part.length);
  const below = 100n * BigInt(whole + part);
  return rounded === 'up' ? divideUp(above, below) : above / below;
}
/** What a Lightning payout may cost at most. */
export const highestRoutingFee = (amount: bigint): bigint => {
  const share = divideUp(amount, 100n);
  return share > 10n ? share : 10n;
};

/** 1 % of what is due, at most 5 dollars of it. */
export function tolerance(due: bigint, usdCents: bigint): bigint {
  const share = due / 100n;
  const most = (due * 500n) / usdCents;
  return share < most ? share : most;
}
