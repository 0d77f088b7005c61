// The API as an OpenAPI 3.1 document, made from the tables of endpoints: every operation with every refusal, an example of each request and
// answer, and the schemas by name. The sandbox's document also has its controls.
import type { RefusalCode } from '../core/refusal.ts';
import { TOKEN_LIFETIMES } from '../core/sign-in-ports.ts';
import { type Endpoint, refusalsOf, type Subject } from './endpoint.ts';
import { type Field, type Fields, type JsonSchema, KEY_MAX_LENGTH, orNull, TOKEN_SCHEMA, UNPRINTABLE } from './fields.ts';
import { MERCHANT_API } from './merchant-api.ts';
import { COUNTED, HEADERS, type Node, ref, refusalResponses, UNCOUNTED } from './openapi-parts.ts';
import { CONTROL_ERROR, SANDBOX_API } from './sandbox-api.ts';
import { type Components, documentSchema, exampleOf, type Shape } from './shapes.ts';
import { SYSTEM_PATHS, type SystemPath } from './system-api.ts';
import { STREAM_API } from './webhook-api.ts';

const SUBJECTS: Readonly<Record<Subject, string>> = {
  'sign-in': 'Tokens: get a pair, exchange it, end it.',
  transactions: 'Take payments: create, check, cancel, list, decide.',
  account: 'The account, its balances, and what explains them.',
  payouts: 'Money that leaves to the merchant.',
  settings: 'What the merchant decides beforehand.',
  rates: 'Exchange rates.',
  events: 'What has changed, and webhooks that tell it.',
};
const BEARER = {
  type: 'http',
  scheme: 'bearer',
  bearerFormat: 'JWT',
  description: `The access token of \`/auth\`, valid for ${TOKEN_LIFETIMES.access}. Every operation takes it as the field \`access_token\` of the body too, which is its place in the contract: one of the two places is enough, and two different tokens are refused (400 \`conflicting_credentials\`).`,
};
const ABOUT =
  'Every operation is an HTTP POST with a JSON body; the same paths work below /v1. Amounts are decimal strings, times are UTC. The access token goes into the body (`access_token`) or into the header (`Authorization: Bearer`).';

export type DocumentOptions = {
  /** The address at which clients reach this server, without a slash at the end. */
  readonly url: string;
  readonly version: string;
  /** Whether the sandbox's controls exist here. */
  readonly sandbox: boolean;
};

/**
 * The OpenAPI 3.1 document of this server: every operation below `/` and `/v1`, the streams, the GET paths, and in the sandbox its
 * controls. Made from the tables that the server itself reads.
 */
export function openApiDocument(options: DocumentOptions): Node {
  const components: Components = new Map();
  const servers = [{ url: options.url }, { url: `${options.url}/v1` }];
  const merchant = Object.entries(MERCHANT_API).map(([id, endpoint]) => [
    endpoint.path,
    { servers, post: operation(id, endpoint, components) },
  ]);
  const streams = Object.entries(STREAM_API).map(([id, endpoint]) => [
    endpoint.path,
    { servers, post: streamOperation(id, endpoint, components) },
  ]);
  const paths = {
    ...Object.fromEntries(merchant),
    ...Object.fromEntries(streams),
    ...systemPaths(components),
    ...(options.sandbox ? sandboxPaths(components) : {}),
  };
  const tags = [
    ...Object.entries(SUBJECTS).map(([name, description]) => ({ name, description })),
    { name: 'system', description: 'Health and documents.' },
    ...(options.sandbox
      ? [
          {
            name: 'sandbox',
            description: 'Controls of the simulated nodes and exchanges; they exist in the sandbox only, and need no token.',
          },
        ]
      : []),
  ];
  return {
    openapi: '3.1.0',
    info: {
      title: 'Bursar',
      version: options.version,
      summary: 'A self-hosted crypto payment processor',
      description: ABOUT,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: options.url }],
    tags,
    paths,
    components: { schemas: Object.fromEntries(components), headers: HEADERS, securitySchemes: { bearer: BEARER } },
  };
}

function operation(id: string, endpoint: Endpoint, components: Components): Node {
  const { access, keyKept } = endpoint;
  const replayed = keyKept === null ? {} : { 'Idempotent-Replayed': ref('headers', 'IdempotentReplayed') };
  const key = { name: 'Idempotency-Key', in: 'header', required: false, schema: KEY_SCHEMA, description: keyAbout(keyKept) };
  const isOpen = access.kind === 'open';
  const done = answer(endpoint.reply, components);
  return {
    operationId: id,
    tags: [endpoint.subject],
    summary: endpoint.summary,
    description: isOpen ? endpoint.about : `${endpoint.about}\n\nNeeds ${access.inWords}.`,
    security: isOpen ? [] : [{ bearer: [] }],
    ...(keyKept === null ? {} : { parameters: [key] }),
    requestBody: requestBody(id, allFields(endpoint), components),
    responses: {
      200: {
        description: 'Done.',
        headers: { ...COUNTED, ...replayed },
        content: { 'application/json': done },
        ...(id === 'createTransaction' ? { links: LINKS } : {}),
      },
      ...refusalResponses(refusalsOf(endpoint), COUNTED, components),
    },
  };
}

const LAST_EVENT_ID: Node = {
  name: 'Last-Event-ID',
  in: 'header',
  required: false,
  schema: { type: 'string', maxLength: 64, examples: ['evt_t0351dYxk0d1Jt8vTgkN1AM2'] },
  description: 'The last `id` seen: the stream goes on after it. It comes before `starting_after`.',
};

