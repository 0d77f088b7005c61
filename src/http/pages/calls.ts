// Answering requests of pages for people: counted, never kept by anybody, and with a page also where something is refused.
import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Refusal } from '../../core/refusal.ts';
import { addressKey } from '../client-address.ts';
import { createLimiter, type Limiter } from '../rate-limit.ts';
import { refusalOf } from '../reply-error.ts';
import { type Counted, type ServerContext, takeCall } from '../server-context.ts';
import { beginPieces } from '../written-in-pieces.ts';
import { pageHeaders } from './files.ts';
import { errorPage } from './frame.ts';

/** A request of a page on its way. */
export type PageRequest = {
  readonly context: ServerContext;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Before every path of ours: where a proxy has put the service. */
  readonly base: string;
  /** What its answer tells the limit of. */
  counted: Counted;
  /** What its form asks for has begun, and may have been done whatever fails now. */
  isUnderWay: boolean;
};
const NOT_KNOWN =
  'It is not known whether this was done. Load this page again, which sends the same form once more: what was done is not done twice.';

/** Of an address: pages and their refusals. What a page asks for is counted by the operations besides. */
const LIMIT = { perMinute: 600 };
const HEADERS = {
  ...pageHeaders('img-src data:; ', "'self'"),
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  // with less, browsers would hide which page a form comes from
  'referrer-policy': 'same-origin',
};

/** From what a page does to its handler. */
export type Serve = (work: (call: PageRequest) => Promise<void>) => (request: FastifyRequest, reply: FastifyReply) => void;

/** Counts pages by address. */
export function pagesLimiter({ rateLimits, rateLimitScale, sharedLimits }: ServerContext): Limiter<string> {
  return createLimiter<string>('portal', rateLimits?.portal ?? LIMIT, rateLimitScale, sharedLimits);
}

/** Makes what answers with the page that `work` writes, and an error with a page that tells it. @param of.home where that page leads */
export function createServe(context: ServerContext, of: { readonly limiter: Limiter<string>; readonly home: string }): Serve {
  const { limiter, home } = of;
  const { publicUrl } = context;
  const base = publicUrl === null ? '' : new URL(publicUrl).pathname.replace(/\/$/, '');
  async function answered(
    request: FastifyRequest,
    reply: FastifyReply,
    work: (call: PageRequest) => Promise<void>,
  ): Promise<void> {
    const counted = { limiter, key: addressKey(request.ip) } as Counted;
    const call: PageRequest = { context, request, reply, base, counted, isUnderWay: false };
    try {
      const insecure = context.insecure(request);
      if (insecure !== null) throw insecure;
      await take(call, counted);
      await work(call);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal !== error) context.report({ requestId: request.id, path: request.url, error }, 'a page failed');
      const text = call.isUnderWay ? `${refusal.message} ${NOT_KNOWN}` : refusal.message;
      refuse(call, refusal, errorPage(call, { title: titleOf(refusal), text, home }));
    }
  }
  return (work) => (request, reply) =>
    void answered(request, reply, work).catch((error) => {
      // what even the page of an error cannot tell ends this connection, and not the process
      context.report({ requestId: request.id, path: request.url, error }, 'a page could not be answered');
      request.raw.destroy();
    });
}

/** The heading of a page that only says what is refused. */
export function titleOf({ httpStatus }: Refusal): string {
  if (httpStatus === 404) return 'Not found';
  return httpStatus === 403 ? 'Not allowed' : 'Not now';
}

/** Counts a call of somebody who is not signed in. @throws Refusal rate_limited */
export function takeAnonymous(call: PageRequest): Promise<void> {
  return take(call, { limiter: call.context.anonymous, key: addressKey(call.request.ip) } as Counted);
}

async function take(call: PageRequest, counted: Counted): Promise<void> {
  call.counted = counted;
  const refused = await takeCall(counted, call.context.now());
  if (refused !== null) throw refused;
}

/** Sends a page. */
export function answer(call: PageRequest, page: string): void {
  writeHeaders(call);
  call.reply.send(page);
}

function writeHeaders(call: PageRequest): void {
  const { context, request, reply, counted } = call;
  context.sign(request, reply);
  counted.limiter.describe(reply, counted.key, context.now());
  reply.headers(HEADERS);
}

/** Begins a file for the user to keep: from here on the answer is written without fastify. @param file.name letters, digits, `-` and `.` only */
export function beginFile(call: PageRequest, { type, name }: { readonly type: string; readonly name: string }): ServerResponse {
  writeHeaders(call);
  return beginPieces(call.reply, { 'content-type': type, 'content-disposition': `attachment; filename="${name}"` });
}

/** Answers with a page that says what was refused. */
export function refuse(call: PageRequest, refusal: Refusal, page: string): void {
  const { httpStatus, retryAfterSeconds } = refusal;
  call.reply.code(httpStatus);
  if (retryAfterSeconds !== null) call.reply.header('retry-after', String(retryAfterSeconds));
  answer(call, page);
}

/** To a page of ours, by GET (RFC 9110 §15.4.4). */
export function redirect(call: PageRequest, path: string): void {
  call.reply.code(303).header('location', `${call.base}${path}`);
  answer(call, '');
}
