// What stands around every page of the portal, and the page where nobody is signed in.
import { type Around, framed, type Refused, type Shown, unframed } from '../pages/frame.ts';
import { html } from '../pages/html.ts';
import { input } from '../pages/parts.ts';
import type { Visit } from './visit.ts';

/** The pages that every other one leads to. */
const PLACES = [
  ['/', 'Overview'],
  ['/transactions', 'Payments'],
  ['/balances', 'Balances'],
  ['/payouts', 'Payouts'],
  ['/settings', 'Settings'],
  ['/webhooks', 'Webhooks'],
] as const;

/** The page of a user. */
export const userPath = (username: string): string => `/settings/users/${encodeURIComponent(username)}`;

/** A page of the portal. @param under the place that it belongs to */
export function portalPage(visit: Visit, under: string, shown: Shown): string {
  const { username, formToken } = visit.session;
  // also where nothing else may be seen
  const user = html`<a class="user" href="${visit.base}${userPath(username)}">${username}</a>`;
  return framed(visit, { places: PLACES, under, user, formToken, leave: '/sign-out' }, shown);
}

/** Where nobody is signed in. @param next the path to show after signing in */
export function signInPage(around: Around, next: string, refused: Refused | null): string {
  const body = html`<h1>Sign in to Bursar</h1>
<form method="post" action="${around.base}/sign-in">
<input type="hidden" name="next" value="${next}">
${refused !== null && html`<p class="wrong" role="alert">${refused.refusal.message}</p>`}
${input({ name: 'username', label: 'Username', required: true }, refused)}
${input({ name: 'password', label: 'Password', type: 'password', required: true }, refused)}
<button class="main">Sign in</button>
</form>
<p class="note">For programs: the <a href="${around.base}/docs">API reference</a>.</p>`;
  return unframed(around, { title: 'Sign in', body });
}
