// The API as an OpenAPI 3.1 document, made from the endpoint table: every operation with every refusal it can answer with. Served at
// /openapi.json.
import { REFUSALS, type RefusalCode } from '../core/refusal.ts';
import { type Endpoint, refusalsOf } from './endpoint.ts';
import { type Field, type JsonSchema, KEY_MAX_LENGTH, UNPRINTABLE } from './fields.ts';
import { documentSchema } from './json-schema.ts';
import { MERCHANT_API } from './merchant-api.ts';
import { SYSTEM_PATHS, type SystemPath } from './system-api.ts';

type Node = Record<string, unknown>;
const ref = (kind: string, name: string): Node => ({ $ref: `#/components/${kind}/${name}` });
const json = (schema: JsonSchema): Node => ({ 'application/json': { schema } });

/** @param options.url the address clients reach this server at, without a slash at the end */
export function openApiDocument(options: { readonly url: string; readonly version: string }): Node {
  const operations = Object.entries(MERCHANT_API).map(([id, endpoint]) => [
    endpoint.path,
    { servers: [{ url: options.url }, { url: `${options.url}/v1` }], post: operation(id, endpoint) },
  ]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Bursar',
      version: options.version,
      summary: 'A self-hosted crypto payment processor',
      description:
        'Every operation is an HTTP POST with a JSON body; the same paths work below /v1. Amounts are decimal strings, times are UTC. The access token goes into the body (`access_token`) or into the header (`Authorization: Bearer`).',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: options.url }],
    tags: [
      { name: 'payments', description: 'Sign in, take payments, read the account.' },
      { name: 'system', description: 'Health and documents.' },
    ],
    paths: { ...Object.fromEntries(operations), ...systemPaths() },
    components: { securitySchemes: { bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' } }, headers: HEADERS },
  };
}

const text = (about: string): Node => ({ description: about, schema: { type: 'string' } });
const whole = (about: string): Node => ({ description: about, schema: { type: 'integer', minimum: 0 } });
const HEADERS: Node = {
  RequestId: text('Names this call in our logs.'),
  RateLimitPolicy: text('The limit that counted this call: `"name";q=calls;w=seconds`.'),
  RateLimit: text('What is left of it: `"name";r=calls;t=seconds`.'),
  RateLimitLimit: whole('Calls a minute.'),
  RateLimitRemaining: whole('Calls left now.'),
  RateLimitReset: whole('Seconds until the full number is there again.'),
  RetryAfter: whole('Seconds to wait.'),
  IdempotentReplayed: text('`true` when this is the stored answer to an earlier request with the same key.'),
};
const COUNTED: Node = {
  'X-Request-Id': ref('headers', 'RequestId'),
  'RateLimit-Policy': ref('headers', 'RateLimitPolicy'),
  RateLimit: ref('headers', 'RateLimit'),
  'X-RateLimit-Limit': ref('headers', 'RateLimitLimit'),
  'X-RateLimit-Remaining': ref('headers', 'RateLimitRemaining'),
  'X-RateLimit-Reset': ref('headers', 'RateLimitReset'),
};

function operation(id: string, endpoint: Endpoint): Node {
  const { access } = endpoint;
  const replayed = endpoint.keyKept === null ? {} : { 'Idempotent-Replayed': ref('headers', 'IdempotentReplayed') };
  const key = { name: 'Idempotency-Key', in: 'header', required: false, schema: KEY_SCHEMA, description: keyAbout(endpoint) };
  return {
    operationId: id,
    tags: ['payments'],
    summary: endpoint.summary,
    description: access.kind === 'open' ? endpoint.about : `${endpoint.about}\n\nNeeds ${access.inWords}.`,
    // the token may also stand in the body, which OpenAPI has no word for
    security: access.kind === 'open' ? [] : [{ bearer: [] }, {}],
    ...(endpoint.keyKept === null ? {} : { parameters: [key] }),
    requestBody: { required: true, content: json(bodySchema(endpoint)) },
    responses: {
      200: {
        description: 'Done.',
        headers: { ...COUNTED, ...replayed },
        content: json(documentSchema(endpoint.reply)),
        ...(id === 'createTransaction' ? { links: LINKS } : {}),
      },
      ...refusalResponses(refusalsOf(endpoint), COUNTED),
    },
  };
}

