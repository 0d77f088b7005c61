// What the pages of the portal are made of besides: links, and forms that do something once.
import { randomBytes } from 'node:crypto';
import type { Scope } from '../../core/credentials.ts';
import { isRemembered } from '../../flow/idempotency.ts';
import type { Refused } from '../pages/frame.ts';
import { type Html, html } from '../pages/html.ts';
import { type Input, input } from '../pages/parts.ts';
import type { Visit } from './visit.ts';

/** To a page of ours. @param path without what a proxy has put before it */
export const link = (visit: Visit, path: string, text: Html | string): Html => html`<a href="${visit.base}${path}">${text}</a>`;

/** To a file of what a page shows, all of it. */
export const fileLink = (visit: Visit, path: string): Html => html`<p>${link(visit, path, 'Download all as CSV')}</p>`;

/** The parameters of this request's address. */
export const queryOf = ({ request }: Pick<Visit, 'request'>): URLSearchParams =>
  new URLSearchParams(request.url.split('?')[1] ?? '');

/** Typed again before money leaves. */
export const PASSWORD: Input = { name: 'password', label: 'Your password', type: 'password', required: true };

/**
 * The idempotency key of a form. One that was refused keeps its key: its first sending may still be under way, or be done although nobody knows, and is
 * not done again then. What is remembered of a key would be said for ever, so the next sending has another.
 */
function keyOf(refused: Refused | null): string {
  const sent = refused?.form.get('key') ?? null;
  const isUsable =
    sent !== null &&
    refused !== null &&
    !isRemembered(refused.refusal) &&
    refused.refusal.code !== 'idempotency_conflict' &&
    refused.refusal.param !== 'idempotency_key';
  return isUsable ? sent : randomBytes(16).toString('base64url');
}

/**
 * A form of the page that it stands on. Sent twice it does once what it does: it carries an idempotency key.
 * @param of.act what it does, as the page's `acts` name it
 */
export function form(
  visit: Visit,
  of: {
    readonly act: string;
    readonly button: string;
    readonly inputs?: readonly Input[];
    /** Fields that nobody types. */
    readonly hidden?: Readonly<Record<string, string>>;
    readonly refused?: Refused | null;
    readonly isDangerous?: boolean;
  },
): Html {
  const { act, button, inputs = [], hidden = {}, isDangerous = false } = of;
  const refused = of.refused?.form.get('do') === act ? of.refused : null;
  return html`<form method="post">
<input type="hidden" name="form_token" value="${visit.session.formToken}">
<input type="hidden" name="key" value="${keyOf(refused)}">
<input type="hidden" name="do" value="${act}">
${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
${refused !== null && html`<p class="wrong" role="alert">${refused.refusal.message}</p>`}
${inputs.map((one) => input(one, refused, act))}
<button${isDangerous && html` class="danger"`}>${button}</button>
</form>`;
}

/** For users who may not do it. */
export const lacks = (scope: Scope): Html =>
  html`<p class="note">This needs the scope <code>${scope}</code>, which your user lacks.</p>`;
