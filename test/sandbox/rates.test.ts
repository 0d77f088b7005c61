// The simulated exchanges, read by the service's real clients: all currencies, exact prices, single sources and whole currencies down.
import { createServer, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { formatRate, parseRate } from '../../src/core/rate.ts';
import { rateFeeds } from '../../src/outside/rates/feeds.ts';
import { openExchanges, SOURCES } from '../../src/sandbox/rates.ts';
import { closeServer, listen, sandboxHandler } from '../../src/sandbox/server.ts';
import { tableService } from './support/table-service.ts';

let nowMs = 1_800_000_000_000;
const clock = { now: () => nowMs, advance: () => undefined };
const exchanges = openExchanges({ folder: null, now: () => nowMs });
let server: Server;
let base: string;
beforeAll(async () => {
  const [bank, lightning] = [null as never, null as never];
  const context = {
    nodes: new Map(),
    lightning,
    exchanges,
    bank,
    service: tableService().service,
    clock,
    url: '',
    nudge: async () => undefined,
  };
  server = createServer(sandboxHandler({ secret: 'x', nodes: [], context, log: () => undefined }));
  base = `http://127.0.0.1:${await listen(server, 0)}/rates`;
});
afterAll(() => closeServer(server));

async function samples(): Promise<Record<string, [string, string, number][]>> {
  const urls = { kraken: '', coinbase: '', bitstamp: '', bitfinex: '' };
  for (const source of SOURCES) urls[source] = `${base}/${source}`;
  const found: Record<string, [string, string, number][]> = {};
  for (const feed of rateFeeds({ clock, urls, tradesAll: true })) {
    const read = await feed.read().catch(() => []);
    for (const { source, currency, bid, ask, atMs } of read) {
      found[currency] ??= [];
      found[currency].push([source, formatRate((bid + ask) / 2n), nowMs - atMs]);
    }
  }
  return found;
}

describe('the simulated exchanges', () => {
  it('quote all seven currencies, each of the four, around exactly the price', async () => {
    const found = await samples();
    expect(Object.keys(found).sort()).toEqual(['BCH', 'BTC', 'DASH', 'DOGE', 'ETH', 'LTC', 'USDT']);
    for (const [code, price] of Object.entries({ BTC: '65000.00', DASH: '30.00', DOGE: '0.16' }))
      expect(found[code]).toEqual(SOURCES.map((source) => [source, price, 0]));
  });

  it('quote what they are set to, each its own price, to the last decimal', async () => {
    exchanges.set({
      LTC: ['80.00', '80.04', null, '80000.00'],
      DOGE: SOURCES.map(() => '0.12345678'),
      BTC: SOURCES.map(() => null),
      DASH: [null, null, '30.00', '30.10'],
    });
    nowMs += 3_600_000;
    const found = await samples();
    expect(found.LTC).toEqual([
      ['kraken', '80.00', 0],
      ['coinbase', '80.04', 0],
      ['bitfinex', '80000.00', 0],
    ]);
    expect(found.DOGE?.map(([, price]) => price)).toEqual(SOURCES.map(() => '0.12345678'));
    expect(found.BTC).toBeUndefined();
    expect(found.DASH).toEqual([
      ['bitstamp', '30.00', 0],
      ['bitfinex', '30.10', 0],
    ]);
  });

  it('keep a small spread', () => {
    const { json } = exchanges.answer('coinbase', '/products/ETH-USD/ticker', new URLSearchParams());
    const { bid, ask } = JSON.parse(json) as { bid: string; ask: string };
    expect(parseRate(bid)).toBe(319_968_000_000n);
    expect(parseRate(ask)).toBe(320_032_000_000n);
  });

  it('answer 503 when they are down and refuse what they do not trade', async () => {
    exchanges.set({ ETH: SOURCES.map(() => null) });
    const status = async (path: string): Promise<number> => (await fetch(`${base}${path}`)).status;
    expect(await status('/coinbase/products/ETH-USD/ticker')).toBe(503);
    expect(await status('/bitstamp/api/v2/ticker/ethusd/')).toBe(503);
    expect(await status('/kraken/0/public/Ticker?pair=ETHUSD')).toBe(503);
    expect(await status('/bitfinex/v2/tickers?symbols=tETHUSD')).toBe(503);
    expect(await status('/bitstamp/api/v2/ticker/xmrusd/')).toBe(404);
    expect(await (await fetch(`${base}/kraken/0/public/Ticker?pair=NONSENSE`)).json()).toEqual({
      error: ['EQuery:Unknown asset pair'],
    });
  });
});
