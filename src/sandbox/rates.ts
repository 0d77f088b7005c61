// Four simulated exchanges with the answers of Kraken, Coinbase Exchange, Bitstamp and Bitfinex, and prices that /sandbox/rates sets. Each
// trades every currency (the real Bitstamp has no DASH), so that a list of four prices means the same for all. The service's real rate
// clients ask them below /rates/<source>; the prices are kept in one file.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CURRENCY_CODES, type CurrencyCode } from '../core/currency.ts';
import { damaged } from '../core/damaged-file.ts';
import { minus, mulDivDown, plus } from '../core/money.ts';
import { formatRate, parseRate, type Rate } from '../core/rate.ts';
import { syncFolder } from './utxo/journal.ts';

export const SOURCES = ['kraken', 'coinbase', 'bitstamp', 'bitfinex'] as const;
export type Source = (typeof SOURCES)[number];
/** A price for each source, in the order of SOURCES; null = that source is down for the currency. */
export type Prices = readonly (string | null)[];

const everywhere = (price: string): Prices => SOURCES.map(() => price);
const FIRST_PRICES: Readonly<Record<CurrencyCode, Prices>> = {
  BTC: everywhere('65000.00'),
  LTC: everywhere('80.00'),
  ETH: everywhere('3200.00'),
  BCH: everywhere('420.00'),
  DASH: everywhere('30.00'),
  DOGE: everywhere('0.16'),
  USDT: everywhere('1.00'),
};

export type Exchanges = {
  prices(): Readonly<Record<CurrencyCode, Prices>>;
  /** Sets some currencies' prices, durably. */
  set(changes: Partial<Record<CurrencyCode, Prices>>): void;
  /** Answers a GET below /rates/<source>; `path` begins with the exchange's own path. */
  answer(source: Source, path: string, query: URLSearchParams): { readonly status: number; readonly json: string };
};

/** @param folder where rates.json is kept; null = only in memory */
export function openExchanges(options: { readonly folder: string | null; readonly now: () => number }): Exchanges {
  const file = options.folder === null ? null : join(options.folder, 'rates.json');
  let prices = { ...FIRST_PRICES, ...(file === null ? {} : readPrices(file)) };
  const quote = (source: Source, currency: CurrencyCode): Quote | null => {
    const price = prices[currency][SOURCES.indexOf(source)];
    return price === null || price === undefined ? null : quoteAround(parseRate(price) as Rate);
  };
  return {
    prices: () => prices,
    set: (changes) => {
      const changed = { ...prices, ...changes };
      if (file !== null) writeWhole(file, JSON.stringify(changed));
      prices = changed;
    },
    answer: (source, path, query) =>
      EXCHANGES[source]({ path, query, nowMs: options.now(), quote: (code) => quote(source, code) }),
  };
}

function readPrices(file: string): Partial<Record<CurrencyCode, Prices>> {
  try {
    const kept = JSON.parse(readFileSync(file, 'utf8')) as Partial<Record<CurrencyCode, Prices>>;
    for (const [code, prices] of Object.entries(kept)) {
      if (currencyNamed(code) === null || !isPrices(prices)) throw new Error(`the prices of ${code} are not ${SOURCES.length}`);
    }
    return kept;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw damaged(file, error, 'delete it: then the sandbox has its first prices again');
  }
}

function isPrices(value: unknown): value is Prices {
  if (!Array.isArray(value) || value.length !== SOURCES.length) return false;
  return value.every((price) => price === null || (typeof price === 'string' && parseRate(price) !== null));
}

