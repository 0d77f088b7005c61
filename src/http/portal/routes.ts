// The routes of the portal, for a merchant's people: pages that the server writes, without a script. Who is signed in is known by a cookie; a form does
// something only where a page of the same session made it.
import type { FastifyInstance } from 'fastify';
import { Refusal, type RefusalCode } from '../../core/refusal.ts';
import { type PortalSession, readPortalSession, sessionTokenFor } from '../../flow/sign-in/portal-sessions.ts';
import { signOut } from '../../flow/sign-in/sign-in.ts';
import type { UnknownKeys } from '../../flow/sign-in/token-pair.ts';
import { answer, createServe, type PageRequest, redirect, refuse, takeAnonymous, titleOf } from '../pages/calls.ts';
import { mountFiles } from '../pages/files.ts';
import { checkFormToken, readOwnForm } from '../pages/forms.ts';
import { type Refused, STYLE, STYLE_AT } from '../pages/frame.ts';
import { html } from '../pages/html.ts';
import { withQuery } from '../pages/parts.ts';
import { presentedSession, sessionCookie } from '../pages/session-cookie.ts';
import type { Limiter } from '../rate-limit.ts';
import type { ServerContext } from '../server-context.ts';
import { BALANCE, BALANCES, ENTRIES_FILE } from './balances.ts';
import { portalPage, signInPage } from './frame.ts';
import { createListFiles, type ListFile } from './list-files.ts';
import { OVERVIEW } from './overview.ts';
import { queryOf } from './parts.ts';
import { NEW_PAYOUT, PAYOUT, PAYOUTS, PAYOUTS_FILE } from './payouts.ts';
import { PAYOUT_SETTINGS, SETTINGS } from './settings.ts';
import { TRANSACTION } from './transaction.ts';
import { NEW_TRANSACTION, TRANSACTIONS, TRANSACTIONS_FILE } from './transactions.ts';
import { USER, USERS } from './users.ts';
import { accessTokenFor, createVisit, type Operations, type Page, type Visit } from './visit.ts';
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
  USERS,
  USER,
  WEBHOOKS,
];
const FILES: readonly ListFile[] = [TRANSACTIONS_FILE, PAYOUTS_FILE, ENTRIES_FILE];

/** The refusals about a form's key, for somebody who has never seen one. */
const ABOUT_KEYS: Partial<Readonly<Record<RefusalCode, string>>> = {
  request_in_progress:
    'This form was sent before and is still being worked on. Send it again in a moment: what was done is not done twice.',
  idempotency_conflict:
    'This form was sent before with other values, and that was done. Look at it before you send this one too.',
};

/** The methods of the portal's pages by path; undefined for a path that is none of them. */
export function portalMethods(path: string): string | undefined {
  if (path === '/sign-in' || path === '/sign-out') return 'GET, HEAD, POST';
  const isOf = (one: Page | ListFile): boolean => new RegExp(`^${one.path.replace(':id', '[^/]+')}$`).test(path);
  if (FILES.some(isOf)) return 'GET, HEAD';
  const page = PAGES.find((one) => one.path === path) ?? PAGES.find(isOf);
  if (page === undefined) return undefined;
  return page.acts === undefined ? 'GET, HEAD' : 'GET, HEAD, POST';
}

