// /openapi.json: valid OpenAPI 3.1, made from the endpoint table, complete with every operation and every refusal.
import { spawnSync } from 'node:child_process';
import { Validator } from '@seriousme/openapi-schema-validator';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { refusalsOf } from '../src/contract/endpoint.ts';
import { MERCHANT_API } from '../src/contract/merchant-api.ts';
import { openApiDocument } from '../src/contract/openapi.ts';
import { SANDBOX_API } from '../src/contract/sandbox-api.ts';
import { STREAM_API } from '../src/contract/webhook-api.ts';
import { paymentMethod } from '../src/core/currency.ts';
import { formatMinor } from '../src/core/money.ts';
import { REFUSALS } from '../src/core/refusal.ts';
import {
  LIGHTNING_MAX_USD_MINOR,
  LIGHTNING_MIN_USD_MINOR,
  MAX_USD_MINOR,
  MIN_USD_MINOR,
} from '../src/flow/transactions/quote.ts';
import { type ApiServer, makeApi } from './http/api-server.ts';
import { fits, resolved, type Schema } from './support/schema-check.ts';

/** What these tests read of the document; that all of it is valid OpenAPI has a test of its own. */
type Document = {
  readonly openapi: string;
  readonly servers: readonly object[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<
    Record<string, { readonly servers?: readonly object[]; readonly post?: Operation; readonly get?: Operation }>
  >;
  readonly components: { readonly schemas: Record<string, Schema>; readonly securitySchemes: object };
};
type Operation = {
  readonly tags: readonly string[];
  readonly security: readonly object[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content: Content; readonly headers: object }>>;
};
type Content = {
  readonly 'application/json': {
    readonly schema: Schema;
    readonly example?: object;
    readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
  };
};

let api: ApiServer;
let document: Document;
beforeAll(async () => {
  api = await makeApi();
  document = (await api.send('/openapi.json', undefined, {}, 'GET')).json;
});
afterAll(() => api.end());

/** The one operation of a path. */
const operationOf = (path: string, { paths } = document): Operation => (paths[path]?.post ?? paths[path]?.get) as Operation;
const answersOf = (path: string): Operation['responses'] => operationOf(path).responses;
const answerOf = (operation: Operation): Content['application/json'] => operation.responses[200]!.content['application/json'];
const schemaOf = (path: string): Schema => answerOf(operationOf(path)).schema;
const requestOf = (path: string, of = document): Content['application/json'] =>
  operationOf(path, of).requestBody!.content['application/json'];
const requestSchema = (path: string): Schema => resolved(requestOf(path).schema, document.components.schemas);

test('is valid OpenAPI 3.1', async () => {
  const result = await new Validator().validate(structuredClone(document));
  expect(result).toEqual({ valid: true });
  expect(document.openapi).toBe('3.1.0');
  expect(document.servers).toEqual([{ url: api.base }]);
  expect(document.paths['/auth']?.servers).toEqual([{ url: api.base }, { url: `${api.base}/v1` }]);
});
test('has every operation, with exactly its refusals', () => {
  for (const endpoint of Object.values({ ...MERCHANT_API, ...STREAM_API })) {
    const documented = Object.entries(answersOf(endpoint.path))
      .filter(([status]) => status !== '200')
      .flatMap(([status, response]) => {
        const { schema, examples = {} } = response.content['application/json'];
        expect(schema.$ref).toBe('#/components/schemas/Error');
        const codes = Object.keys(examples);
        for (const code of codes) expect([code, REFUSALS[code as keyof typeof REFUSALS][0]]).toEqual([code, Number(status)]);
        return codes;
      });
    expect(documented.sort()).toEqual([...refusalsOf(endpoint)].sort());
  }
  expect(Object.keys(document.paths).sort()).toEqual(
    [...Object.values({ ...MERCHANT_API, ...STREAM_API }).map(({ path }) => path), '/healthz', '/readyz', '/openapi.json'].sort(),
  );
});
test('the key of a write is a field of its body too, and of no other', () => {
  for (const endpoint of Object.values(MERCHANT_API)) {
    const { properties = {} } = requestSchema(endpoint.path);
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
  const counted = (path: string) => Object.values(answersOf(path)).map(({ headers }) => 'X-RateLimit-Limit' in headers);
  for (const path of ['/healthz', '/readyz']) {
    expect(answersOf(path)[429]).toBeUndefined();
    expect(new Set(counted(path))).toEqual(new Set([false]));
  }
  expect(answersOf('/openapi.json')[429]).toBeDefined();
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
    ['/set_settings', { payout_allow_list: ['ach:021000021:70001'] }],
    ['/set_settings', { payout_allow_list: ['ach:021000021:70002'], payout_approval_above: '1' }],
    ['/set_settings', { payout_approval_above: null }],
    ['/list_balance_entries', {}],
    ['/get_rates', {}],
    ['/cancel_transaction', { transaction_id, expand: ['payments', 'events', 'refund', 'rate'] }],
    ['/sign_out', {}],
  ];
  fits(created.json, schemaOf('/create_transaction'), document.components.schemas, 'create');
  for (const [path, body] of calls) {
    const reply = await api.call(path, body);
    expect([path, reply.status]).toEqual([path, 200]);
    fits(reply.json, schemaOf(path), document.components.schemas, path);
  }
});
test('the smallest and the largest order are told as they are refused', () => {
  const usd = (minor: bigint) => formatMinor(minor, 2).replace(/\B(?=(\d{3})+\.)/g, ',');
  const onChain = `${usd(MIN_USD_MINOR)} to ${usd(MAX_USD_MINOR)} on chain`;
  const overLightning = `${usd(LIGHTNING_MIN_USD_MINOR)} to ${usd(LIGHTNING_MAX_USD_MINOR)} over Lightning`;
  expect(JSON.stringify(MERCHANT_API.createTransaction.fields.amount)).toContain(`${onChain}, ${overLightning}`);
});
test('the pattern of crypto_selected accepts what the service accepts', () => {
  const [listed, any] = requestSchema('/create_transaction').properties?.crypto_selected?.anyOf ?? [];
  const codes = (listed?.enum ?? []) as string[];
  expect(codes).toContain('BTC-LN');
  for (const name of codes) expect([name, paymentMethod(name) !== null]).toEqual([name, true]);
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
    expect([name, new RegExp(any?.pattern as string, 'u').test(name)]).toEqual([name, paymentMethod(name) !== null]);
  }
});

