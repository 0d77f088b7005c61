// From a row of the endpoint table and its handler to a route. The order of checks is behaviour §1's: size, media type, JSON → token →
// account and scope → rate limit → fields → the handler (existence, state, money).
import type { ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Access, Endpoint } from '../contract/endpoint.ts';
import { type BodyOf, readFields } from '../contract/fields.ts';
import type { MerchantApi } from '../contract/merchant-api.ts';
import { withRawJson } from '../contract/raw-json.ts';
import { serializerSchema, type TypeOf } from '../contract/shapes.ts';
import { Refusal } from '../core/refusal.ts';
import type { Context } from '../flow/context.ts';
import { type Answer, answerOnce, isAnswered } from '../flow/idempotency.ts';
import type { PreparedInvoice } from '../flow/lightning/invoices.ts';
import type { Caller } from '../flow/sign-in/sign-in.ts';
import type { Admit } from '../flow/sign-in/token-pair.ts';
import { addressKey } from './client-address.ts';
import { bearer, checkScope, presentedToken } from './credentials.ts';
import { bodyHash, presentedKey } from './idempotency-key.ts';
import { createLimiter, type Limiter } from './rate-limit.ts';
import { hasEnded } from './raw-answer.ts';
import { type JsonObject, parseBody, readBytes } from './read-body.ts';
import { errorBody, JSON_TYPE } from './reply-error.ts';
import { type Counted, type ServerContext, takeCall } from './server-context.ts';

/** What a handler may need besides its fields. */
export type OpenCall = {
  /** Inside the open database transaction when the call has a key. */
  readonly ctx: Context;
  readonly context: ServerContext;
  readonly request: FastifyRequest;
};
export type SignedInCall = OpenCall & {
  readonly caller: Caller;
  /** What was done outside before the database transaction of a call with a key was opened; null when nothing was. */
  readonly prepared: Prepared | null;
};
export type Prepared = {
  /** Of a transaction over Lightning. */
  readonly invoice?: PreparedInvoice;
  /** What the destination of a payout over Lightning was asked for (BOLT11). */
  readonly paymentRequest?: string;
};
/**
 * Does what an operation must do outside before the database transaction of a call with a key is opened. Not done for a call that has its
 * answer; it may be done again for one whose answer was lost.
 */
export type Preparation = (
  ctx: Context,
  of: { readonly merchantId: bigint; readonly key: string; readonly bodyHash: Buffer },
  fields: Fields,
) => Promise<Prepared | null>;
type Fields = Record<string, unknown>;

type TypedHandler<E extends Endpoint> = (
  call: E['access'] extends { readonly kind: 'open' } ? OpenCall : SignedInCall,
  fields: BodyOf<E['fields']>,
) => Promise<TypeOf<E['reply']>>;
/**
 * What a write must ask the outside before its database transaction begins: a refusal counts only where the answer is not a stored one.
 */
export type Asks = {
  readonly [K in keyof MerchantApi]?: (call: SignedInCall, fields: BodyOf<MerchantApi[K]['fields']>) => Promise<void>;
};
/** One handler for each row: a missing one does not compile. */
export type MerchantHandlers = { readonly [K in keyof MerchantApi]: TypedHandler<MerchantApi[K]> };

/** A row of the table with its handler: the access says which call the handler gets. */
export type Operation = { readonly endpoint: Endpoint } & (
  | { readonly kind: 'open'; readonly handler: (call: OpenCall, fields: Fields) => Promise<unknown> }
  | {
      readonly kind: 'token';
      readonly access: Extract<Access, { kind: 'token' }>;
      readonly handler: (call: SignedInCall, fields: Fields) => Promise<unknown>;
      readonly ask: ((call: SignedInCall, fields: Fields) => Promise<void>) | undefined;
      readonly prepare: Preparation | undefined;
    }
  | {
      readonly kind: 'stream';
      readonly access: Extract<Access, { kind: 'token' }>;
      /** Writes the answer itself, once it calls `begin` for its head. */
      readonly open: (call: StreamCall, fields: Fields) => Promise<void>;
    }
);
export type StreamCall = SignedInCall & {
  readonly token: string;
  /** Writes the head of the answer: after it nothing can be refused. */
  readonly begin: (headers: Readonly<Record<string, string>>) => ServerResponse;
};