/** Replaces a file's content as a whole: after a crash it has the old or the new one. */
export function writeWhole(file: string, content: string): void {
  const beside = `${file}.new`;
  const descriptor = openSync(beside, 'w', 0o600);
  try {
    writeSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(beside, file);
  syncFolder(dirname(file));
}

/** Bid and ask are evenly around the price, so that their middle is exactly the price; 0.02 % apart. */
type Quote = { readonly bid: string; readonly ask: string; readonly last: string };
function quoteAround(price: Rate): Quote {
  const half = mulDivDown(price, 1n, 10_000n);
  return { bid: formatRate(minus(price, half)), ask: formatRate(plus(price, half)), last: formatRate(price) };
}

type Asked = {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly nowMs: number;
  readonly quote: (code: CurrencyCode) => Quote | null;
};
type Answer = { readonly status: number; readonly json: string };

const ok = (body: unknown): Answer => ({ status: 200, json: JSON.stringify(body) });
const DOWN: Answer = { status: 503, json: '{"error":"this source is down"}' };
const NOT_FOUND: Answer = { status: 404, json: '{"message":"NotFound"}' };

const KRAKEN_PAIRS: ReadonlyMap<string, readonly [CurrencyCode, string]> = new Map([
  ['XBTUSD', ['BTC', 'XXBTZUSD']],
  ['LTCUSD', ['LTC', 'XLTCZUSD']],
  ['ETHUSD', ['ETH', 'XETHZUSD']],
  ['BCHUSD', ['BCH', 'BCHUSD']],
  ['DASHUSD', ['DASH', 'DASHUSD']],
  ['XDGUSD', ['DOGE', 'XDGUSD']],
  ['USDTUSD', ['USDT', 'USDTZUSD']],
]);

function kraken({ path, query, quote }: Asked): Answer {
  if (path !== '/0/public/Ticker') return NOT_FOUND;
  const asked = (query.get('pair') ?? '').split(',').map((pair) => KRAKEN_PAIRS.get(pair));
  if (asked.includes(undefined)) return ok({ error: ['EQuery:Unknown asset pair'] });
  const tickers = asked.flatMap((pair) => {
    const [code, name] = pair as readonly [CurrencyCode, string];
    const prices = quote(code);
    if (prices === null) return [];
    const day = [prices.last, prices.last];
    const ticker = { a: [prices.ask, '1', '1.000'], b: [prices.bid, '1', '1.000'], c: [prices.last, '0.01000000'] };
    return [[name, { ...ticker, v: ['10.0', '20.0'], p: day, t: [100, 200], l: day, h: day, o: prices.last }] as const];
  });
  return tickers.length === 0 ? DOWN : ok({ error: [], result: Object.fromEntries(tickers) });
}

function coinbase({ path, nowMs, quote }: Asked): Answer {
  const code = currencyNamed(/^\/products\/([A-Z]+)-USD\/ticker$/.exec(path)?.[1]);
  if (code === null) return NOT_FOUND;
  const prices = quote(code);
  if (prices === null) return DOWN;
  const time = new Date(nowMs).toISOString();
  return ok({ trade_id: 1, price: prices.last, size: '0.01', time, bid: prices.bid, ask: prices.ask, volume: '100.0' });
}

function bitstamp({ path, nowMs, quote }: Asked): Answer {
  const code = currencyNamed(/^\/api\/v2\/ticker\/([a-z]+)usd\/?$/.exec(path)?.[1]?.toUpperCase());
  if (code === null) return NOT_FOUND;
  const prices = quote(code);
  if (prices === null) return DOWN;
  const { last, bid, ask } = prices;
  const timestamp = String(Math.floor(nowMs / 1000));
  return ok({ timestamp, open: last, high: last, low: last, last, volume: '100.0', vwap: last, bid, ask, pair: `${code}/USD` });
}

const BITFINEX_SYMBOLS: ReadonlyMap<string, CurrencyCode> = new Map([
  ['tBTCUSD', 'BTC'],
  ['tLTCUSD', 'LTC'],
  ['tETHUSD', 'ETH'],
  ['tBCHN:USD', 'BCH'],
  ['tDSHUSD', 'DASH'],
  ['tDOGE:USD', 'DOGE'],
  ['tUSTUSD', 'USDT'],
]);

/** Its numbers are JSON numbers: written digit by digit, never through a floating-point number. */
function bitfinex({ path, query, quote }: Asked): Answer {
  if (path !== '/v2/tickers') return NOT_FOUND;
  const rows = (query.get('symbols') ?? '').split(',').flatMap((symbol) => {
    const code = BITFINEX_SYMBOLS.get(symbol);
    const prices = code === undefined ? null : quote(code);
    if (prices === null) return [];
    const { bid, ask, last } = prices;
    return [`[${[JSON.stringify(symbol), bid, 10, ask, 10, 0, 0, last, 100, last, last].join(',')}]`];
  });
  return rows.length === 0 ? DOWN : { status: 200, json: `[${rows.join(',')}]` };
}

const currencyNamed = (name: string | undefined): CurrencyCode | null => CURRENCY_CODES.find((code) => code === name) ?? null;
const EXCHANGES: Readonly<Record<Source, (asked: Asked) => Answer>> = { kraken, coinbase, bitstamp, bitfinex };
