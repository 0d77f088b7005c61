// A quote's facts are remembered from one create to the next, and never used when they are outdated: prices, nodes, settings and merchants
// that change between two calls.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { parseRate } from '../../src/core/rate.ts';
import { recordCondition } from '../../src/store/chain/node-conditions.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import { type ApiServer, BTC_RATE, makeApi } from './api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());
beforeEach(async () => {
  await api.reopen();
  expect((await create()).json.exchange_rate).toBe(BTC_RATE);
});

const create = (headers: Record<string, string> = {}) =>
  api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' }, headers);

/** As the worker of another process would write it. */
async function price(usd: string): Promise<void> {
  api.advance(1);
  const rate = parseRate(usd)!;
  const used = [{ source: 'kraken', usd: rate, atMs: api.now() }];
  await saveRates(api.ctx.db, api.ctx.ports.seals, [{ currency: 'BTC', usd: rate, used, leftOut: [] }] as never, api.now());
}

async function node(state: 'ready' | 'busy' | 'down'): Promise<void> {
  const trouble = { state, reason: 'as the test wants it', height: null };
  const ready = { state, height: 100, hash: '00'.repeat(32), tipTimeMs: api.now(), peers: 1 };
  await recordCondition(api.ctx.db, 'BTC', (state === 'ready' ? ready : trouble) as never, api.now());
}

test('a price that has changed is the price of the next create, with its amount, time and sources, also where a key came along', async () => {
  for (const [usd, crypto, headers] of [
    ['50000.00', '0.00050000', {}],
    ['64000.00', '0.00039063', { 'idempotency-key': randomUUID() }],
  ] as const) {
    await price(usd);
    const { json } = await create(headers);
    expect([json.exchange_rate, json.crypto_amount]).toEqual([usd, crypto]);
    const stored = await api.sql('select amount_due, rate, rate_at, rate_sources from transactions where id = $1', [
      json.transaction_id,
    ]);
    expect(stored).toMatchObject([{ rate: usd, rate_at: new Date(api.now()), rate_sources: [{ source: 'kraken', usd }] }]);
  }
});

test('while a price changes again and again every quote is whole, and none is made at a price that was over before it began', async () => {
  const started: { usd: string; answers: ReturnType<typeof create>[] }[] = [];
  for (let n = 0; n < 20; n++) {
    const usd = `${50_000 + 100 * n}.00`;
    await price(usd);
    started.push({ usd, answers: Array.from({ length: 5 }, () => create()) });
  }
  for (const { usd, answers } of started) {
    for (const { status, json } of await Promise.all(answers)) {
      expect(status).toBe(200);
      expect(Number(json.exchange_rate)).toBeGreaterThanOrEqual(Number(usd));
      const units = BigInt(json.crypto_amount.replace('.', ''));
      const rate = BigInt(json.exchange_rate.replace('.', ''));
      expect(units * rate).toBeGreaterThanOrEqual(2500n * 10n ** 8n);
      expect((units - 1n) * rate).toBeLessThan(2500n * 10n ** 8n);
    }
  }
});

test('a node that has gone down refuses the next create, and one that is back or only busy takes it', async () => {
  await node('down');
  expect((await create()).json.error).toBe('currency_unavailable');
  await node('busy');
  expect((await create()).status).toBe(200);
  await node('down');
  expect((await create({ 'idempotency-key': randomUUID() })).json.error).toBe('currency_unavailable');
  await node('ready');
  expect((await create()).status).toBe(200);
});

const lookedAt = (when: string): Promise<unknown> =>
  api.sql(`update node_conditions set looked_at = ${when} where currency = 'BTC'`);

test('a currency whose node no worker looks at is refused within a minute, with and without a key, named by /readyz, and sold again from the next look on', async () => {
  await lookedAt(`clock_timestamp() - interval '50 seconds'`);
  expect((await create()).status).toBe(200);
  await lookedAt(`clock_timestamp() - interval '61 seconds'`);
  for (const headers of [{}, { 'idempotency-key': randomUUID() }]) {
    const { status, json } = await create(headers as Record<string, string>);
    expect([status, json.error]).toEqual([503, 'currency_unavailable']);
    expect(json.message).toBe('BTC is not available right now: nobody watches its chain.');
  }
  const { json } = await api.send('/readyz', undefined, {}, 'GET');
  expect(json.problems).toContainEqual(expect.stringMatching(/^BTC: no worker has looked at its node since /));
  await node('ready');
  expect((await create()).status).toBe(200);
});

test('neither a jump of the service’s clock nor a database clock that was set back makes a watched currency unavailable', async () => {
  api.advance(30 * 86_400);
  api.tokens.clear(); // they have expired
  await price(BTC_RATE);
  expect((await create()).status).toBe(200);
  const { json } = await api.send('/readyz', undefined, {}, 'GET');
  expect(json.problems.filter((one: string) => one.startsWith('BTC: no worker'))).toEqual([]);
  await lookedAt(`clock_timestamp() + interval '1 day'`);
  expect((await create()).status).toBe(200);
});

test('a currency without a node in this configuration is refused, whatever was written about it before', async () => {
  const usd = parseRate('0.25')!;
  const used = [{ source: 'kraken', usd, atMs: api.now() }];
  await saveRates(api.ctx.db, api.ctx.ports.seals, [{ currency: 'DOGE', usd, used, leftOut: [] }] as never, api.now());
  for (const headers of [{}, { 'idempotency-key': randomUUID() }]) {
    const { status, json } = await api.call(
      '/create_transaction',
      { amount: '25.00', crypto_selected: 'DOGE' },
      headers as never,
    );
    expect([status, json.error]).toEqual([503, 'currency_unavailable']);
  }
});

test('a price that nobody has confirmed for five minutes is not sold, and is again once somebody has', async () => {
  api.advance(5 * 60);
  expect((await create()).status).toBe(200);
  api.advance(1);
  expect((await create()).json.error).toBe('rate_unavailable');
  await price(BTC_RATE);
  expect((await create()).status).toBe(200);
});

test('nothing is sold by a price that no process of ours has fetched', async () => {
  await price(BTC_RATE);
  expect((await create()).status).toBe(200);
  await api.sql(`update rates set usd = usd * 100 where currency = 'BTC'`);
  // the price that was read before is no longer the one in force
  expect((await create()).json.error).toBe('rate_unavailable');
  await price(BTC_RATE);
  expect((await create()).status).toBe(200);
});

test('settings that another process has changed hold for the next create', async () => {
  const settings = (bps: number) =>
    api.sql(
      'update merchant_settings set tolerance_bps = $2 where merchant_id = (select id from merchants where affiliate_id = $1)',
      [api.affiliateId, bps],
    );
  await settings(250);
  const { json } = await create();
  const stored = await api.sql('select tolerance_bps from transactions where id = $1', [json.transaction_id]);
  expect(stored).toEqual([{ tolerance_bps: 250 }]);
});

test('a merchant without settings is reported as a fault of ours, and no loop', async () => {
  const kept = await api.sql(
    'delete from merchant_settings where merchant_id = (select id from merchants where affiliate_id = $1) returning *',
    [api.otherAffiliateId],
  );
  expect(kept).toHaveLength(1);
  const { status } = await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' }, {}, 'other');
  expect(status).toBe(500);
  expect(String(api.bugs.pop())).toContain('does it have settings?');
});
