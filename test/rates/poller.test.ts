import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import type { RateFeed, RateSample } from '../../src/core/rate-feed.ts';
import type { Context } from '../../src/flow/context.ts';
import { getRates } from '../../src/flow/transactions/quote.ts';
import { fixedFeed } from '../../src/outside/rates/feeds.ts';
import { createRowSeals } from '../../src/outside/row-seals.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { latestRates, pruneRateHistory, readRateSources } from '../../src/store/transactions/rates.ts';
import { pollRates } from '../../src/worker/rate-poller.ts';
import { SEALS } from '../support/ports.ts';
import { freshDatabase } from '../support/postgres.ts';

const START = Date.UTC(2027, 0, 15, 8, 0, 5);
const MINUTE = 60_000;
const DAY = 86_400_000;
const rate = (text: string): Rate => parseRate(text) as Rate;

let fresh: Awaited<ReturnType<typeof freshDatabase>>;
let db: Database;
let now = START;
const bitcoin: Record<string, string | null> = {};

/** An exchange of the outside world: its price of Bitcoin is what the test says, null = unreachable. */
function exchange(source: string): RateFeed {
  return {
    source,
    async read(): Promise<readonly RateSample[]> {
      const said = bitcoin[source] ?? null;
      if (said === null) throw new Error('connection refused');
      const price = rate(said);
      return [{ source, currency: 'BTC', bid: price, ask: price, atMs: now }];
    },
  };
}
function context(feeds: readonly RateFeed[], seals = SEALS): Context {
  const ports = { clock: { now: () => now }, rng: { bytes: () => new Uint8Array() }, chains: new Map(), rateFeeds: feeds, seals };
  return { db, ports, network: 'sandbox', feeBps: 0, settlementSeconds: 0 } as unknown as Context;
}
const feeds = [exchange('kraken'), exchange('coinbase'), exchange('bitstamp')];
const poll = () => pollRates(context(feeds));
const setPrices = (kraken: string | null, coinbase: string | null, bitstamp: string | null = null) =>
  Object.assign(bitcoin, { kraken, coinbase, bitstamp });

beforeAll(async () => {
  fresh = await freshDatabase();
  db = fresh.db;
});
afterAll(() => fresh.drop());

/** The tests share one history: most begin an hour after the one before. */
function later(ms: number): void {
  now += ms;
}
async function history(): Promise<string[]> {
  const { rows } = await db.query<{ usd: string }>({
    text: `select usd from rate_history where currency = 'BTC' and at >= $1 order by at`,
    values: [new Date(now)],
  });
  return rows.map((row) => row.usd);
}

