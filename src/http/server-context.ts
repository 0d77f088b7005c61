// What the HTTP server is created with, and what all its routes share: calls counted by address, the requirement of TLS, the answers to
// errors.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RateLimits } from '../contract/endpoint.ts';
import type { Network } from '../core/currency.ts';
import type { CheckoutTokens } from '../core/judge/checkout.ts';
import { Refusal } from '../core/refusal.ts';
import { type ConcurrencyLimit, createConcurrencyLimit } from '../flow/concurrency-limit.ts';
import type { Context } from '../flow/context.ts';
import type { EventTail } from '../flow/events/stream.ts';
import type { Authenticator } from '../flow/sign-in/sign-in.ts';
import type { StatusNotifier } from '../flow/transactions/reads.ts';
import { addressKey, isSecure, listensAt, schemeOf } from './client-address.ts';
import type { ConnectionLimits, Connections } from './connections.ts';
import type { Durations } from './metrics/durations.ts';
import { createLimiter, describeUsedUp, type Limiter } from './rate-limit.ts';
import type { JsonObject } from './read-body.ts';
import { type Report, refusalOf, sendRefusal } from './reply-error.ts';
import type { RequestLimits } from './requests-in-progress.ts';
import type { SharedLimits } from './shared-limits.ts';
import type { PlaceLimits } from './stream-places.ts';

/** Forwards a control to the sandbox; its answer goes out unchanged. Throws a Refusal when no answer comes, or none before `closing`. */
export type SandboxForward = (
  control: string,
  body: JsonObject,
  closing: AbortSignal,
) => Promise<{ readonly httpStatus: number; readonly json: string }>;

export type ServerOptions = {
  readonly ctx: Context;
  readonly authenticator: Pick<Authenticator, 'authenticate' | 'authenticateNow' | 'watch'>;
  readonly statusNotifier: StatusNotifier;
  /** Tells what streams of events tell; this server is its listener. */
  readonly eventTail: EventTail;
  readonly network: Network;
  /** Where clients reach this server, without a slash at the end; null: the address that they called. */
  readonly publicUrl: string | null;
  /** Limits in the place of those of the contract's table. */
  readonly rateLimits?: RateLimits;
  /** Multiplies every limit. */
  readonly rateLimitScale: number;
  /** The other servers of the same database. */
  readonly sharedLimits: SharedLimits;
  /** Addresses and networks whose X-Forwarded-* count. */
  readonly trustedProxies: readonly string[];
  /** null: this network has no controls. */
  readonly sandbox: SandboxForward | null;
  /** Receives every bug and every failure of the database. */
  readonly report: Report;
  /** The service's version, for the documents. */
  readonly version: string;
  /** What the links of checkout pages name transactions by. */
  readonly checkoutTokens: CheckoutTokens;
  /** Measures what is answered; absent: nobody asks. */
  readonly durations?: Durations;
  /** Other times for connections than those of behaviour §1. */
  readonly connectionLimits?: ConnectionLimits;
  /** Other numbers of requests at once than usual. */
  readonly requestLimits?: RequestLimits;
  /** Other numbers of streams at once than usual. */
  readonly streamLimits?: PlaceLimits;
  /** Other numbers of open checkout pages at once than usual. */
  readonly checkoutLimits?: PlaceLimits;
};

