// From a row of the endpoint table and its handler to a route. The order of checks is behaviour §1's: size, media type, JSON → token →
// account and scope → rate limit → fields → the handler (existence, state, money).
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Access, Endpoint } from '../contract/endpoint.ts';
import { type BodyOf, readFields } from '../contract/fields.ts';
import type { MerchantApi } from '../contract/merchant-api.ts';
import { serializerSchema, type TypeOf } from '../contract/shapes.ts';
import type { Context } from '../flow/context.ts';
import { type Answer, once } from '../flow/once.ts';
import type { Caller } from '../flow/sign-in.ts';
import { addressKey } from './client-address.ts';
import { bearer, checkScope, presentedToken } from './credentials.ts';
import { bodyHash, presentedKey } from './idempotency-key.ts';
import { createLimiter } from './rate-limit.ts';
import { hasEnded } from './raw-answer.ts';
import { checkMediaType, type JsonObject, parseObject, readBytes } from './read-body.ts';
import { errorBody, JSON_TYPE } from './reply-error.ts';
import { type Counted, type ServerContext, takeCall } from './server-context.ts';

/** What a handler may need besides its body. */
export type Call = {
  /** Inside the open transaction when the call has a key. */
  readonly ctx: Context;
  readonly context: ServerContext;
  readonly request: FastifyRequest;
};
export type SignedInCall = Call & { readonly caller: Caller };
type Handler<E extends Endpoint> = (
  call: E['access'] extends { readonly kind: 'open' } ? Call : SignedInCall,
  body: BodyOf<E['fields']>,
) => Promise<TypeOf<E['reply']>>;
/** One handler for each row: a missing one does not compile. */
export type MerchantHandlers = { readonly [K in keyof MerchantApi]: Handler<MerchantApi[K]> };
type AnyHandler = (call: SignedInCall, body: Record<string, unknown>) => Promise<unknown>;

/** Mounts an endpoint at its path and under /v1. */
export function mount(app: FastifyInstance, context: ServerContext, endpoint: Endpoint, handler: AnyHandler): void {
  const { access } = endpoint;
  const answer = access.kind === 'open' ? openRoute(context, endpoint, handler) : tokenRoute(context, endpoint, access, handler);
  function route(request: FastifyRequest, reply: FastifyReply): void {
    const insecure = context.insecure(request);
    if (insecure !== null) {
      context.failAnonymous(request, reply, insecure);
      return;
    }
    readBytes(request.raw, (refusal, bytes) => {
      if (hasEnded(request.raw.socket)) return;
      try {
        if (refusal !== null) throw refusal;
        checkMediaType(request.raw);
        answer(request, reply, parseObject(bytes));
      } catch (error) {
        context.failAnonymous(request, reply, error);
      }
    });
  }
  const schema = { response: { 200: serializerSchema(endpoint.reply) } };
  for (const url of [endpoint.path, `/v1${endpoint.path}`]) app.route({ method: 'POST', url, schema, handler: route });
}

type Route = (request: FastifyRequest, reply: FastifyReply, body: JsonObject) => void;

/** Sign-in and refresh: counted by address. */
function openRoute(context: ServerContext, endpoint: Endpoint, handler: AnyHandler): Route {
  const limiter = createLimiter<string>(endpoint.path.slice(1), endpoint.limit, context.rateLimitScale, context.sharedLimits);
  return (request, reply, body) => {
    const counted = { limiter, key: addressKey(request.ip) };
    takeCall(counted, context.now(), (refused) => {
      if (refused !== null) {
        context.fail(request, reply, refused, counted);
        return;
      }
      // tokens must not stay in caches (RFC 6749 §5.1)
      reply.header('cache-control', 'no-store');
      run(context, request, reply, counted, () => {
        const sent = withHeaderToken(endpoint, body, request);
        return handler({ ctx: context.ctx, context, request } as SignedInCall, read(endpoint, sent));
      });
    });
  };
}

/** Where access_token is a field of the operation itself, the header may carry it too. */
function withHeaderToken(endpoint: Endpoint, body: JsonObject, request: FastifyRequest): JsonObject {
  const { authorization } = request.raw.headers;
  if (!('access_token' in endpoint.fields) || bearer(authorization) === null) return body;
  return { ...body, access_token: presentedToken(body, authorization) };
}

