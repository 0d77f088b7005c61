// The first page: what the merchant has, what waits for a decision, and what came last.
import { html } from '../pages/html.ts';
import { balanceTable } from './balances.ts';
import { link } from './parts.ts';
import { payoutTable } from './payouts.ts';
import { transactionTable } from './transactions.ts';
import type { Page, Visit } from './visit.ts';

const LAST = 10;

export const OVERVIEW: Page = {
  path: '/',
  under: '/',
  async show(visit) {
    const [account, waiting, last, payouts, settings] = await Promise.all([
      visit.ask('getAccountInfo'),
      visit.ask('listTransactions', { status: 'review', limit: LAST }),
      visit.ask('listTransactions', { limit: LAST }),
      visit.ask('listPayouts', { limit: LAST / 2 }),
      visit.ask('getPayoutSettings'),
    ]);
    const { business_name: name, email } = account.account;
    const body = html`<p class="note">${name} · ${email}</p>
${last.data.length === 0 && firstSteps(visit)}
${
  (waiting.data.length > 0 || settings.settings.paused) &&
  html`<section class="attention"><h2>Needs your attention</h2>
${settings.settings.paused && html`<p>Automatic payouts rest: ${settings.settings.paused_reason}. ${link(visit, '/settings/payouts', 'Settings of payouts')}</p>`}
${waiting.data.length > 0 && transactionTable(visit, 'Payments to review', waiting.data, '')}
</section>`
}
<section><h2>Available balances</h2>
${balanceTable(visit, account.balances)}
${settings.settings.method === null && html`<p class="note">Nothing is paid out by itself: ${link(visit, '/settings/payouts', 'say where to')}, or ${link(visit, '/payouts/new', 'request a payout')}.</p>`}
</section>
<section><h2>Last payments</h2>
${transactionTable(visit, 'Last payments', last.data, 'There is no payment yet.')}
</section>
<section><h2>Last payouts</h2>
${payoutTable(visit, 'Last payouts', payouts.data, 'There is no payout yet.')}
</section>`;
    return { title: 'Overview', body };
  },
};

function firstSteps(visit: Visit) {
  return html`<section class="attention"><h2>First steps</h2>
<ol><li>${link(visit, '/transactions/new', 'Ask for a first payment')} and open its page for the customer.</li>
<li>${link(visit, '/webhooks', 'Say where events are sent')}, if your server wants to be told.</li>
<li>${link(visit, '/settings/payouts', 'Say where the money goes')}.</li>
<li>Call the API from your server: its <a href="${visit.base}/docs">reference</a>.</li></ol></section>`;
}
