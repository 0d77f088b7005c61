// What stands around every page of the portal.
import { type Html, html, htmlPage } from '../html.ts';
import { pageFile } from '../page-files.ts';
import { input } from './parts.ts';
import type { Refused, Shown, Visit } from './visit.ts';

/** What the pages load. */
export const STYLE = pageFile('portal', 'css');

/** The pages that every other one leads to. */
export const PLACES = [
  ['/', 'Overview'],
  ['/transactions', 'Payments'],
  ['/balances', 'Balances'],
  ['/payouts', 'Payouts'],
  ['/settings', 'Settings'],
  ['/webhooks', 'Webhooks'],
] as const;

/** Where a page stands. */
type Around = Pick<Visit, 'base' | 'context'>;

/** What stands around the pages of somebody who is signed in. */
export type Frame = {
  readonly places: readonly (readonly [path: string, name: string])[];
  /** The place that the page belongs to. */
  readonly under: string;
  /** Who is signed in. */
  readonly user: Html;
  readonly formToken: string;
  /** Where signing out is sent. */
  readonly leave: string;
};

/** The page of a user. */
export const userPath = (username: string): string => `/settings/users/${encodeURIComponent(username)}`;

/** A page of the portal. @param under the place that it belongs to */
export function framed(visit: Visit, under: string, shown: Shown): string {
  const { username, formToken } = visit.session;
  // also where nothing else may be seen
  const user = html`<a class="user" href="${visit.base}${userPath(username)}">${username}</a>`;
  return framedBy(visit, { places: PLACES, under, user, formToken, leave: '/sign-out' }, shown);
}

/** A page within its frame. */
export function framedBy(around: Around, { places, under, user, formToken, leave }: Frame, { title, body }: Shown): string {
  const { base } = around;
  return whole(
    around,
    title,
    html`<header><p class="name">Bursar</p>
<nav aria-label="Pages"><ul>${places.map(([path, name]) => html`<li><a href="${base}${path}"${path === under && html` aria-current="page"`}>${name}</a></li>`)}</ul></nav>
<form method="post" action="${base}${leave}"><input type="hidden" name="form_token" value="${formToken}">${user} <button>Sign out</button></form>
</header>
<main><h1>${title}</h1>
${body}
</main>`,
  );
}

/** Where nobody is signed in. @param next the path to show after signing in */
export function signInPage(around: Around, next: string, refused: Refused | null): string {
  return whole(
    around,
    'Sign in',
    html`<main class="narrow"><h1>Sign in to Bursar</h1>
<form method="post" action="${around.base}/sign-in">
<input type="hidden" name="next" value="${next}">
${refused !== null && html`<p class="wrong" role="alert">${refused.refusal.message}</p>`}
${input({ name: 'username', label: 'Username', required: true }, refused)}
${input({ name: 'password', label: 'Password', type: 'password', required: true }, refused)}
<button class="main">Sign in</button>
</form>
<p class="note">For programs: the <a href="${around.base}/docs">API reference</a>.</p>
</main>`,
  );
}

/** Where an operator is not signed in. */
export function codePage(around: Around, command: string, refused: Refused | null): string {
  return whole(
    around,
    'Operator',
    html`<main class="narrow"><h1>Operator console</h1>
<p>On the machine of the service, <code>${command}</code> makes a code that opens this console.</p>
<form method="post" action="${around.base}/ops/sign-in">
${input({ name: 'code', label: 'Code', required: true }, refused)}
<button class="main">Open</button>
</form>
</main>`,
  );
}

/** A page that says why there is no other. @param of.home where it leads */
export function errorPage(around: Around, of: { readonly title: string; readonly text: string; readonly home: string }): string {
  const { title, text, home } = of;
  return whole(
    around,
    title,
    html`<main class="narrow"><h1>${title}</h1><p>${text}</p><p><a href="${around.base}${home}">Overview</a></p></main>`,
  );
}

function whole({ base, context }: Around, title: string, content: Html): string {
  const body = html`<body>
${context.sandbox !== null && html`<aside class="sandbox" aria-label="Sandbox">Sandbox: test data, no real money</aside>`}
${content}
</body>`;
  const head = html`<meta name="robots" content="noindex">`;
  return htmlPage({ title: `${title} · Bursar`, style: `${base}/portal/${STYLE.name}`, head }, body);
}
