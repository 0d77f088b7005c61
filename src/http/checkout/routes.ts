// The routes of the checkout page, for customers: whoever has the link may see it, without a token of the API. A browser that asks for a page gets its
// refusals as a page too.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../../core/refusal.ts';
import { type Checkout, readCheckouts } from '../../flow/transactions/checkouts.ts';
import { addressKey } from '../client-address.ts';
import { goneSignal } from '../handlers/wait.ts';
import { mountFiles, PAGE_HEADERS, pageHeaders } from '../pages/files.ts';
import { createLimiter } from '../rate-limit.ts';
import { refusalOf } from '../reply-error.ts';
import { type Counted, type ServerContext, takeCall } from '../server-context.ts';
import { beginPieces } from '../written-in-pieces.ts';
import { errorPage, FILES, page } from './page.ts';
import { createCheckoutStreams } from './streams.ts';
import { type Language, languageOf } from './words/languages.ts';

/** Of an address: pages, their streams and their refusals. */
const LIMIT = { perMinute: 600 };

type OfToken = { Params: { token: string } };
type Call = { readonly request: FastifyRequest<OfToken>; readonly reply: FastifyReply; readonly counted: Counted };

// the link is a secret of merchant and customer
const SECRET = { 'cache-control': 'no-store' };
const PAGE = { ...SECRET, ...pageHeaders("script-src 'self'; img-src data:; connect-src 'self'; ") };

/** Mounts `/pay/<token>`, `/pay/<token>/events`, and the files of the page. */
export function mountCheckout(app: FastifyInstance, context: ServerContext): void {
  const limiter = createLimiter<string>(
    'checkout',
    context.rateLimits?.checkout ?? LIMIT,
    context.rateLimitScale,
    context.sharedLimits,
  );
  const streams = createCheckoutStreams(context);

  /** @throws Refusal https_required, rate_limited, not_found */
  async function found({ request, counted }: Call): Promise<Checkout> {
    const insecure = context.insecure(request);
    if (insecure !== null) throw insecure;
    const refused = await takeCall(counted, context.now());
    if (refused !== null) throw refused;
    const id = context.checkoutTokens.transactionIdOf(request.params.token);
    const checkout = id === null ? undefined : (await readCheckouts(context.ctx, [id])).get(id);
    if (checkout === undefined) throw new Refusal('not_found', { message: 'There is no such payment page.' });
    return checkout;
  }

  function sign({ request, reply, counted }: Call, headers: Readonly<Record<string, string>>): void {
    context.sign(request, reply);
    counted.limiter.describe(reply, counted.key, context.now());
    reply.headers(headers);
  }

  async function showPage(call: Call): Promise<void> {
    const { request, reply } = call;
    try {
      const checkout = await found(call);
      sign(call, PAGE);
      const of = { token: request.params.token, language: languageAskedBy(request), sandbox: context.sandbox !== null };
      reply.send(page(checkout, of));
    } catch (error) {
      const refusal = refusalOf(error);
      const isPage = request.headers.accept?.includes('text/html') === true;
      if (!isPage || refusal.httpStatus === 500) return context.fail(request, reply, error, call.counted);
      if (refusal !== error) context.report({ requestId: request.id, path: '/pay', error }, 'a checkout page failed');
      sign(call, PAGE);
      if (refusal.retryAfterSeconds !== null) reply.header('retry-after', String(refusal.retryAfterSeconds));
      const title = refusal.httpStatus === 404 ? 'Not found' : 'Not now';
      reply.code(refusal.httpStatus).send(errorPage(title, refusal.message));
    }
  }

  async function follow(call: Call): Promise<void> {
    const { request, reply, counted } = call;
    try {
      const checkout = await found(call);
      const address = String(counted.key);
      const release = streams.reserve(address);
      sign(call, { ...SECRET, ...PAGE_HEADERS, 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' });
      const response = beginPieces(reply);
      const language = languageAskedBy(request);
      streams.start(checkout, { address, language, response, gone: goneSignal(request.raw.socket), release });
    } catch (error) {
      context.fail(request, reply, error, counted);
    }
  }

  const callOf = (request: FastifyRequest<OfToken>, reply: FastifyReply): Call => ({
    request,
    reply,
    counted: { limiter, key: addressKey(request.ip) } as Counted,
  });
  mountFiles(app, context, '/pay', Object.values(FILES));
  app.get<OfToken>('/pay/:token', (request, reply) => void showPage(callOf(request, reply)));
  app.get<OfToken>('/pay/:token/events', { exposeHeadRoute: false }, (request, reply) => void follow(callOf(request, reply)));
}

function languageAskedBy({ url, headers }: FastifyRequest): Language {
  const asked = new URLSearchParams(url.split('?')[1] ?? '').get('lang');
  return languageOf({ asked, accepted: headers['accept-language'] });
}