function tokenRoute(context: ServerContext, endpoint: Endpoint, access: Access & { kind: 'token' }, handler: AnyHandler): Route {
  const { limit, keyKept } = endpoint;
  const limiter = createLimiter<bigint>(endpoint.path.slice(1), limit, context.rateLimitScale, context.sharedLimits, BigInt);
  const { authenticate, authenticateNow } = context.authenticator;

  function proceed(request: FastifyRequest, reply: FastifyReply, body: JsonObject, caller: Caller): void {
    const counted = { limiter, key: caller.merchantId };
    try {
      checkScope(caller, access, body);
    } catch (error) {
      context.fail(request, reply, error, counted);
      return;
    }
    takeCall(counted, context.now(), (refused) => {
      if (refused !== null) context.fail(request, reply, refused, counted);
      else if (keyKept !== null) runKeyed(context, { endpoint, handler, request, reply, body, caller }, counted);
      else {
        run(context, request, reply, counted, () =>
          handler({ ctx: context.ctx, context, request, caller }, read(endpoint, body)),
        );
      }
    });
  }

  return (request, reply, body) => {
    let caller: Caller | Promise<Caller>;
    try {
      const token = presentedToken(body, request.raw.headers.authorization);
      // another server's revocation arrives here a moment late, so a remembered token suffices only for a server that is alone
      caller = access.askNow || !context.sharedLimits.alone ? authenticateNow(token) : authenticate(token);
    } catch (error) {
      context.failAnonymous(request, reply, error);
      return;
    }
    if (!(caller instanceof Promise)) {
      proceed(request, reply, body, caller);
      return;
    }
    caller.then(
      (found) => proceed(request, reply, body, found),
      (error) => context.failAnonymous(request, reply, error),
    );
  };
}

function read(endpoint: Endpoint, body: JsonObject): Record<string, unknown> {
  return readFields(endpoint.fields, body, endpoint.alsoRequired?.(body));
}

/** Runs the handler and sends its answer. */
function run<Key>(
  context: ServerContext,
  request: FastifyRequest,
  reply: FastifyReply,
  counted: Counted<Key>,
  work: () => Promise<unknown>,
): void {
  let answer: Promise<unknown>;
  try {
    answer = work();
  } catch (error) {
    context.fail(request, reply, error, counted);
    return;
  }
  answer.then(
    (value) => {
      context.sign(request, reply);
      counted.limiter.describe(reply, counted.key, context.now());
      reply.send(value);
    },
    (error) => context.fail(request, reply, error, counted),
  );
}

type KeyedCall = {
  readonly endpoint: Endpoint;
  readonly handler: AnyHandler;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly body: JsonObject;
  readonly caller: Caller;
};

/** The same for a write that happens once per key, if it has one. */
function runKeyed(context: ServerContext, call: KeyedCall, counted: Counted<bigint>): void {
  const { endpoint, handler, request, reply, body, caller } = call;
  const perform = async (ctx: Context, fields: Record<string, unknown>): Promise<string> =>
    reply.serialize((await handler({ ctx, context, request, caller }, fields)) as object) as string;
  async function answer(): Promise<Answer> {
    const fields = read(endpoint, body);
    const key = presentedKey(body, request.raw.headers['idempotency-key']);
    if (key === null) return { httpStatus: 200, text: await perform(context.ctx, fields), replayed: false };
    const of = {
      merchantId: caller.merchantId,
      operation: endpoint.path,
      key,
      bodyHash: bodyHash(body),
      kept: endpoint.keyKept ?? 'a day',
    };
    const done = await context.keyed(caller.merchantId, () => once(context.ctx, of, (ctx) => perform(ctx, fields), errorBody));
    if (done.replayed && endpoint.alsoOnReplay === true) await perform(context.ctx, fields);
    return done;
  }
  answer().then(
    ({ httpStatus, text, replayed }) => {
      reply.code(httpStatus);
      context.sign(request, reply);
      if (replayed) reply.header('idempotent-replayed', 'true');
      counted.limiter.describe(reply, counted.key, context.now());
      reply.header('content-type', JSON_TYPE);
      reply.send(text);
    },
    (error) => context.fail(request, reply, error, counted),
  );
}
