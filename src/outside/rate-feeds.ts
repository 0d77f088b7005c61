// The four exchanges whose prices the service trusts together (core/rate-median judges them): made once by main/wire. In the sandbox
// the same clients talk to simulated exchanges, under other base addresses.
import { CURRENCY_CODES } from '../core/currency.ts';
import type { Clock, RateFeed } from '../core/ports.ts';
import { bitfinexFeed } from './rate-bitfinex.ts';
import { bitstampFeed } from './rate-bitstamp.ts';
import { coinbaseFeed } from './rate-coinbase.ts';
import { type FeedOptions, type GetJson, jsonReader } from './rate-http.ts';
import { krakenFeed } from './rate-kraken.ts';

export type RateSourceName = 'kraken' | 'coinbase' | 'bitstamp' | 'bitfinex';

const MAKERS: Readonly<Record<RateSourceName, (get: GetJson, options: FeedOptions) => RateFeed>> = {
  kraken: krakenFeed,
  coinbase: coinbaseFeed,
  bitstamp: bitstampFeed,
  bitfinex: bitfinexFeed,
};

/** Where the exchanges answer the public. */
export const PUBLIC_RATE_URLS: Readonly<Record<RateSourceName, string>> = {
  kraken: 'https://api.kraken.com',
  coinbase: 'https://api.exchange.coinbase.com',
  bitstamp: 'https://www.bitstamp.net',
  bitfinex: 'https://api-pub.bitfinex.com',
};

/**
 * One feed for each exchange. A reading throws when the exchange answers nothing usable within the time-out; a currency that it cannot say is
 * left out. Nothing is asked before the first `read`.
 * @param options.urls base address of each exchange, before its own paths; {@link PUBLIC_RATE_URLS} outside the sandbox
 * @param options.tradesAll every exchange there trades every currency (the simulated ones do); the real Bitstamp has no DASH
 * @param options.timeoutMs for one whole reading, 5000 when absent
 */
export function rateFeeds(options: {
  readonly clock: Clock;
  readonly urls: Readonly<Record<RateSourceName, string>>;
  readonly tradesAll?: boolean;
  readonly timeoutMs?: number;
}): readonly RateFeed[] {
  const { clock, urls, tradesAll = false, timeoutMs = 5000 } = options;
  const deadline = () => AbortSignal.timeout(timeoutMs);
  const makers = tradesAll ? { ...MAKERS, bitstamp: bitstampOfAll } : MAKERS;
  return (Object.keys(makers) as RateSourceName[]).map((name) => makers[name](jsonReader(urls[name]), { clock, deadline }));
}

function bitstampOfAll(get: GetJson, options: FeedOptions): RateFeed {
  return bitstampFeed(get, options, CURRENCY_CODES);
}
