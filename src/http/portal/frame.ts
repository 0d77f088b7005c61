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

/** A page of somebody who is signed in. @param under the place that it belongs to */
export function framed(visit: Visit, under: string, { title, body }: Shown): string {
  const { base } = visit;
  const { username, formToken } = visit.session;
  return whole(
    visit,
    title,
    html`<header><p class="name">Bursar</p>
<nav aria-label="Pages"><ul>${PLACES.map(([path, name]) => html`<li><a href="${base}${path}"${path === under && html` aria-current="page"`}>${name}</a></li>`)}</ul></nav>
<form method="post" action="${base}/sign-out"><input type="hidden" name="form_token" value="${formToken}"><span class="user">${username}</span> <button>Sign out</button></form>
</header>
<main><h1>${title}</h1>
${body}
</main>`,
  );
}

type Around = Pick<Visit, 'base' | 'context'>;

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

/** A page that says why there is no other. */
export function errorPage(around: Around, title: string, text: string): string {
  return whole(
    around,
    title,
    html`<main class="narrow"><h1>${title}</h1><p>${text}</p><p><a href="${around.base}/">Overview</a></p></main>`,
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