test('the examples are what the schemas say, and the service understands those of requests', async () => {
  for (const path of Object.keys(document.paths)) {
    for (const [status, { content }] of Object.entries(answersOf(path))) {
      // a stream has its own test
      if (!('application/json' in content)) continue;
      const { schema, example, examples = {} } = content['application/json'];
      const all = example === undefined ? Object.values(examples).map(({ value }) => value) : [example];
      expect(all.length).toBeGreaterThan(0);
      for (const one of all) fits(one, schema, document.components.schemas, `${path} ${status}`);
    }
  }
  for (const { path } of Object.values(MERCHANT_API)) {
    const { example } = requestOf(path);
    const isOpen = operationOf(path).security.length === 0;
    const reply = isOpen
      ? await api.send(path, example)
      : await api.call(path, { ...example, access_token: await api.tokenOf('shop') });
    // what the example names need not exist, but nothing is wrong with it
    const fine = [200, 401, 503].includes(reply.status) || ['transaction_not_found', 'not_resolvable'].includes(reply.json.error);
    expect([path, reply.json, fine]).toEqual([path, reply.json, true]);
    if (path === '/sign_out') api.tokens.clear();
  }
});
test('the stream is a text of server-sent events, and its example is an event', () => {
  const { parameters, responses } = operationOf(STREAM_API.streamEvents.path) as unknown as {
    parameters: { name: string }[];
    responses: Record<string, { content: Record<string, { schema: { contentSchema: Schema }; example: string }> }>;
  };
  expect(parameters.map(({ name }) => name)).toEqual(['Last-Event-ID']);
  const { schema, example } = responses[200]!.content['text/event-stream'] as {
    schema: { contentSchema: Schema };
    example: string;
  };
  const data = JSON.parse(/^data: (.*)$/m.exec(example)?.[1] as string) as object;
  fits(data, schema.contentSchema, document.components.schemas, 'an event of the stream');
});
test('what is meant to be one thing is one schema, and each operation has a subject', () => {
  const { schemas, securitySchemes } = document.components;
  for (const name of [
    'Error',
    'Transaction',
    'CheckedTransaction',
    'Payment',
    'Balances',
    'Currency',
    'CreateTransactionRequest',
  ])
    expect(schemas).toHaveProperty([name]);
  expect(Object.keys(securitySchemes)).toEqual(['bearer']);
  const tags = new Set(document.tags.map(({ name }) => name));
  for (const { path, access } of Object.values(MERCHANT_API)) {
    const post = operationOf(path);
    expect(post.tags.every((tag) => tags.has(tag))).toBe(true);
    expect(post.security).toEqual(access.kind === 'open' ? [] : [{ bearer: [] }]);
  }
  expect(JSON.stringify(document.paths)).not.toContain('/sandbox/');
});

test('in the sandbox every control has an example of its request that fits its schema, and one of its answer', () => {
  const withControls = openApiDocument({ url: api.base, version: '0', sandbox: true }) as unknown as Document;
  const { schemas } = withControls.components;
  for (const name of Object.keys(SANDBOX_API)) {
    const request = requestOf(`/sandbox/${name}`, withControls);
    expect([name, Object.keys(request.example ?? {}).length > 0]).toEqual([name, true]);
    fits(request.example, request.schema, schemas, `the request of ${name}`);
    const answer = answerOf(operationOf(`/sandbox/${name}`, withControls));
    expect([name, Object.keys(answer.example ?? {}).length > 0]).toEqual([name, true]);
    fits(answer.example, answer.schema, schemas, `the answer of ${name}`);
  }
  expect(requestOf('/sandbox/rates', withControls).example).toMatchObject({ BTC: '65000.00' });
});