const follow = (operationId: string): Node => ({
  operationId,
  requestBody: { transaction_id: '$response.body#/transaction_id' },
});
const LINKS: Node = { check: follow('checkTransaction'), cancel: follow('cancelTransaction') };
const KEY_SCHEMA: JsonSchema = { type: 'string', minLength: 1, maxLength: KEY_MAX_LENGTH, pattern: `^[^${UNPRINTABLE}]+$` };

function keyAbout(endpoint: Endpoint): string {
  const kept = endpoint.keyKept === 'for ever' ? 'for ever' : 'for 24 hours';
  return `Makes a retry safe: the same key with the same body is answered with the stored answer, kept ${kept}. The field \`idempotency_key\` does the same.`;
}

function bodySchema(endpoint: Endpoint): Node {
  const fields: [string, Field<unknown>][] = Object.entries(endpoint.fields);
  const properties: Node = {};
  if (endpoint.access.kind === 'token') {
    properties.access_token = {
      type: 'string',
      minLength: 1,
      maxLength: 4096,
      description: 'The access token, unless it is in the Authorization header.',
    };
  }
  if (endpoint.keyKept !== null) {
    properties.idempotency_key = {
      ...orNull(KEY_SCHEMA),
      description: 'The same as the Idempotency-Key header; both may be sent if they are equal.',
    };
  }
  for (const [name, field] of fields)
    properties[name] = { ...(field.required ? field.schema : orNull(field.schema)), description: field.about };
  const required = fields.filter(([, field]) => field.required).map(([name]) => name);
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) };
}

/** null stands for a field that is not sent. */
function orNull(schema: JsonSchema): JsonSchema {
  const types = [schema.type].flat();
  if (types.includes('null')) return schema;
  return { ...schema, type: [...types, 'null'], ...(Array.isArray(schema.enum) ? { enum: [...schema.enum, null] } : {}) };
}

/** One response for each HTTP status, naming its codes. */
function refusalResponses(codes: readonly RefusalCode[], headers: Node): Node {
  const byStatus = new Map<number, RefusalCode[]>();
  for (const code of codes) byStatus.set(REFUSALS[code][0], [...(byStatus.get(REFUSALS[code][0]) ?? []), code]);
  return Object.fromEntries([...byStatus].map(([status, listed]) => [status, refusalResponse(status, listed, headers)]));
}

function refusalResponse(status: number, codes: readonly RefusalCode[], headers: Node): Node {
  const waits = status === 429 || status === 503 ? { 'Retry-After': ref('headers', 'RetryAfter') } : {};
  const allow = status === 405 ? { Allow: text('The method that this path takes.') } : {};
  return {
    description: codes.map((code) => `\`${code}\`: ${REFUSALS[code][1]}`).join('\n\n'),
    headers: { ...headers, ...waits, ...allow },
    content: json({
      type: 'object',
      required: ['error', 'message'],
      properties: {
        error: { type: 'string', enum: codes },
        message: { type: 'string' },
        param: { type: 'string', description: 'The field at fault.' },
      },
    }),
  };
}

function systemPaths(): Node {
  const uncounted = { 'X-Request-Id': ref('headers', 'RequestId') };
  const entries = Object.entries<SystemPath>(SYSTEM_PATHS).map(([path, { summary, reply, refusals }]) => {
    // who is not counted is not told of limits
    const headers = refusals.includes('rate_limited') ? COUNTED : uncounted;
    const done = { description: 'Yes.', headers, content: json(documentSchema(reply)) };
    const get = {
      operationId: path.slice(1).replace('.', '_'),
      tags: ['system'],
      summary,
      security: [],
      responses: { 200: done, ...refusalResponses(refusals, headers) },
    };
    return [path, { get }];
  });
  return Object.fromEntries(entries);
}