/** An operation whose answer goes on: server-sent events, each with the reply as its data. */
function streamOperation(id: string, endpoint: Endpoint, components: Components): Node {
  const described = operation(id, endpoint, components);
  const { schema, example } = answer(endpoint.reply, components);
  const { id: cursor, type } = example as { readonly id: string; readonly type: string };
  const content = {
    'text/event-stream': {
      schema: { type: 'string', contentMediaType: 'application/json', contentSchema: schema },
      example: `id: ${cursor}\nevent: ${type}\ndata: ${JSON.stringify(example)}\n\n`,
    },
  };
  const responses = described.responses as Record<string, Node>;
  return { ...described, parameters: [LAST_EVENT_ID], responses: { ...responses, 200: { ...responses[200], content } } };
}

const follow = (operationId: string): Node => ({
  operationId,
  requestBody: { transaction_id: '$response.body#/transaction_id' },
});
const LINKS: Node = { check: follow('checkTransaction'), cancel: follow('cancelTransaction') };
const KEY_SCHEMA: JsonSchema = {
  type: 'string',
  minLength: 1,
  maxLength: KEY_MAX_LENGTH,
  pattern: `^[^${UNPRINTABLE}]+$`,
  examples: ['order-1042'],
};

function keyAbout(keyKept: Endpoint['keyKept']): string {
  const kept = keyKept === 'for ever' ? 'for ever' : 'for 24 hours';
  return `Makes a retry safe: the same key with the same body is answered with the stored answer, kept ${kept}. The field \`idempotency_key\` does the same.`;
}

type Described = Pick<Field<unknown>, 'required' | 'about' | 'schema'>;

/** The fields of an operation, including those that its access and its key add. */
function allFields(endpoint: Endpoint): Readonly<Record<string, Described>> {
  const token: Described = {
    required: false,
    about: 'The access token, unless it is in the Authorization header.',
    schema: TOKEN_SCHEMA,
  };
  const key: Described = {
    required: false,
    about: 'The same as the Idempotency-Key header; both may be sent if they are equal.',
    schema: KEY_SCHEMA,
  };
  const fields: Fields = endpoint.fields;
  return {
    ...(endpoint.access.kind === 'token' ? { access_token: token } : {}),
    ...fields,
    ...(endpoint.keyKept === null ? {} : { idempotency_key: key }),
  };
}

function requestBody(id: string, fields: Readonly<Record<string, Described>>, components: Components): Node {
  const name = `${id.charAt(0).toUpperCase()}${id.slice(1)}Request`;
  const list = Object.entries(fields);
  const required = list.filter(([, field]) => field.required).map(([field]) => field);
  // null means a field that is not sent
  const properties = list.map(([field, { required: needed, schema, about }]) => {
    return [field, { ...(needed ? schema : orNull(schema)), description: about }];
  });
  components.set(name, {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
  });
  const usual = list.filter(([field, { required: needed }]) => needed || field === 'access_token' || field === 'label');
  const shown = usual.length > 0 ? usual : list.slice(0, 2);
  const example = Object.fromEntries(shown.map(([field, { schema }]) => [field, exampleField(schema)]));
  return { required: true, content: { 'application/json': { schema: ref('schemas', name), example } } };
}

function exampleField(schema: JsonSchema): unknown {
  return (schema.examples as unknown[] | undefined)?.[0] ?? (schema.enum as unknown[] | undefined)?.[0];
}

function answer(reply: Shape<unknown>, components: Components): { readonly schema: JsonSchema; readonly example: unknown } {
  return { schema: documentSchema(reply, components), example: exampleOf(reply) };
}

function systemPaths(components: Components): Node {
  const entries = Object.entries<SystemPath>(SYSTEM_PATHS).map(([path, { summary, reply, refusals }]) => {
    // a caller that is not counted gets no headers about limits
    const headers = refusals.includes('rate_limited') ? COUNTED : UNCOUNTED;
    const done = { description: 'Yes.', headers, content: { 'application/json': answer(reply, components) } };
    const get = {
      operationId: path.slice(1).replace('.', '_'),
      tags: ['system'],
      summary,
      security: [],
      responses: { 200: done, ...refusalResponses(refusals, headers, components) },
    };
    return [path, { get }];
  });
  return Object.fromEntries(entries);
}

/** What a control refuses besides its own refusals: bodies are checked as everywhere. */
const OF_CONTROLS: readonly RefusalCode[] = ['method_not_allowed', 'payload_too_large', 'unsupported_media_type', 'overloaded'];

function sandboxPaths(components: Components): Node {
  const refusal = (about: string): Node => ({
    description: about,
    headers: UNCOUNTED,
    content: { 'application/json': answer(CONTROL_ERROR, components) },
  });
  const entries = Object.entries(SANDBOX_API).map(([name, control]) => {
    const id = `sandbox_${name}`;
    const done = { description: 'Done.', headers: UNCOUNTED, content: { 'application/json': answer(control.reply, components) } };
    const post = {
      operationId: id,
      tags: ['sandbox'],
      summary: control.summary,
      description: control.about,
      security: [],
      requestBody: requestBody(id, control.fields, components),
      responses: {
        200: done,
        400: refusal('A field is missing or wrong; `param` names it.'),
        404: refusal('What a field names does not exist.'),
        409: refusal('It cannot be done now, or not in this version.'),
        ...refusalResponses(OF_CONTROLS, UNCOUNTED, components),
      },
    };
    return [`/sandbox/${name}`, { post }];
  });
  return Object.fromEntries(entries);
}