/** Mounts an operation at its path and under /v1. */
export function mount(app: FastifyInstance, context: ServerContext, operation: Operation): void {
  const { endpoint } = operation;
  const limited = [endpoint.path.slice(1), endpoint.limit, context.rateLimitScale, context.sharedLimits] as const;
  const limiter: Limiter<string | bigint> =
    operation.kind === 'open' ? createLimiter<string>(...limited) : createLimiter<bigint>(...limited, BigInt);

  async function serve(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    // null until it is known who calls: what is refused before that counts as a call that is not signed in
    let counted: Counted | null = null;
    try {
      const insecure = context.insecure(request);
      if (insecure !== null) throw insecure;
      const read = await readBytes(request.raw);
      if (hasEnded(request.raw.socket)) return;
      const body = parseBody(request.raw, read);
      let answer: Answer;
      if (operation.kind === 'open') {
        counted = { limiter, key: addressKey(request.ip) };
        await count(counted);
        // tokens must not stay in caches (RFC 6749 §5.1)
        reply.header('cache-control', 'no-store');
        const fields = checkedFields(endpoint, withHeaderToken(endpoint, body, request));
        const value = await operation.handler({ ctx: context.ctx, context, request }, fields);
        answer = { httpStatus: 200, text: serialized(reply, value), replayed: false };
      } else {
        const token = presentedToken(body, request.raw.headers.authorization);
        const caller = await authenticate(context, operation.access, token, async () => {
          const stranger = { limiter: context.anonymous, key: addressKey(request.ip) };
          await count(stranger);
          counted = stranger;
        });
        const mine = { limiter, key: caller.merchantId };
        counted = mine;
        checkScope(caller, operation.access, body);
        await count(counted);
        if (operation.kind === 'stream') {
          const begin = (headers: Readonly<Record<string, string>>) =>
            beginStream(context, request, reply, { counted: mine, headers });
          const fields = checkedFields(endpoint, body);
          await operation.open({ ctx: context.ctx, context, request, caller, prepared: null, token, begin }, fields);
          return;
        }
        answer = await perform(context, operation, { request, body, caller }, async (ctx, fields, prepared) =>
          serialized(reply, await operation.handler({ ctx, context, request, caller, prepared }, fields)),
        );
      }
      reply.code(answer.httpStatus);
      context.sign(request, reply);
      if (answer.replayed) reply.header('idempotent-replayed', 'true');
      limiter.describe(reply, counted.key, context.now());
      reply.header('content-type', JSON_TYPE);
      reply.send(answer.text);
    } catch (error) {
      if (counted === null) await context.failAnonymous(request, reply, error);
      else context.fail(request, reply, error, counted);
    }
  }
  async function count(counted: Counted): Promise<void> {
    const refused = await takeCall(counted, context.now());
    if (refused !== null) throw refused;
  }

  const schema = { response: { 200: serializerSchema(endpoint.reply) } };
  const handler = (request: FastifyRequest, reply: FastifyReply): void => void serve(request, reply);
  for (const url of [endpoint.path, `/v1${endpoint.path}`]) app.route({ method: 'POST', url, schema, handler });
}

/** From here on the answer is written without fastify. */
function beginStream(
  context: ServerContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { counted, headers }: { readonly counted: Counted; readonly headers: Readonly<Record<string, string>> },
): ServerResponse {
  context.sign(request, reply);
  counted.limiter.describe(reply, counted.key, context.now());
  reply.hijack();
  reply.raw.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...headers });
  return reply.raw;
}

/** Where access_token is a field of the operation itself, the header may carry it too. */
function withHeaderToken(endpoint: Endpoint, body: JsonObject, request: FastifyRequest): JsonObject {
  const { authorization } = request.raw.headers;
  if (!('access_token' in endpoint.fields) || bearer(authorization) === null) return body;
  return { ...body, access_token: presentedToken(body, authorization) };
}

function authenticate(
  { authenticator, sharedLimits }: ServerContext,
  access: Extract<Access, { kind: 'token' }>,
  token: string,
  admit: Admit,
): Caller | Promise<Caller> {
  // another server's revocation arrives here a moment late, so a remembered token suffices only for a server that is alone
  return access.askNow || !sharedLimits.alone
    ? authenticator.authenticateNow(token, admit)
    : authenticator.authenticate(token, admit);
}

function checkedFields(endpoint: Endpoint, body: JsonObject): Fields {
  return readFields(endpoint.fields, body, endpoint.alsoRequired?.(body));
}

/** As the operation's row describes the reply. */
function serialized(reply: FastifyReply, value: unknown): string {
  return withRawJson(value as object, (one) => reply.serialize(one) as string);
}

type TokenCall = { readonly request: FastifyRequest; readonly body: JsonObject; readonly caller: Caller };

/** Runs the handler; a write with a key runs once for that key, and its stored answer is given again. */
async function perform(
  context: ServerContext,
  { endpoint, ask, prepare }: Extract<Operation, { kind: 'token' }>,
  { request, body, caller }: TokenCall,
  handle: (ctx: Context, fields: Fields, prepared: Prepared | null) => Promise<string>,
): Promise<Answer> {
  const fields = checkedFields(endpoint, body);
  let prepared: Prepared | null = null;
  const call = { ctx: context.ctx, context, request, caller, prepared };
  const refused = ask === undefined ? null : await refusalFrom(ask(call, fields));
  function work(ctx: Context): Promise<string> {
    if (refused !== null) throw refused;
    return handle(ctx, fields, prepared);
  }
  const { keyKept } = endpoint;
  const key = keyKept === null ? null : presentedKey(body, request.raw.headers['idempotency-key']);
  if (keyKept === null || key === null) return { httpStatus: 200, text: await work(context.ctx), replayed: false };
  const of = { merchantId: caller.merchantId, operation: endpoint.path, key, bodyHash: bodyHash(body), kept: keyKept };
  if (prepare !== undefined && refused === null && !(await isAnswered(context.ctx, of)))
    prepared = await prepare(context.ctx, of, fields);
  const once = { ...of, ...(endpoint.answersSecret === true ? { isSecret: true as const } : {}) };
  const answer = await context.keyed(caller.merchantId, () => answerOnce(context.ctx, once, work, errorBody));
  if (answer.replayed && endpoint.alsoOnReplay === true) await work(context.ctx);
  return answer;
}

async function refusalFrom(asked: Promise<void>): Promise<Refusal | null> {
  try {
    await asked;
    return null;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}
