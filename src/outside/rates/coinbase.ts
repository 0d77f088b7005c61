// Prices of Coinbase Exchange's product tickers, one call for each currency. A price counts from the time of the last trade: a market
// without a trade for a minute does not count.
import { CURRENCIES, CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import type { RateFeed, RateSample } from '../../core/rate-feed.ts';
import { type FeedOptions, type GetJson, type Json, member, price, readEach } from './http.ts';

/** GET /products/BTC-USD/ticker → {bid, ask, time (ISO 8601), …}. */
export function coinbaseFeed(get: GetJson, { deadline }: FeedOptions): RateFeed {
  return {
    source: 'coinbase',
    read: () =>
      readEach(CURRENCY_CODES, deadline(), async (code, signal) =>
        sampleOf(code, (await get(`/products/${CURRENCIES[code].rateSymbols.coinbase}/ticker`, signal)).body),
      ),
  };
}

function sampleOf(currency: CurrencyCode, body: Json): RateSample[] {
  const bid = price(member(body, 'bid'));
  const ask = price(member(body, 'ask'));
  const time = member(body, 'time');
  const atMs = typeof time === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]{8,20}Z$/.test(time) ? Date.parse(time) : Number.NaN;
  return bid === null || ask === null || Number.isNaN(atMs) ? [] : [{ source: 'coinbase', currency, bid, ask, atMs }];
}
