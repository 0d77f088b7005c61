// The routes of the portal, for a merchant's people: pages that the server writes, without a script. Who is signed in is known by a cookie; a form does
// something only where a page of the same session made it.
import { timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Refusal } from '../../core/refusal.ts';
import { type PortalSession, readPortalSession, sessionTokenFor } from '../../flow/sign-in/portal-sessions.ts';
import { signOut } from '../../flow/sign-in/sign-in.ts';
import type { UnknownKeys } from '../../flow/sign-in/token-pair.ts';
import { addressKey } from '../client-address.ts';
import { html } from '../html.ts';
import { mountFiles, pageHeaders } from '../page-files.ts';
import { createLimiter } from '../rate-limit.ts';
import { refusalOf } from '../reply-error.ts';
import { type Counted, type ServerContext, takeCall } from '../server-context.ts';
import { BALANCE, BALANCES } from './balances.ts';
import { type Form, isFromOurPage, readForm } from './forms.ts';
import { errorPage, framed, STYLE, signInPage } from './frame.ts';
import { OVERVIEW } from './overview.ts';
import { withQuery } from './parts.ts';
import { NEW_PAYOUT, PAYOUT, PAYOUTS } from './payouts.ts';
import { presentedSession, sessionCookie } from './session-cookie.ts';
import { PAYOUT_SETTINGS, SETTINGS } from './settings.ts';
import { TRANSACTION } from './transaction.ts';
import { NEW_TRANSACTION, TRANSACTIONS } from './transactions.ts';
import { accessTokenFor, createVisit, type Operations, type Page, type Refused, type Visit } from './visit.ts';
import { WEBHOOKS } from './webhooks.ts';

const PAGES: readonly Page[] = [
  OVERVIEW,
  TRANSACTIONS,
  NEW_TRANSACTION,
  TRANSACTION,
  BALANCES,
  BALANCE,
  PAYOUTS,
  NEW_PAYOUT,
  PAYOUT,
  SETTINGS,
  PAYOUT_SETTINGS,
  WEBHOOKS,
];
/** Of an address: pages and their refusals. What a page asks for is counted by the operations besides. */
const LIMIT = { perMinute: 600 };
const HEADERS = {
  ...pageHeaders('img-src data:; ', "'self'"),
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  // with less, browsers would hide which page a form comes from
  'referrer-policy': 'same-origin',
};

type Call = {
  readonly context: ServerContext;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly base: string;
  counted: Counted;
};

/** The methods of the portal's pages by path; undefined for a path that is none of them. */
export function portalMethods(path: string): string | undefined {
  if (path === '/sign-in' || path === '/sign-out') return 'POST';
  const isOf = (page: Page): boolean => new RegExp(`^${page.path.replace(':id', '[^/]+')}$`).test(path);
  const page = PAGES.find((one) => one.path === path) ?? PAGES.find(isOf);
  if (page === undefined) return undefined;
  return page.acts === undefined ? 'GET, HEAD' : 'GET, HEAD, POST';
}

