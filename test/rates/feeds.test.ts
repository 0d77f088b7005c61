import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { Clock } from '../../src/core/ports.ts';
import { parseRate } from '../../src/core/rate.ts';
import type { RateFeed } from '../../src/core/rate-feed.ts';
import { rateFeeds } from '../../src/outside/rates/feeds.ts';
import { price } from '../../src/outside/rates/http.ts';
import type { RateSourceName } from '../../src/outside/rates/sources.ts';

// What the exchanges answer, in the shapes of their public documentation
const KRAKEN = `{"error":[],"result":{
  "XXBTZUSD":{"a":["65010.10000","1","1.000"],"b":["65000.00000","1","1.000"],"c":["65005.0","0.1"],"v":["1","2"],"p":["1","2"],"t":[1,2],"l":["1","2"],"h":["1","2"],"o":"1"},
  "XLTCZUSD":{"a":["80.02","1","1"],"b":["80.00","1","1"]}, "XDGUSD":{"a":["0.0812345","1","1"],"b":["0.0812344","1","1"]}}}`;
const BITFINEX = `[["tBTCUSD",65000,1.5,65010.1,2.1,10,0.001,65005,1000,66000,64000],["tDSHUSD",30.1,1,30.2,1,0,0,30.1,1,31,30],
  ["tUSTUSD",9.998e-1,1,1.0001,1,0,0,1,1,1,1],["tBCHN:USD",123456789.12345678,1,123456789.12345679,1,0,0,1,1,1,1],["tXYZUSD",1,1,1,1],["tLTCUSD",null,1,80,1]]`;