export type ServerContext = ServerOptions & {
  readonly now: () => number;
  /** Aborts when the server begins to close: every waiting call is answered then. */
  readonly closing: AbortSignal;
  readonly connections: Connections;
  /** The headers of every answer: the request's id and, while the server closes, `Connection: close`. */
  sign(request: FastifyRequest, reply: FastifyReply): void;
  /** Calls that are not signed in, by address. */
  readonly anonymous: Limiter<string>;
  /** Runs a keyed write. It holds a connection while it may need another (a fresh range of addresses), so the pool must be larger. */
  readonly keyed: ConcurrencyLimit;
  /** Keys of the calls that are being prepared here: what one of them has reserved is not another one's to give up. */
  readonly preparing: Set<string>;
  /** Runs a list: however many of them are asked for, connections are left for everything else. */
  readonly lists: ConcurrencyLimit;
  /** Where clients reach this server, without a slash at the end: as it is configured, or as this call has reached it. */
  baseUrl(request: FastifyRequest): string;
  /** The refusal of a call that is not over TLS and must be; null when it may pass. */
  insecure(request: FastifyRequest): Refusal | null;
  /** Answers an error; the limiter that counts the call writes its headers. */
  fail(request: FastifyRequest, reply: FastifyReply, error: unknown, counted: Counted): void;
  /** Answers an error of a call that is exempt from limits. */
  failUncounted(request: FastifyRequest, reply: FastifyReply, error: unknown): void;
  /** Refuses a call for want of capacity: at once, and not counted. */
  failOverloaded(request: FastifyRequest, reply: FastifyReply): void;
  /** Answers an error of a call that is not signed in: it is counted by address, and refused when that limit is used up. */
  failAnonymous(request: FastifyRequest, reply: FastifyReply, error: unknown): Promise<void>;
};

export const ANONYMOUS = { perMinute: 60 };
const KEYED = { atOnce: 6, ofOne: 4, waiting: 2_000 };
const LISTS = { atOnce: 4, ofOne: 2, waiting: 2_000 };

/** What all calls of one API process share: limiters, the limits of calls at once, the clock, and the headers that every answer carries. */
export function createServerContext(options: ServerOptions, connections: Connections, closing: AbortSignal): ServerContext {
  const { clock } = options.ctx.ports;
  const needsTls = options.network !== 'sandbox';
  const anonymous = createLimiter<string>(
    'anonymous',
    options.rateLimits?.anonymous ?? ANONYMOUS,
    options.rateLimitScale,
    options.sharedLimits,
  );
  const context: ServerContext = {
    ...options,
    connections,
    closing,
    anonymous,
    keyed: createConcurrencyLimit(KEYED),
    preparing: new Set(),
    lists: createConcurrencyLimit(LISTS),
    now: () => clock.now(),
    sign(request, reply) {
      reply.header('x-request-id', request.id);
      if (closing.aborted) reply.header('connection', 'close');
    },
    baseUrl: (request) => options.publicUrl ?? `${schemeOf(request)}://${request.host || listensAt(request)}`,
    insecure: (request) => (needsTls && !isSecure(request) ? new Refusal('https_required') : null),
    fail(request, reply, error, { limiter, key }) {
      const refusal = refusalOf(error);
      if (refusal !== error) options.report({ requestId: request.id, path: request.url, error }, 'a call failed');
      context.sign(request, reply);
      if (refusal.limit === null) limiter.describe(reply, key, clock.now());
      else describeUsedUp(reply, refusal.limit, refusal.retryAfterSeconds ?? 0);
      sendRefusal(reply, refusal);
    },
    failUncounted(request, reply, error) {
      const refusal = refusalOf(error);
      if (refusal !== error) options.report({ requestId: request.id, path: request.url, error }, 'a call failed');
      context.sign(request, reply);
      sendRefusal(reply, refusal);
    },
    failOverloaded(request, reply) {
      context.fail(request, reply, new Refusal('overloaded'), { limiter: anonymous, key: addressKey(request.ip) });
    },
    async failAnonymous(request, reply, error) {
      const counted = { limiter: anonymous, key: addressKey(request.ip) };
      const refused = await takeCall(counted, clock.now());
      context.fail(request, reply, refused ?? error, counted);
    },
  };
  return context;
}

/** Who is counted, and where: an address, or a merchant. */
export type Counted = { readonly limiter: Limiter<string | bigint>; readonly key: string | bigint };

/** Counts a call; the refusal `rate_limited` when none is left. */
export async function takeCall({ limiter, key }: Counted, nowMs: number): Promise<Refusal | null> {
  if (await limiter.take(key, nowMs)) return null;
  return new Refusal('rate_limited', { retryAfterSeconds: limiter.retryAfterSeconds(key, nowMs) });
}