/** Mounts the portal. @param of.operations what its pages call @param of.limiter counts pages by address */
export function mountPortal(
  app: FastifyInstance,
  context: ServerContext,
  { operations, limiter }: { readonly operations: Operations; readonly limiter: Limiter<string> },
): void {
  const unknown: UnknownKeys = new Map();
  const serve = createServe(context, { limiter, home: '/' });
  const writeFile = createListFiles();

  async function show(call: PageRequest, page: Page): Promise<void> {
    const session = await sessionOf(call);
    if (session === null) return showSignIn(call, page);
    const visit = visitOf(call, session);
    await showPage(call, visit, page, null);
  }

  async function sendFile(call: PageRequest, file: ListFile): Promise<void> {
    const session = await sessionOf(call);
    if (session === null) {
      await takeAnonymous(call);
      return redirect(call, withQuery('/', { next: file.under }));
    }
    await writeFile(call, visitOf(call, session), file);
  }

  async function act(call: PageRequest, page: Page): Promise<void> {
    const form = await readOwnForm(call);
    if (form === null) return;
    const session = await sessionOf(call);
    if (session === null) return showSignIn(call, page);
    checkFormToken(form, session);
    const visit = visitOf(call, session);
    const { acts = {} } = page;
    const name = form.get('do') ?? '';
    const doing = Object.hasOwn(acts, name) ? acts[name] : undefined;
    if (doing === undefined) throw new Refusal('invalid_request', { message: 'This page has no such form.', param: 'do' });
    try {
      call.isUnderWay = true;
      const shown = await doing(visit, form);
      if (typeof shown === 'string') redirect(call, shown);
      else answer(call, portalPage(visit, page.under, shown));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (hasEnded(error)) return showSignIn(call, page);
      const message = ABOUT_KEYS[error.code];
      const refusal = message === undefined ? error : new Refusal(error.code, { message });
      await showPage(call, visit, page, { refusal, form });
    }
  }

  async function showPage(call: PageRequest, visit: Visit, page: Page, refused: Refused | null): Promise<void> {
    try {
      const written = portalPage(visit, page.under, await page.show(visit, refused));
      if (refused === null) answer(call, written);
      else refuse(call, refused.refusal, written);
    } catch (error) {
      // the page itself cannot be seen, but the others may be
      if (!(error instanceof Refusal)) throw error;
      refuse(call, error, portalPage(visit, page.under, { title: titleOf(error), body: html`<p>${error.message}</p>` }));
    }
  }

  function readSession(call: PageRequest, token: string): Promise<PortalSession> {
    return readPortalSession(context.ctx, token, { admit: () => takeAnonymous(call), unknown });
  }
  function visitOf(call: PageRequest, session: PortalSession): Visit {
    return createVisit(call, operations, { session, again: () => readSession(call, session.token) });
  }

  /** The session that the browser shows; null where it shows none that counts. */
  async function sessionOf(call: PageRequest): Promise<PortalSession | null> {
    const token = presentedSession(call.request, 'bursar');
    if (token === null) return null;
    try {
      const session = await readSession(call, token);
      if (session.token !== token) call.reply.header('set-cookie', sessionCookie(call.request, 'bursar', session.token));
      return session;
    } catch (error) {
      if (error instanceof Refusal && hasEnded(error)) return null;
      throw error;
    }
  }

  async function showSignIn(call: PageRequest, page: Page): Promise<void> {
    await takeAnonymous(call);
    const { request } = call;
    if (page === OVERVIEW) answer(call, signInPage(call, ownPath(queryOf(call).get('next')), null));
    // what a form had is typed again
    else redirect(call, withQuery('/', { next: request.method === 'POST' ? request.url.split('?')[0] : request.url }));
  }

  async function signIn(call: PageRequest): Promise<void> {
    const form = await readOwnForm(call);
    if (form === null) return;
    const next = ownPath(form.get('next'));
    try {
      const credentials = { username: form.get('username') ?? '', password: form.get('password') ?? '' };
      const accessToken = await accessTokenFor(operations, call, credentials);
      call.reply.header('set-cookie', sessionCookie(call.request, 'bursar', sessionTokenFor(context.ctx, accessToken)));
      redirect(call, next);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuse(call, error, signInPage(call, next, { refusal: error, form }));
    }
  }

  async function leave(call: PageRequest): Promise<void> {
    const form = await readOwnForm(call);
    if (form === null) return;
    const session = await sessionOf(call);
    if (session !== null) {
      checkFormToken(form, session);
      await signOut(context.ctx, { signInId: session.caller.signInId });
    }
    call.reply.header('set-cookie', sessionCookie(call.request, 'bursar', null));
    redirect(call, '/');
  }

  mountFiles(app, context, STYLE_AT, [STYLE]);
  for (const page of PAGES) {
    const shows = serve((call) => show(call, page));
    app.get(page.path, shows);
    const acts = serve((call) => act(call, page));
    if (page.acts !== undefined) app.post(page.path, acts);
  }
  for (const file of FILES) {
    const sends = serve((call) => sendFile(call, file));
    app.get(file.path, sends);
  }
  app.post('/sign-in', serve(signIn));
  app.post('/sign-out', serve(leave));
  // a page that was refused stands there, and can be opened again by its address
  const toFirst = serve(async (call) => redirect(call, '/'));
  for (const path of ['/sign-in', '/sign-out']) app.get(path, toFirst);
}

const hasEnded = ({ code }: Refusal): boolean => code === 'invalid_token' || code === 'token_expired';

/** A path of this portal, as it may stand in a header; anything else, such as another host, is the first page. */
function ownPath(path: string | null): string {
  const isOurs = path !== null && /^[!-~]+$/.test(path) && portalMethods(path.split('?')[0] as string) !== undefined;
  return isOurs ? path : '/';
}
