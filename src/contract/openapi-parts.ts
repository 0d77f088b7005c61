// The parts that every operation of the OpenAPI document shares: headers, and the answers of refusals.
import { REFUSALS, type RefusalCode } from '../core/refusal.ts';
import { type Components, documentSchema, named, object, optional, string, word } from './shapes.ts';

export type Node = Record<string, unknown>;
/** A reference to a component of the document (JSON Pointer in a `$ref`). */
export const ref = (kind: 'schemas' | 'headers', name: string): Node => ({ $ref: `#/components/${kind}/${name}` });

const text = (about: string): Node => ({ description: about, schema: { type: 'string' } });
const whole = (about: string): Node => ({ description: about, schema: { type: 'integer', minimum: 0 } });
export const HEADERS: Node = {
  RequestId: text('Names this call in our logs.'),
  RateLimitPolicy: text('The limit that counted this call: `"name";q=calls;w=seconds`.'),
  RateLimit: text('What is left of it: `"name";r=calls;t=seconds`.'),
  RateLimitLimit: whole('Calls a minute.'),
  RateLimitRemaining: whole('Calls left now.'),
  RateLimitReset: whole('Seconds until the full number is available again.'),
  RetryAfter: whole('Seconds to wait.'),
  IdempotentReplayed: text('`true` when this is the stored answer to an earlier request with the same key.'),
};
/** For a call that no limit counts. */
export const UNCOUNTED: Node = { 'X-Request-Id': ref('headers', 'RequestId') };
export const COUNTED: Node = {
  ...UNCOUNTED,
  'RateLimit-Policy': ref('headers', 'RateLimitPolicy'),
  RateLimit: ref('headers', 'RateLimit'),
  'X-RateLimit-Limit': ref('headers', 'RateLimitLimit'),
  'X-RateLimit-Remaining': ref('headers', 'RateLimitRemaining'),
  'X-RateLimit-Reset': ref('headers', 'RateLimitReset'),
};

const codes = Object.keys(REFUSALS) as RefusalCode[];
const ERROR = named(
  'Error',
  object({
    error: named('ErrorCode', word('What went wrong; each status of an operation names those it may have.', codes)),
    message: string('The same in words, for people.', REFUSALS.invalid_json[1]),
    param: optional(string('The field at fault.', 'amount')),
  }),
);

/** One response for each HTTP status, naming its codes, with an example for each. */
export function refusalResponses(refusals: readonly RefusalCode[], headers: Node, components: Components): Node {
  const byStatus = new Map<number, RefusalCode[]>();
  for (const code of refusals) byStatus.set(REFUSALS[code][0], [...(byStatus.get(REFUSALS[code][0]) ?? []), code]);
  const schema = documentSchema(ERROR, components);
  return Object.fromEntries([...byStatus].map(([status, listed]) => [status, refusalResponse(status, listed, headers, schema)]));
}

function refusalResponse(status: number, listed: readonly RefusalCode[], headers: Node, schema: Node): Node {
  const waits = status === 429 || status === 503 ? { 'Retry-After': ref('headers', 'RetryAfter') } : {};
  const allow = status === 405 ? { Allow: text('The method that this path accepts.') } : {};
  const examples = listed.map((code) => [code, { value: { error: code, message: REFUSALS[code][1] } }]);
  return {
    description: listed.map((code) => `\`${code}\`: ${REFUSALS[code][1]}`).join('\n\n'),
    headers: { ...headers, ...waits, ...allow },
    content: { 'application/json': { schema, examples: Object.fromEntries(examples) } },
  };
}
