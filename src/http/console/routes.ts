// The routes of the operator's console: pages that only show. Who may see them is known by a code from the service's machine, and then by a cookie.
import type { FastifyInstance } from 'fastify';
import { Refusal } from '../../core/refusal.ts';
import { createOperatorSignIn, type OperatorSession } from '../../flow/sign-in/operator-sessions.ts';
import { answer, createServe, type PageRequest, redirect, refuse, takeAnonymous } from '../pages/calls.ts';
import { checkFormToken, readOwnForm } from '../pages/forms.ts';
import { type Around, framed, type Refused, unframed } from '../pages/frame.ts';
import { html } from '../pages/html.ts';
import { input } from '../pages/parts.ts';
import { presentedSession, sessionCookie } from '../pages/session-cookie.ts';
import type { Limiter } from '../rate-limit.ts';
import type { ServerContext } from '../server-context.ts';
import { CONSOLE_PAGES, type ConsolePage } from './pages.ts';

/** What makes the code. */
const COMMAND = 'npm run bursar -- console';
const COOKIE = 'bursar_operator';
const PLACES = CONSOLE_PAGES.map(({ path, name }) => [path, name] as const);

/** The methods of the console's pages by path; undefined for a path that is none of them. */
export function consoleMethods(path: string): string | undefined {
  if (path === '/ops/sign-in' || path === '/ops/sign-out') return 'POST';
  return CONSOLE_PAGES.some((page) => page.path === path) ? 'GET, HEAD' : undefined;
}

/** Mounts the console; its styles are the portal's. @param limiter counts pages by address */
export function mountConsole(app: FastifyInstance, context: ServerContext, limiter: Limiter<string>): void {
  const serve = createServe(context, { limiter, home: '/ops' });
  const operators = createOperatorSignIn(context.ctx);

  function sessionOf({ request, reply }: PageRequest): OperatorSession | null {
    const token = presentedSession(request, COOKIE);
    const session = token === null ? null : operators.read(token);
    if (session !== null) reply.header('set-cookie', sessionCookie(request, COOKIE, session.token));
    return session;
  }

  async function show(call: PageRequest, page: ConsolePage): Promise<void> {
    const session = sessionOf(call);
    if (session === null) {
      await takeAnonymous(call);
      return answer(call, codePage(call, null));
    }
    const frame = {
      places: PLACES,
      under: page.path,
      user: html`<span class="user">operator</span>`,
      formToken: session.formToken,
      leave: '/ops/sign-out',
    };
    answer(call, framed(call, frame, await page.show(context.ctx)));
  }

  async function open(call: PageRequest): Promise<void> {
    await takeAnonymous(call);
    const form = await readOwnForm(call);
    if (form === null) return;
    try {
      const { token } = operators.open((form.get('code') ?? '').trim());
      call.reply.header('set-cookie', sessionCookie(call.request, COOKIE, token));
      redirect(call, '/ops');
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuse(call, error, codePage(call, { refusal: error, form }));
    }
  }

  async function leave(call: PageRequest): Promise<void> {
    const form = await readOwnForm(call);
    if (form === null) return;
    const session = sessionOf(call);
    if (session !== null) checkFormToken(form, session);
    call.reply.header('set-cookie', sessionCookie(call.request, COOKIE, null));
    redirect(call, '/ops');
  }

  for (const page of CONSOLE_PAGES) {
    const shows = serve((call) => show(call, page));
    app.get(page.path, shows);
  }
  app.post('/ops/sign-in', serve(open));
  app.post('/ops/sign-out', serve(leave));
}

/** Where an operator is not signed in. */
function codePage(around: Around, refused: Refused | null): string {
  const body = html`<h1>Operator console</h1>
<p>On the machine of the service, <code>${COMMAND}</code> makes a code that opens this console.</p>
<form method="post" action="${around.base}/ops/sign-in">
${input({ name: 'code', label: 'Code', required: true }, refused)}
<button class="main">Open</button>
</form>`;
  return unframed(around, { title: 'Operator', body });
}
