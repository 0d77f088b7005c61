// Prices of Kraken's public ticker, all pairs in one call. It has no time, so a price counts from the moment when its answer arrived.
import { CURRENCIES, CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import type { RateFeed, RateSample } from '../../core/rate-feed.ts';
import { element, type FeedOptions, type GetJson, type JsonAnswer, member, price } from './http.ts';

/**
 * GET /0/public/Ticker?pair=… → {error: [], result: {XXBTZUSD: {a: [ask, …], b: [bid, …]}}}. One unknown pair makes Kraken refuse them all:
 * then each is requested separately.
 */
export function krakenFeed(get: GetJson, { clock, deadline }: FeedOptions): RateFeed {
  async function ask(codes: readonly CurrencyCode[], signal: AbortSignal): Promise<RateSample[]> {
    const answer = await get(
      `/0/public/Ticker?pair=${codes.map((code) => CURRENCIES[code].rateSymbols.kraken[0]).join(',')}`,
      signal,
    );
    const errors = errorsOf(answer);
    if (errors.length > 0) {
      if (codes.length > 1 && errors.some((text) => text.includes('Unknown asset pair'))) return askEach(codes, signal);
      throw new Error(`Kraken refused: ${errors.join('; ').slice(0, 200)}`);
    }
    const atMs = clock.now() - answer.cachedMs;
    return codes.flatMap((code) => sampleOf(code, answer, atMs));
  }
  async function askEach(codes: readonly CurrencyCode[], signal: AbortSignal): Promise<RateSample[]> {
    const answers = await Promise.allSettled(codes.map((code) => ask([code], signal)));
    return answers.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  }
  return { source: 'kraken', read: () => ask(CURRENCY_CODES, deadline()) };
}

/** Warnings begin with W, errors with E. */
function errorsOf(answer: JsonAnswer): string[] {
  const errors = member(answer.body, 'error');
  if (!Array.isArray(errors)) throw new Error('Kraken answered without an error list');
  return errors.filter((text): text is string => typeof text === 'string' && !text.startsWith('W'));
}

function sampleOf(currency: CurrencyCode, answer: JsonAnswer, atMs: number): RateSample[] {
  const result = member(answer.body, 'result');
  const [asked, answered] = CURRENCIES[currency].rateSymbols.kraken;
  const ticker = member(result, answered) ?? member(result, asked);
  const bid = price(element(member(ticker, 'b'), 0));
  const ask = price(element(member(ticker, 'a'), 0));
  return bid === null || ask === null ? [] : [{ source: 'kraken', currency, bid, ask, atMs }];
}
