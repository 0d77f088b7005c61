// Prices of Bitfinex's public tickers, all symbols in one call. They have no time, so a price counts from the moment when its answer
// arrived.
import { CURRENCIES, CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import type { RateFeed, RateSample } from '../../core/rate-feed.ts';
import { element, type FeedOptions, type GetJson, type Json, price } from './http.ts';

const SYMBOLS: ReadonlyMap<string, CurrencyCode> = new Map(
  CURRENCY_CODES.map((code) => [CURRENCIES[code].rateSymbols.bitfinex, code]),
);
const BID = 1;
const ASK = 3;

/** GET /v2/tickers?symbols=… → [[SYMBOL, BID, BID_SIZE, ASK, ASK_SIZE, …], …], prices as JSON numbers. */
export function bitfinexFeed(get: GetJson, { clock, deadline }: FeedOptions): RateFeed {
  return {
    source: 'bitfinex',
    async read() {
      const { body, cachedMs } = await get(`/v2/tickers?symbols=${[...SYMBOLS.keys()].join(',')}`, deadline());
      if (!Array.isArray(body)) throw new Error('Bitfinex answered something else than a list of tickers');
      const atMs = clock.now() - cachedMs;
      return body.flatMap((row: Json) => sampleOf(row, atMs));
    },
  };
}

function sampleOf(row: Json, atMs: number): RateSample[] {
  const symbol = element(row, 0);
  const currency = typeof symbol === 'string' ? SYMBOLS.get(symbol) : undefined;
  const bid = price(element(row, BID));
  const ask = price(element(row, ASK));
  return currency === undefined || bid === null || ask === null ? [] : [{ source: 'bitfinex', currency, bid, ask, atMs }];
}
