// Prices of Bitstamp's tickers, one call for each currency that it trades. A price counts from the ticker's own time, in seconds.
import { CURRENCIES, type CurrencyCode } from '../../core/currency.ts';
import type { RateFeed, RateSample } from '../../core/rate-feed.ts';
import { type FeedOptions, type GetJson, type Json, member, price, readEach } from './http.ts';
import { RATE_SOURCES } from './sources.ts';

/**
 * GET /api/v2/ticker/btcusd/ → {bid, ask, timestamp (seconds), …}.
 * @param codes the currencies to ask for: those that it trades
 */
export function bitstampFeed(get: GetJson, { deadline }: FeedOptions, codes = RATE_SOURCES.bitstamp.trades): RateFeed {
  return {
    source: 'bitstamp',
    read: () =>
      readEach(codes, deadline(), async (code, signal) =>
        sampleOf(
          code,
          (await get(`/api/v2/ticker/${CURRENCIES[code].rateSymbols.bitstamp ?? `${code.toLowerCase()}usd`}/`, signal)).body,
        ),
      ),
  };
}

function sampleOf(currency: CurrencyCode, body: Json): RateSample[] {
  const bid = price(member(body, 'bid'));
  const ask = price(member(body, 'ask'));
  const timestamp = member(body, 'timestamp');
  if (bid === null || ask === null || typeof timestamp !== 'string' || !/^\d{1,11}$/.test(timestamp)) return [];
  return [{ source: 'bitstamp', currency, bid, ask, atMs: Number(timestamp) * 1000 }];
}
