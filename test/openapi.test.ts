// /openapi.json: valid OpenAPI 3.1, made from the endpoint table, complete with every operation and every refusal.
import { spawnSync } from 'node:child_process';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { refusalsOf } from '../src/contract/endpoint.ts';
import { MERCHANT_API } from '../src/contract/merchant-api.ts';
import { paymentMethod } from '../src/core/currency.ts';
import { REFUSALS } from '../src/core/refusal.ts';
import { type ApiWorld, makeApi } from './http/api-world.ts';

let api: ApiWorld;
// biome-ignore lint/suspicious/noExplicitAny: a document of its own type
let document: any;
beforeAll(async () => {
  api = await makeApi();
  document = (await api.send('/openapi.json', undefined, {}, 'GET')).json;
});
afterAll(() => api.end());

test('is valid OpenAPI 3.1', async () => {
  const result = await new Validator().validate(structuredClone(document));
  expect(result).toEqual({ valid: true });
  expect(document.openapi).toBe('3.1.0');
  expect(document.servers).toEqual([{ url: api.base }]);
  expect(document.paths['/auth'].servers).toEqual([{ url: api.base }, { url: `${api.base}/v1` }]);
});
test('has every operation, with exactly its refusals', () => {
  for (const endpoint of Object.values(MERCHANT_API)) {
    const { responses } = document.paths[endpoint.path].post;
    const documented = Object.entries(responses)
      .filter(([status]) => status !== '200')
      .flatMap(([status, response]) => {
        const codes = (response as { content: Record<string, { schema: { properties: { error: { enum: string[] } } } }> })
          .content['application/json']!.schema.properties.error.enum;
        for (const code of codes) expect([code, REFUSALS[code as keyof typeof REFUSALS][0]]).toEqual([code, Number(status)]);
        return codes;
      });
    expect(documented.sort()).toEqual([...refusalsOf(endpoint)].sort());
  }
  expect(Object.keys(document.paths).sort()).toEqual(
    [...Object.values(MERCHANT_API).map(({ path }) => path), '/healthz', '/readyz', '/openapi.json'].sort(),
  );
});
test('the key of a write is a field of its body too, and of no other', () => {
  for (const endpoint of Object.values(MERCHANT_API)) {
    const { properties } = document.paths[endpoint.path].post.requestBody.content['application/json'].schema;
    expect([endpoint.path, 'idempotency_key' in properties]).toEqual([endpoint.path, endpoint.keyKept !== null]);
  }
});
test('every pattern is one that Python reads too, and says no more than one thing', () => {
  const patterns: string[] = [];
  const look = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, child] of Object.entries(value)) {
      if (name === 'pattern' && typeof child === 'string') patterns.push(child);
      else look(child);
    }
  };
  look(document);
  expect(patterns.length).toBeGreaterThan(20);
  const python = spawnSync('python3', ['-c', 'import json, re, sys; [re.compile(one) for one in json.load(sys.stdin)]'], {
    input: JSON.stringify(patterns),
    encoding: 'utf8',
  });
  if (python.error === undefined) expect(python.stderr).toBe('');
  // \p, lookbehind, named groups, \u{…} and flags mean something else there, or nothing
  expect(patterns.filter((one) => /\\[pP]\{|\\[ku][{<]|\(\?/.test(one))).toEqual([]);
});
test('limits are documented where calls are counted, and there only', () => {
  const counted = (path: string) =>
    Object.values(document.paths[path].get.responses as Record<string, { headers: object }>).map(
      ({ headers }) => 'X-RateLimit-Limit' in headers,
    );
  for (const path of ['/healthz', '/readyz']) {
    expect(document.paths[path].get.responses[429]).toBeUndefined();
    expect(new Set(counted(path))).toEqual(new Set([false]));
  }
  expect(document.paths['/openapi.json'].get.responses[429]).toBeDefined();
  expect(new Set(counted('/openapi.json'))).toEqual(new Set([true]));
});
test('answers have exactly the documented fields', async () => {
  const created = await api.call('/create_transaction', {
    amount: '5',
    crypto_selected: 'BTC',
    expand: ['payments', 'events', 'refund', 'rate'],
  });
  const { transaction_id } = created.json;
  const calls: [string, object][] = [
    ['/check_transaction', { transaction_id, expand: ['payments', 'events', 'refund', 'rate'] }],
    ['/get_account_info', {}],
    ['/list_transactions', {}],
    ['/get_settings', {}],
    ['/set_settings', { payout_allow_list: ['a'] }],
    ['/set_settings', { payout_allow_list: ['b'], payout_approval_above: '1' }],
    ['/set_settings', { payout_approval_above: null }],
    ['/list_balance_entries', {}],
    ['/get_rates', {}],
    ['/cancel_transaction', { transaction_id, expand: ['payments', 'events', 'refund', 'rate'] }],
    ['/sign_out', {}],
  ];
  fits(created.json, schemaOf('/create_transaction'), 'create');
  for (const [path, body] of calls) {
    const reply = await api.call(path, body);
    expect([path, reply.status]).toEqual([path, 200]);
    fits(reply.json, schemaOf(path), path);
  }
});
test('the pattern of crypto_selected accepts what the service accepts', () => {
  const { pattern } =
    document.paths['/create_transaction'].post.requestBody.content['application/json'].schema.properties.crypto_selected;
  const names = [
    'BTC',
    'btc',
    'LTC',
    'eth',
    'BCH',
    'Dash',
    'DOGE',
    'USDT',
    'usdt-ERC20',
    'BTC-LN',
    'ln',
    'LIGHTNING',
    'btc_ln',
    'BTC-lightning',
  ];
  for (const name of [...names, 'XYZ', 'BTCX', ' BTC', 'BTC\n', 'USD']) {
    expect([name, new RegExp(pattern, 'u').test(name)]).toEqual([name, paymentMethod(name) !== null]);
  }
});

type Schema = {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  pattern?: string;
  additionalProperties?: Schema;
};
const schemaOf = (path: string): Schema => document.paths[path].post.responses[200].content['application/json'].schema;

/** A small validator that, unlike JSON Schema, also refuses what is not documented. */
function fits(value: unknown, schema: Schema, where: string): void {
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;
  expect([schema.type].flat(), `${where} is ${JSON.stringify(value)}`).toContain(type);
  if (schema.enum !== undefined) expect(schema.enum).toContain(value);
  if (schema.const !== undefined) expect(value).toBe(schema.const);
  if (schema.pattern !== undefined && typeof value === 'string') expect(value).toMatch(new RegExp(schema.pattern));
  if (type === 'array') for (const item of value as unknown[]) fits(item, schema.items as Schema, `${where}[]`);
  if (type !== 'object') return;
  for (const name of schema.required ?? []) expect(value, where).toHaveProperty(name);
  for (const [name, item] of Object.entries(value as object)) {
    const found = schema.properties?.[name] ?? schema.additionalProperties;
    expect(found, `${where}.${name} is not documented`).toBeDefined();
    fits(item, found as Schema, `${where}.${name}`);
  }
}
