// Where events are sent, and the last of them.
import { EVENT_TYPES } from '../../core/events.ts';
import { typed } from '../pages/forms.ts';
import type { Refused, Shown } from '../pages/frame.ts';
import { type Html, html } from '../pages/html.ts';
import { moment, table } from '../pages/parts.ts';
import { form, lacks, link } from './parts.ts';
import type { Page, Visit } from './visit.ts';

export const WEBHOOKS: Page = {
  path: '/webhooks',
  under: '/webhooks',
  async show(visit, refused) {
    const [{ data }, events] = await Promise.all([
      visit.ask('listWebhooks', { limit: 100 }),
      visit.ask('listEvents', { limit: 20 }),
    ]);
    const rows = data.map((one) => [
      html`<code>${one.url}</code>`,
      one.enabled ? 'on' : 'off: its server asked for no more',
      one.events.length === EVENT_TYPES.length ? 'all' : one.events.join(', '),
      moment(one.created_at),
      visit.has('payments') && buttons(visit, one.id, refused),
    ]);
    const last = events.data.map((one) => [moment(one.created_at), one.type, html`<code>${one.id}</code>`]);
    const body = html`${table('Webhooks', ['Address', 'State', 'Events', 'Made', 'Change'], rows, 'Events are sent nowhere.')}
<h2>New webhook</h2>
${visit.has('payments') ? form(visit, { act: 'create', button: 'Send events there', inputs: [{ name: 'url', label: 'Address', required: true }], refused }) : lacks('payments')}
<h2>Last events</h2>
${table('Last events', ['When', 'What', 'Identifier'], last, 'Nothing has happened yet.')}`;
    return { title: 'Webhooks', body };
  },
  acts: {
    async create(visit, sent) {
      const { webhook } = await visit.ask('createWebhook', { url: typed(sent, 'url'), idempotency_key: sent.get('key') });
      return withSecret(visit, webhook);
    },
    async rotate(visit, sent) {
      const asked = { webhook_id: sent.get('webhook_id'), idempotency_key: sent.get('key') };
      return withSecret(visit, (await visit.ask('rotateWebhookSecret', asked)).webhook);
    },
    async remove(visit, sent) {
      await visit.ask('deleteWebhook', { webhook_id: sent.get('webhook_id'), idempotency_key: sent.get('key') });
      return '/webhooks';
    },
  },
};

/** A secret is shown once. */
function withSecret(visit: Visit, { url, secret }: { readonly url: string; readonly secret: string }): Shown {
  const body = html`<p>Events are signed for <code>${url}</code> with this secret (Standard Webhooks). It is shown only now.</p>
<p><code class="secret">${secret}</code></p>
<p>${link(visit, '/webhooks', 'Webhooks')}</p>`;
  return { title: 'Secret of the webhook', body };
}

function buttons(visit: Visit, id: string, refused: Refused | null): Html {
  const mine = refused?.form.get('webhook_id') === id ? refused : null;
  const hidden = { webhook_id: id };
  return html`${form(visit, { act: 'rotate', button: 'New secret', hidden, refused: mine })}
${form(visit, { act: 'remove', button: 'Delete', hidden, refused: mine, isDangerous: true })}`;
}
