// The exchanges that the service combines into one price (core/rate-median.ts judges them). In the sandbox the same clients talk to
// simulated exchanges, under other base addresses.
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import type { Clock } from '../../core/ports.ts';
import type { Rate } from '../../core/rate.ts';
import type { RateFeed } from '../../core/rate-feed.ts';
import { bitfinexFeed } from './bitfinex.ts';
import { bitstampFeed } from './bitstamp.ts';
import { coinbaseFeed } from './coinbase.ts';
import { type FeedOptions, type GetJson, jsonReader } from './http.ts';
import { krakenFeed } from './kraken.ts';
import type { RateSourceName } from './sources.ts';

const MAKERS: Readonly<Record<RateSourceName, (get: GetJson, options: FeedOptions) => RateFeed>> = {
  kraken: krakenFeed,
  coinbase: coinbaseFeed,
  bitstamp: bitstampFeed,
  bitfinex: bitfinexFeed,
};

/**
 * One feed for each exchange. A reading throws when the exchange answers nothing usable within the time-out; a currency without a usable
 * price is left out. Nothing is requested before the first `read`.
 * @param options.urls base address of each exchange to ask, before its own paths
 * @param options.tradesAll every exchange there trades every currency (the simulated ones do)
 * @param options.timeoutMs for one whole reading, 5000 when absent
 */
export function rateFeeds(options: {
  readonly clock: Clock;
  readonly urls: Readonly<Partial<Record<RateSourceName, string>>>;
  readonly tradesAll?: boolean;
  readonly timeoutMs?: number;
}): readonly RateFeed[] {
  const { clock, urls, tradesAll = false, timeoutMs = 5000 } = options;
  const deadline = () => AbortSignal.timeout(timeoutMs);
  const makers = tradesAll ? { ...MAKERS, bitstamp: bitstampOfAll } : MAKERS;
  return (Object.entries(urls) as [RateSourceName, string][]).map(([name, url]) =>
    makers[name](jsonReader(url), { clock, deadline }),
  );
}

/** Prices that the operator sets in place of all exchanges, where currencies are worth nothing and no exchange can be asked. */
export function fixedFeed(clock: Clock, prices: Readonly<Partial<Record<CurrencyCode, Rate>>>): RateFeed {
  return {
    source: 'fixed',
    isFixed: true,
    read: async () =>
      (Object.entries(prices) as [CurrencyCode, Rate][]).map(([currency, usd]) => ({
        source: 'fixed',
        currency,
        bid: usd,
        ask: usd,
        atMs: clock.now(),
      })),
  };
}

function bitstampOfAll(get: GetJson, options: FeedOptions): RateFeed {
  return bitstampFeed(get, options, CURRENCY_CODES);
}
