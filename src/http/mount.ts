// From a row of the endpoint table and its handler to a route. The order of checks is behaviour §1's: size, media type, JSON → token →
// account and scope → rate limit → fields → the handler (existence, state, money).
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Endpoint } from '../contract/endpoint.ts';
import { readFields } from '../contract/fields.ts';
import { withRawJson } from '../contract/raw-json.ts';
import { serializerSchema } from '../contract/shapes.ts';
import type { Answer } from '../flow/idempotency.ts';
import type { Caller } from '../flow/sign-in/sign-in.ts';
import { addressKey } from './client-address.ts';
import { bearer, checkScope, presentedToken } from './credentials.ts';
import { answerKeyed } from './keyed-call.ts';
import type { Fields, Operation, OperationOf, StreamCall, TokenAccess } from './operation.ts';
import { createLimiter, type Limiter } from './rate-limit.ts';
import { hasEnded } from './raw-answer.ts';
import { type JsonObject, parseBody, readBytes } from './read-body.ts';
import { JSON_TYPE } from './reply-error.ts';
import { type Counted, type ServerContext, takeCall } from './server-context.ts';
import { singleHeader } from './single-headers.ts';
import { beginPieces } from './written-in-pieces.ts';

/** A call on its way through the checks. */
type Call = {
  readonly context: ServerContext;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Null until it is known who calls: what is refused before that counts as a call that is not signed in. */
  counted: Counted | null;
  /** Who calls through a page; null: the call presents a token. */
  readonly signedIn: Caller | null;
  /** It reads on what a call that was counted has begun. */
  readonly isContinued: boolean;
};
/** Null: the answer was written by the operation itself. */
type AnswerTo = (call: Call, body: JsonObject) => Promise<Answer | null>;

/** A call of an operation by a page of the portal, for the user who is signed in there. */
export type PageCall = Pick<Call, 'request' | 'reply'> & { readonly caller: Caller | null; readonly isContinued?: boolean };
/** Checked, counted and answered like a call over HTTP. @throws Refusal as the operation refuses */
export type CallFromPage = (of: PageCall, body: JsonObject) => Promise<Answer>;

/** Mounts an operation at its path and under /v1, and returns how pages call it. */
export function mount(app: FastifyInstance, context: ServerContext, operation: Operation): CallFromPage {
  const { endpoint } = operation;
  const answerTo = answererOf(context, operation);

  async function serve(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const call: Call = { context, request, reply, counted: null, signedIn: null, isContinued: false };
    try {
      const insecure = context.insecure(request);
      if (insecure !== null) throw insecure;
      const read = await readBytes(request.raw);
      if (hasEnded(request.raw.socket)) return;
      const answer = await answerTo(call, parseBody(request.raw, read));
      if (answer !== null) send(call, answer);
    } catch (error) {
      if (call.counted === null) await context.failAnonymous(request, reply, error);
      else context.fail(request, reply, error, call.counted);
    }
  }

  const schema = { response: { 200: serializerSchema(endpoint.reply) } };
  const handler = (request: FastifyRequest, reply: FastifyReply): void => void serve(request, reply);
  for (const url of [endpoint.path, `/v1${endpoint.path}`]) app.route({ method: 'POST', url, schema, handler });
  return async ({ request, reply, caller, isContinued = false }, body) => {
    const answer = await answerTo({ context, request, reply, counted: null, signedIn: caller, isContinued }, body);
    if (answer === null) throw new Error(`${endpoint.path} is no operation for pages`);
    return answer;
  };
}

function answererOf(context: ServerContext, operation: Operation): AnswerTo {
  const { endpoint } = operation;
  const name = endpoint.path.slice(1);
  const limit = context.rateLimits?.[name] ?? endpoint.limit;
  const limited = [name, limit, context.rateLimitScale, context.sharedLimits] as const;
  if (operation.kind === 'open') return openAnswerer(operation, createLimiter<string>(...limited));
  const limiter = createLimiter<bigint>(...limited, BigInt);
  return operation.kind === 'token' ? tokenAnswerer(operation, limiter) : streamAnswerer(operation, limiter);
}

