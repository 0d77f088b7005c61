// The exchanges that can be asked for prices: their public addresses, and what each trades against dollars.
import { CURRENCIES, CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';

export type RateSourceName = 'kraken' | 'coinbase' | 'bitstamp' | 'bitfinex';

export const RATE_SOURCES: Readonly<Record<RateSourceName, { readonly url: string; readonly trades: readonly CurrencyCode[] }>> =
  {
    kraken: { url: 'https://api.kraken.com', trades: CURRENCY_CODES },
    coinbase: { url: 'https://api.exchange.coinbase.com', trades: CURRENCY_CODES },
    bitstamp: {
      url: 'https://www.bitstamp.net',
      trades: CURRENCY_CODES.filter((code) => CURRENCIES[code].rateSymbols.bitstamp !== null),
    },
    bitfinex: { url: 'https://api-pub.bitfinex.com', trades: CURRENCY_CODES },
  };
