import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CURRENCY_CODES } from '../../src/core/currency.ts';
import { formatRate, type Rate } from '../../src/core/rate.ts';
import type { RateFeed, RateSample } from '../../src/core/rate-feed.ts';
import { judgeRate } from '../../src/core/rate-median.ts';
import { rateFeeds } from '../../src/outside/rates/feeds.ts';
import { type Exchanges, openExchanges, type Source } from '../../src/sandbox/rates.ts';

const NOW = Date.UTC(2027, 0, 15, 8, 0, 0, 250);
let exchanges: Exchanges;
let server: Server;
let feeds: readonly RateFeed[];

beforeAll(async () => {
  exchanges = openExchanges({ folder: null, now: () => NOW });
  server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const [, , source = '', ...path] = pathname.split('/');
    const { status, json } = exchanges.answer(source as Source, `/${path.join('/')}`, searchParams);
    response.writeHead(status, { 'content-type': 'application/json' }).end(json);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const at = (source: string) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/rates/${source}`;
  const urls = { kraken: at('kraken'), coinbase: at('coinbase'), bitstamp: at('bitstamp'), bitfinex: at('bitfinex') };
  feeds = rateFeeds({ clock: { now: () => NOW }, urls });
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function readAll(): Promise<RateSample[]> {
  const answers = await Promise.allSettled(feeds.map((feed) => feed.read()));
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
}
function price(code: (typeof CURRENCY_CODES)[number], samples: readonly RateSample[]): string {
  return formatRate(judgeRate(code, samples, NOW).usd as Rate);
}

test('each currency has at least three sources, and the price that the simulated exchanges were given', async () => {
  const samples = await readAll();
  for (const code of CURRENCY_CODES) {
    expect(samples.filter((sample) => sample.currency === code)).toHaveLength(code === 'DASH' ? 3 : 4);
  }
  expect(price('BTC', samples)).toBe('65000.00');
  expect(price('DOGE', samples)).toBe('0.16');
  expect(price('USDT', samples)).toBe('1.00');
});

test('one exchange that is down for a currency and one that is a thousand times too high are left out', async () => {
  exchanges.set({ LTC: ['80.00', '80.04', null, '80000.00'], BTC: [null, null, null, '65000.00'] });
  const samples = await readAll();
  expect(price('LTC', samples)).toBe('80.02');
  expect(judgeRate('BTC', samples, NOW).usd).toBeNull();
  expect(price('ETH', samples)).toBe('3200.00');
});
