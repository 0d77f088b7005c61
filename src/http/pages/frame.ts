// What stands around the pages of people who are signed in, merchants' and the operator's.
import type { Refusal } from '../../core/refusal.ts';
import type { ServerContext } from '../server-context.ts';
import { pageFile } from './files.ts';
import type { Form } from './forms.ts';
import { type Html, html, htmlPage } from './html.ts';

/** What the pages load, and the folder of its address. */
export const STYLE = pageFile('pages', 'framed', 'css');
export const STYLE_AT = '/portal';

/** Where a page stands. @param base before every path of ours: where a proxy has put the service */
export type Around = { readonly base: string; readonly context: Pick<ServerContext, 'sandbox'> };
export type Shown = { readonly title: string; readonly body: Html };
/** What was sent and refused: the page is shown again with it. */
export type Refused = { readonly refusal: Refusal; readonly form: Form };

/** What stands around a page. */
export type Frame = {
  /** The pages that every other one leads to. */
  readonly places: readonly (readonly [path: string, name: string])[];
  /** The place that the page belongs to. */
  readonly under: string;
  /** Who is signed in. */
  readonly user: Html;
  readonly formToken: string;
  /** Where signing out is sent. */
  readonly leave: string;
};

/** A page within its frame. */
export function framed(around: Around, { places, under, user, formToken, leave }: Frame, { title, body }: Shown): string {
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

/** A page of one column without a frame, for who is not signed in. */
export function unframed(around: Around, { title, body }: Shown): string {
  return whole(around, title, html`<main class="narrow">${body}</main>`);
}

/** A page that says why there is no other. @param of.home where it leads */
export function errorPage(around: Around, of: { readonly title: string; readonly text: string; readonly home: string }): string {
  const { title, text, home } = of;
  const body = html`<h1>${title}</h1><p>${text}</p><p><a href="${around.base}${home}">Overview</a></p>`;
  return unframed(around, { title, body });
}

function whole({ base, context }: Around, title: string, content: Html): string {
  const body = html`<body>
${context.sandbox !== null && html`<aside class="sandbox" aria-label="Sandbox">Sandbox: test data, no real money</aside>`}
${content}
</body>`;
  const head = html`<meta name="robots" content="noindex">`;
  return htmlPage({ title: `${title} · Bursar`, style: `${base}${STYLE_AT}/${STYLE.name}`, head }, body);
}