function openAnswerer({ endpoint, handler }: OperationOf<'open'>, limiter: Limiter<string>): AnswerTo {
  return async (call, body) => {
    const { context, request, reply } = call;
    await count(call, { limiter, key: addressKey(request.ip) });
    // tokens must not stay in caches (RFC 6749 §5.1)
    reply.header('cache-control', 'no-store');
    const fields = checkedFields(endpoint, withHeaderToken(endpoint, body, request));
    const value = await handler({ ctx: context.ctx, context, request }, fields);
    return { httpStatus: 200, text: serialized(reply, value), replayed: false };
  };
}

function tokenAnswerer(operation: OperationOf<'token'>, limiter: Limiter<bigint>): AnswerTo {
  const { endpoint, access, handler } = operation;
  return async (call, body) => {
    const { context, request, reply } = call;
    const { caller } = await admit(call, { body, access, limiter });
    const fields = checkedFields(endpoint, body);
    return answerKeyed(operation, { context, request, body, caller, fields }, async (ctx, prepared) =>
      serialized(reply, await handler({ ctx, context, request, caller, prepared }, fields)),
    );
  };
}

function streamAnswerer({ endpoint, access, open }: OperationOf<'stream'>, limiter: Limiter<bigint>): AnswerTo {
  return async (call, body) => {
    const { context, request } = call;
    const { caller, token } = await admit(call, { body, access, limiter });
    const fields = checkedFields(endpoint, body);
    await open({ ctx: context.ctx, context, request, caller, prepared: null, token, begin: headOf(call) }, fields);
    return null;
  };
}

/** Who calls, if the account and its scopes allow this call and the limit has one left. */
async function admit(
  call: Call,
  { body, access, limiter }: { readonly body: JsonObject; readonly access: TokenAccess; readonly limiter: Limiter<bigint> },
): Promise<{ readonly caller: Caller; readonly token: string }> {
  const token = call.signedIn === null ? presentedToken(body, singleHeader(call.request.raw, 'authorization')) : '';
  const caller = call.signedIn ?? (await authenticate(call, access, token));
  const counted = { limiter, key: caller.merchantId };
  // an account or a scope that refuses is told with this merchant's limit, and costs none of it
  call.counted = counted;
  checkScope(caller, access, body);
  if (!call.isContinued) await count(call, counted);
  return { caller, token };
}

function authenticate(call: Call, access: TokenAccess, token: string): Caller | Promise<Caller> {
  const { authenticator, sharedLimits, anonymous } = call.context;
  const countStranger = () => count(call, { limiter: anonymous, key: addressKey(call.request.ip) });
  // another server's revocation arrives here a moment late, so a remembered token suffices only for a server that is alone
  return access.askNow || !sharedLimits.alone
    ? authenticator.authenticateNow(token, countStranger)
    : authenticator.authenticate(token, countStranger);
}

/** @throws Refusal `rate_limited` */
async function count(call: Call, counted: Counted): Promise<void> {
  call.counted = counted;
  const refused = await takeCall(counted, call.context.now());
  if (refused !== null) throw refused;
}

/** Where access_token is a field of the operation itself, the header may carry it too. */
function withHeaderToken(endpoint: Endpoint, body: JsonObject, request: FastifyRequest): JsonObject {
  if (!('access_token' in endpoint.fields)) return body;
  const authorization = singleHeader(request.raw, 'authorization');
  if (bearer(authorization) === null) return body;
  return { ...body, access_token: presentedToken(body, authorization) };
}

function checkedFields(endpoint: Endpoint, body: JsonObject): Fields {
  return readFields(endpoint.fields, body, endpoint.alsoRequired?.(body));
}

/** As the operation's row describes the reply. */
function serialized(reply: FastifyReply, value: unknown): string {
  return withRawJson(value as object, (one) => reply.serialize(one) as string);
}

function send(call: Call, { httpStatus, text, replayed }: Answer): void {
  const { reply } = call;
  reply.code(httpStatus);
  writeHeaders(call);
  if (replayed) reply.header('idempotent-replayed', 'true');
  reply.header('content-type', JSON_TYPE);
  reply.send(text);
}

/** Writes the head of a stream: from here on the answer is written without fastify. */
function headOf(call: Call): StreamCall['begin'] {
  return (headers) => {
    writeHeaders(call);
    return beginPieces(call.reply, headers);
  };
}

/** What every answer carries: the request's id, and what is left of the limit that counted the call. */
function writeHeaders({ context, request, reply, counted }: Call): void {
  context.sign(request, reply);
  counted?.limiter.describe(reply, counted.key, context.now());
}