const NOW = 1_800_000_000_000;
const clock: Clock = { now: () => NOW };
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function exchange(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(answer);
  servers.push(server);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
async function feed(
  source: RateSourceName,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<RateFeed> {
  const url = `${await exchange(answer)}/rates/${source}`;
  const feeds = rateFeeds({ clock, urls: { kraken: url, coinbase: url, bitstamp: url, bitfinex: url }, timeoutMs: 300 });
  return feeds.find((one) => one.source === source) as RateFeed;
}

describe('the shapes of the exchanges', () => {
  test('Kraken: all pairs in one call, dated by the receipt', async () => {
    const asked: unknown[] = [];
    const kraken = await feed('kraken', (request, response) => {
      asked.push(request.url);
      response.end(KRAKEN);
    });
    const samples = await kraken.read();
    expect(asked).toEqual(['/rates/kraken/0/public/Ticker?pair=XBTUSD,LTCUSD,ETHUSD,BCHUSD,DASHUSD,XDGUSD,USDTUSD']);
    expect(samples).toContainEqual({ source: 'kraken', currency: 'BTC', bid: 6500000000000n, ask: 6501010000000n, atMs: NOW });
    expect(samples).toContainEqual({ source: 'kraken', currency: 'DOGE', bid: 8123440n, ask: 8123450n, atMs: NOW });
    expect(samples.map((one) => one.currency)).toEqual(['BTC', 'LTC', 'DOGE']);
  });

  test('Kraken: a pair that it no longer knows costs only that pair', async () => {
    const kraken = await feed('kraken', (request, response) => {
      const unknown = request.url?.includes('DASHUSD');
      response.end(unknown ? '{"error":["EQuery:Unknown asset pair"]}' : KRAKEN);
    });
    expect((await kraken.read()).map((one) => one.currency)).toEqual(['BTC', 'LTC', 'DOGE']);
  });

  test('Kraken: any other error is a failure', async () => {
    const kraken = await feed('kraken', (_, response) => {
      response.end('{"error":["EGeneral:Too many requests"]}');
    });
    await expect(kraken.read()).rejects.toThrow('Too many requests');
  });

  test('Coinbase: one call for each product, with a User-Agent, dated by the last trade', async () => {
    const coinbase = await feed('coinbase', (request, response) => {
      if (request.url !== '/rates/coinbase/products/BTC-USD/ticker' || !request.headers['user-agent']) response.statusCode = 404;
      response.end(
        '{"trade_id":1,"price":"65005","size":"1","time":"2027-01-15T08:00:00.123456Z","bid":"65000.01","ask":"65010","volume":"1"}',
      );
    });
    expect(await coinbase.read()).toEqual([
      {
        source: 'coinbase',
        currency: 'BTC',
        bid: 6500001000000n,
        ask: 6501000000000n,
        atMs: Date.UTC(2027, 0, 15, 8, 0, 0, 123),
      },
    ]);
  });

  test('Bitstamp: one call for each pair, dated by its second', async () => {
    const asked: (string | undefined)[] = [];
    const bitstamp = await feed('bitstamp', (request, response) => {
      asked.push(request.url);
      if (request.url !== '/rates/bitstamp/api/v2/ticker/ltcusd/') response.statusCode = 404;
      response.end(
        '{"timestamp":"1799999990","last":"80","bid":"79.99","ask":"80.01","vwap":"80","volume":"1","high":"81","low":"79","open":"80"}',
      );
    });
    expect(await bitstamp.read()).toEqual([
      { source: 'bitstamp', currency: 'LTC', bid: 7999000000n, ask: 8001000000n, atMs: 1_799_999_990_000 },
    ]);
    const pairs = ['bchusd', 'btcusd', 'dogeusd', 'ethusd', 'ltcusd', 'usdtusd'];
    expect(asked.map(String).sort((a, b) => a.localeCompare(b))).toEqual(
      pairs.map((pair) => `/rates/bitstamp/api/v2/ticker/${pair}/`),
    );
  });

  test('Bitfinex: one call, JSON numbers read without loss, rows it does not know left out', async () => {
    const bitfinex = await feed('bitfinex', (_, response) => {
      response.setHeader('age', '7');
      response.end(BITFINEX);
    });
    const atMs = NOW - 7000;
    expect(await bitfinex.read()).toEqual([
      { source: 'bitfinex', currency: 'BTC', bid: 6500000000000n, ask: 6501010000000n, atMs },
      { source: 'bitfinex', currency: 'DASH', bid: 3010000000n, ask: 3020000000n, atMs },
      { source: 'bitfinex', currency: 'USDT', bid: 99980000n, ask: 100010000n, atMs },
      { source: 'bitfinex', currency: 'BCH', bid: 12345678912345678n, ask: 12345678912345679n, atMs },
    ]);
  });
});

describe('a feed that misbehaves throws, and soon', () => {
  test.each<[string, (request: IncomingMessage, response: ServerResponse) => void]>([
    ['says nothing', () => undefined],
    ['trickles', (_, response) => void response.write('[')],
    ['sends more than 64 KiB', (_, response) => void response.end(`["${'x'.repeat(70_000)}"]`)],
    ['redirects', (_, response) => void response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end()],
    ['is broken', (_, response) => void response.writeHead(503).end('<html>')],
    ['sends HTML', (_, response) => void response.end('<html></html>')],
    ['sends a depth bomb', (_, response) => void response.end('['.repeat(60_000))],
    ['hangs up', (_, response) => void response.destroy()],
  ])('%s', async (_, answer) => {
    const started = performance.now();
    for (const source of ['kraken', 'coinbase', 'bitstamp', 'bitfinex'] as const) {
      await expect((await feed(source, answer)).read()).rejects.toThrow();
    }
    expect(performance.now() - started).toBeLessThan(4 * 1000);
  });

  test('a ticker without a usable price or time is left out', async () => {
    for (const ticker of [
      '{"bid":"0","ask":"0","time":"2027-01-15T08:00:00Z","timestamp":"1"}',
      '{"bid":"1","ask":"-1"}',
      'null',
      '[]',
      '{"bid":{},"ask":[]}',
    ]) {
      for (const source of ['coinbase', 'bitstamp'] as const) {
        expect(await (await feed(source, (_, response) => void response.end(ticker))).read()).toEqual([]);
      }
    }
  });
});

describe('a price', () => {
  test.each([
    ['65000', '65000'],
    ['65000.0', '65000'],
    ['6.5e4', '65000'],
    ['6.50001e4', '65000.1'],
    ['8.1e-2', '0.081'],
    ['812e-4', '0.0812'],
    ['1E+0', '1'],
    ['0.123456789', '0.12345678'],
    ['0012.50', '12.5'],
  ])('%s is %s', (text, expected) => {
    expect(price(text)).toBe(parseRate(expected));
  });
  test.each(['0', '0.0', '-1', '', 'NaN', 'Infinity', '1e99', '1e-99', '1e999', ' 1', '1.', '.5', '0x10', '9'.repeat(16), '1,5'])(
    '%j is none',
    (text) => {
      expect(price(text)).toBeNull();
    },
  );
});
