// Whatever the fields of a call contain, the answer is one that the document names, and never 500.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { refusalsOf } from '../../src/contract/endpoint.ts';
import { MERCHANT_API, type MerchantApi } from '../../src/contract/merchant-api.ts';
import { type ApiServer, makeApi } from './api-server.ts';

const NAMES = (Object.keys(MERCHANT_API) as (keyof MerchantApi)[]).filter((name) => name !== 'signOut');
let api: ApiServer;
let known: string;
beforeAll(async () => {
  api = await makeApi();
  known = (await api.call('/create_transaction', { amount: '5', crypto_selected: 'LTC' })).json.transaction_id;
});
afterAll(() => api.end());

/** Values that fit somewhere, values that nearly do, and anything. */
const value = () =>
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.constantFrom(
        '25.00',
        '0',
        'BTC',
        'ltc',
        'bitcoin',
        'all',
        'accept',
        'review',
        'started',
        known,
        'txn_1',
        'shop',
      ),
    },
    {
      weight: 2,
      arbitrary: fc.constantFrom<unknown>(
        null,
        0,
        1,
        30,
        100,
        -1,
        true,
        [],
        ['events'],
        ['a'],
        {},
        '',
        'a@b.co',
        '2026-01-01T00:00:00Z',
      ),
    },
    { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 30 }) },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  );

test.each(NAMES)('%s', async (name) => {
  const { path, fields } = MERCHANT_API[name];
  const names = [...Object.keys(fields), 'idempotency_key', 'constructor_', 'x'];
  const body = fc.dictionary(fc.constantFrom(...names), value(), { noNullPrototype: true });
  await fc.assert(
    fc.asyncProperty(body, async (sent) => {
      const reply = await api.call(path, { ...sent, ...(sent.wait_seconds === undefined ? {} : { status_was: 'pending' }) });
      if (reply.status === 200) return;
      expect(refusalsOf(MERCHANT_API[name])).toContain(reply.json.error);
      expect(reply.status).toBeLessThan(reply.json.error.endsWith('_unavailable') ? 504 : 500);
    }),
    { numRuns: 80 },
  );
  expect(api.bugs).toEqual([]);
});