/** Mounts the portal. @param operations what its pages call */
export function mountPortal(app: FastifyInstance, context: ServerContext, operations: Operations): void {
  const { publicUrl } = context;
  const base = publicUrl === null ? '' : new URL(publicUrl).pathname.replace(/\/$/, '');
  const unknown: UnknownKeys = new Map();
  const limiter = createLimiter<string>(
    'portal',
    context.rateLimits?.portal ?? LIMIT,
    context.rateLimitScale,
    context.sharedLimits,
  );

  /** Answers with what `work` writes, and an error with a page that tells it. */
  async function serve(request: FastifyRequest, reply: FastifyReply, work: (call: Call) => Promise<void>): Promise<void> {
    const counted = { limiter, key: addressKey(request.ip) } as Counted;
    const call: Call = { context, request, reply, base, counted };
    try {
      const insecure = context.insecure(request);
      if (insecure !== null) throw insecure;
      await take(call, counted);
      await work(call);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal !== error) context.report({ requestId: request.id, path: request.url, error }, 'a page of the portal failed');
      refuse(call, refusal, errorPage(call, titleOf(refusal), refusal.message));
    }
  }

  async function show(call: Call, page: Page): Promise<void> {
    const session = await sessionOf(call);
    if (session === null) return showSignIn(call, page);
    const visit = createVisit(call, operations, session);
    await showPage(call, visit, page, null);
  }

  async function act(call: Call, page: Page): Promise<void> {
    const form = await ownForm(call);
    if (form === null) return;
    const session = await sessionOf(call);
    if (session === null) return showSignIn(call, page);
    checkFormToken(form, session);
    const visit = createVisit(call, operations, session);
    const { acts = {} } = page;
    const name = form.get('do') ?? '';
    const doing = Object.hasOwn(acts, name) ? acts[name] : undefined;
    if (doing === undefined) throw new Refusal('invalid_request', { message: 'This page has no such form.', param: 'do' });
    try {
      const shown = await doing(visit, form);
      if (typeof shown === 'string') redirect(call, shown);
      else answer(call, framed(visit, page.under, shown));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      await showPage(call, visit, page, { refusal: error, form });
    }
  }

  async function showPage(call: Call, visit: Visit, page: Page, refused: Refused | null): Promise<void> {
    try {
      const written = framed(visit, page.under, await page.show(visit, refused));
      if (refused === null) answer(call, written);
      else refuse(call, refused.refusal, written);
    } catch (error) {
      // the page itself cannot be seen, but the others may be
      if (!(error instanceof Refusal)) throw error;
      refuse(call, error, framed(visit, page.under, { title: titleOf(error), body: html`<p>${error.message}</p>` }));
    }
  }

  /** The session that the browser shows; null where it shows none that counts. */
  async function sessionOf(call: Call): Promise<PortalSession | null> {
    const token = presentedSession(call.request);
    if (token === null) return null;
    try {
      const session = await readPortalSession(context.ctx, token, { admit: () => takeAnonymous(call), unknown });
      if (session.token !== token) call.reply.header('set-cookie', sessionCookie(call.request, session.token));
      return session;
    } catch (error) {
      if (error instanceof Refusal && error.httpStatus === 401) return null;
      throw error;
    }
  }

  async function showSignIn(call: Call, page: Page): Promise<void> {
    await takeAnonymous(call);
    const { request } = call;
    if (page === OVERVIEW) answer(call, signInPage(call, ownPath(queryNext(request)), null));
    // what a form had is typed again
    else redirect(call, withQuery('/', { next: request.method === 'POST' ? request.url.split('?')[0] : request.url }));
  }

  async function signIn(call: Call): Promise<void> {
    const form = await ownForm(call);
    if (form === null) return;
    const next = ownPath(form.get('next'));
    try {
      const credentials = { username: form.get('username') ?? '', password: form.get('password') ?? '' };
      const accessToken = await accessTokenFor(operations, call, credentials);
      call.reply.header('set-cookie', sessionCookie(call.request, sessionTokenFor(context.ctx, accessToken)));
      redirect(call, next);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuse(call, error, signInPage(call, next, { refusal: error, form }));
    }
  }

  async function leave(call: Call): Promise<void> {
    const form = await ownForm(call);
    if (form === null) return;
    const session = await sessionOf(call);
    if (session !== null) {
      checkFormToken(form, session);
      await signOut(context.ctx, { signInId: session.caller.signInId });
    }
    call.reply.header('set-cookie', sessionCookie(call.request, null));
    redirect(call, '/');
  }

  async function ownForm({ request }: Call): Promise<Form | null> {
    const form = await readForm(request);
    if (form !== null && !isFromOurPage(request, publicUrl))
      throw new Refusal('invalid_request', { message: 'This form was sent by another site: nothing was done.' });
    return form;
  }

  /** What even the page of an error cannot tell ends this connection, and not the process. */
  function by(work: (call: Call) => Promise<void>): (request: FastifyRequest, reply: FastifyReply) => void {
    return (request, reply) =>
      void serve(request, reply, work).catch((error) => {
        context.report({ requestId: request.id, path: request.url, error }, 'a page of the portal could not be answered');
        request.raw.destroy();
      });
  }

  mountFiles(app, context, '/portal', [STYLE]);
  for (const page of PAGES) {
    app.get(
      page.path,
      by((call) => show(call, page)),
    );
    if (page.acts !== undefined)
      app.post(
        page.path,
        by((call) => act(call, page)),
      );
  }
  app.post('/sign-in', by(signIn));
  app.post('/sign-out', by(leave));
}

const titleOf = ({ httpStatus }: Refusal): string =>
  httpStatus === 404 ? 'Not found' : httpStatus === 403 ? 'Not allowed' : 'Not now';

/** @throws Refusal rate_limited */
async function take(call: Call, counted: Counted): Promise<void> {
  call.counted = counted;
  const refused = await takeCall(counted, call.context.now());
  if (refused !== null) throw refused;
}

/** Counts a call of somebody who is not signed in. @throws Refusal rate_limited */
const takeAnonymous = (call: Call): Promise<void> =>
  take(call, { limiter: call.context.anonymous, key: addressKey(call.request.ip) } as Counted);

/** @throws Refusal invalid_request: the form is of another session, or of none */
function checkFormToken(form: Form, { formToken }: PortalSession): void {
  const [sent, own] = [Buffer.from(form.get('form_token') ?? ''), Buffer.from(formToken)];
  if (sent.length !== own.length || !timingSafeEqual(sent, own))
    throw new Refusal('invalid_request', { message: 'This page was of another session: nothing was done. Open it again.' });
}

const queryNext = (request: FastifyRequest): string | null => new URLSearchParams(request.url.split('?')[1] ?? '').get('next');

/** A path of this portal, as it may stand in a header; anything else, such as another host, is the first page. */
function ownPath(path: string | null): string {
  const isOurs = path !== null && /^[!-~]+$/.test(path) && portalMethods(path.split('?')[0] as string) !== undefined;
  return isOurs ? path : '/';
}

function answer(call: Call, page: string): void {
  const { context, request, reply, counted } = call;
  context.sign(request, reply);
  counted.limiter.describe(reply, counted.key, context.now());
  reply.headers(HEADERS).send(page);
}

/** Answers with a page that says what was refused. */
function refuse(call: Call, refusal: Refusal, page: string): void {
  const { httpStatus, retryAfterSeconds } = refusal;
  call.reply.code(httpStatus);
  if (retryAfterSeconds !== null) call.reply.header('retry-after', String(retryAfterSeconds));
  answer(call, page);
}

/** To a page of ours, by GET (RFC 9110 §15.4.4). */
function redirect(call: Call, path: string): void {
  call.reply.code(303).header('location', `${call.base}${path}`);
  answer(call, '');
}