describe('the rates of the database', () => {
  test('before the first quorum there is none', async () => {
    setPrices('65000', null);
    await poll();
    expect(await getRates(context(feeds))).toEqual({});
    expect(await history()).toEqual([]);
  });

  test('a quorum is stored with its sources, and who was left out and why', async () => {
    setPrices('65000', '65010', '650');
    await poll();
    expect(await getRates(context(feeds))).toEqual({
      BTC: {
        usd: rate('65005'),
        atMs: now,
        sources: [
          { source: 'kraken', usd: '65000.00', at: new Date(now).toISOString() },
          { source: 'coinbase', usd: '65010.00', at: new Date(now).toISOString() },
        ],
      },
    });
    const { rows } = await db.query<{ left_out: unknown }>({ text: 'select left_out from rates' });
    expect(rows).toEqual([{ left_out: [{ source: 'bitstamp', reason: 'deviation' }] }]);
  });

  test('a price that the operator has fixed needs no second source', async () => {
    const fresh = await freshDatabase();
    const fixed = { ...context([fixedFeed({ now: () => now }, { LTC: rate('80.5') })]), db: fresh.db };
    await pollRates(fixed);
    const source = { source: 'fixed', usd: '80.50', at: new Date(now).toISOString() };
    expect(await getRates(fixed)).toEqual({ LTC: { usd: rate('80.5'), atMs: now, sources: [source] } });
    await fresh.drop();
  });

  test('whatever a source says when it refuses is written as one line of text, and keeps nothing else from being done', async () => {
    const own = await freshDatabase();
    const odd = ['E\u0000bad', '\u001f\u008b\u0008\u0000 gzip', `${'x'.repeat(299)}\u{1f600}`, 'a\r\nb\u2028c\ud800'];
    const refusing = odd.map((text, n): RateFeed => ({ source: `odd${n}`, read: () => Promise.reject(new Error(text)) }));
    const base = context(refusing);
    const ports = { ...base.ports, chains: new Map([['BTC', null]]) };
    expect(await pollRates({ ...base, db: own.db, ports } as unknown as Context)).toMatch(
      /^no price source can be reached \(odd0: E bad; /,
    );
    expect((await readRateSources(own.db)).map((one) => one.reason)).toEqual([
      'E bad',
      'gzip',
      `${'x'.repeat(299)}\ufffd`,
      'a b c\ufffd',
    ]);
    await own.drop();
  });

  test('the state of each source is kept, and the reason why a currency with a node has no price is reported', async () => {
    const fresh = await freshDatabase();
    const own = { now };
    const ctx = (given: readonly RateFeed[]) => {
      const base = context(given);
      const ports = { ...base.ports, clock: { now: () => own.now }, chains: new Map([['BTC', null]]) };
      return { ...base, db: fresh.db, ports } as unknown as Context;
    };
    const stored = async () =>
      (await readRateSources(fresh.db)).map((one) => [
        one.source,
        one.state,
        one.reason,
        one.sinceMs - now,
        one.checkedAtMs - now,
      ]);
    setPrices(null, null, null);
    expect(await pollRates(ctx(feeds))).toBe(
      'no price source can be reached (kraken: connection refused; coinbase: connection refused; bitstamp: connection refused)',
    );
    setPrices('65000', null, null);
    own.now += 5_000;
    expect(await pollRates(ctx(feeds))).toBe(
      'no price for BTC: fewer than two sources count (of BTC coinbase: unreachable, bitstamp: unreachable)',
    );
    expect(await stored()).toEqual([
      ['bitstamp', 'unreachable', 'connection refused', 0, 0],
      ['coinbase', 'unreachable', 'connection refused', 0, 0],
      ['kraken', 'answers', null, 5_000, 5_000],
    ]);
    // what has not changed is written now and then only; what is configured no more is forgotten
    own.now += 30_000;
    setPrices('65000', '65001', null);
    expect(await pollRates(ctx(feeds.slice(0, 2)))).toBe('');
    expect(await stored()).toEqual([
      ['coinbase', 'answers', null, 35_000, 35_000],
      ['kraken', 'answers', null, 5_000, 5_000],
    ]);
    own.now += 1;
    await pollRates(ctx(feeds.slice(0, 2)));
    expect((await stored())[1]).toEqual(['kraken', 'answers', null, 5_000, 35_001]);
    await fresh.drop();
  });

  test('without a quorum the last good one serves for 5 minutes, then none', async () => {
    setPrices('70000', null);
    later(5 * MINUTE);
    await poll();
    expect((await latestRates(db, SEALS, ['BTC', 'LTC'], now)).get('BTC')?.usd).toBe(rate('65005'));
    const { rows } = await db.query<{ left_out: unknown }>({ text: 'select left_out from rates' });
    expect(rows[0]?.left_out).toEqual([
      { source: 'coinbase', reason: 'unreachable' },
      { source: 'bitstamp', reason: 'unreachable' },
    ]);
    later(1);
    await poll();
    expect(await latestRates(db, SEALS, ['BTC'], now)).toEqual(new Map());
  });

  test('a price carries a seal of its currency and time, and one of another key serves nobody until it is fetched again', async () => {
    setPrices('65000', '65010');
    await poll();
    const told: string[] = [];
    const other = createRowSeals(
      () => Buffer.alloc(32, 9),
      (what) => told.push(what),
    );
    expect(await latestRates(db, other, ['BTC'], now)).toEqual(new Map());
    expect(told).toEqual(['the price of BTC is not what was sealed: nothing is sold, paid or converted by it']);
    later(10_000);
    await pollRates(context(feeds, other));
    expect((await latestRates(db, other, ['BTC'], now)).get('BTC')?.usd).toBe(rate('65005'));
    later(10_000);
    await poll();
    expect((await latestRates(db, SEALS, ['BTC'], now)).get('BTC')?.usd).toBe(rate('65005'));
  });

  test('the history has each change, and else one row a minute', async () => {
    later(60 * MINUTE);
    const from = now;
    for (const price of ['100', '100', '101', '101', '100']) {
      setPrices(price, price);
      await poll();
      now += 5000;
    }
    now = from;
    expect(await history()).toEqual(['100.00', '101.00', '100.00']);
    now = from + 79_000;
    await poll();
    now = from;
    expect(await history()).toHaveLength(3);
    now = from + 80_000;
    await poll();
    now = from;
    expect(await history()).toHaveLength(4);
  });

  test('a reading that was asked earlier and ends later does not undo a newer one', async () => {
    later(60 * MINUTE);
    setPrices('300', '300');
    let release: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = feeds.map((feed) => ({
      source: feed.source,
      async read() {
        const said = await feed.read();
        await gate;
        return said;
      },
    }));
    const old = pollRates(context(slow));
    now += 10;
    setPrices('310', '310');
    await poll();
    release();
    await old;
    expect((await latestRates(db, SEALS, ['BTC'], now)).get('BTC')?.usd).toBe(rate('310'));
    expect(await history()).toEqual(['310.00']);
  });

  test('a clock that was set back does not freeze the price', async () => {
    later(60 * MINUTE);
    setPrices('400', '400');
    await poll();
    now -= 30 * MINUTE;
    expect(await latestRates(db, SEALS, ['BTC'], now)).toEqual(new Map());
    setPrices('410', '410');
    await poll();
    expect((await latestRates(db, SEALS, ['BTC'], now)).get('BTC')?.usd).toBe(rate('410'));
    now += 30 * MINUTE;
  });

  test('two pollers at once agree', async () => {
    later(60 * MINUTE);
    setPrices('500', '500');
    await Promise.all(Array.from({ length: 8 }, poll));
    expect(await history()).toEqual(['500.00']);
  });

  test('the history is thinned after two days and forgotten after 90', async () => {
    later(60 * MINUTE);
    now = Math.ceil(now / MINUTE) * MINUTE;
    const from = now;
    for (let second = 0; second < 120; second += 20) {
      now = from + second * 1000;
      setPrices(String(600 + second), String(600 + second));
      await poll();
    }
    now = from;
    expect(await history()).toHaveLength(6);
    await pruneRateHistory(db, from + 2 * DAY - 1);
    expect(await history()).toHaveLength(6);
    await pruneRateHistory(db, from + 2 * DAY + 2 * MINUTE);
    expect(await history()).toEqual(['600.00', '660.00']);
    // the poller prunes by itself with the first price of an hour
    now = from + 90 * DAY + 1;
    await poll();
    now = from;
    expect(await history()).toEqual(['660.00', '700.00']);
  });
});
