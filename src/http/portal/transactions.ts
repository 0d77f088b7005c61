// The list of payments that were asked for, and the form that asks for one.
import { CURRENCIES, PAYMENT_METHODS } from '../../core/currency.ts';
import { type Form, typed } from '../pages/forms.ts';
import { type Html, html } from '../pages/html.ts';
import { input, moment, money, table, withQuery } from '../pages/parts.ts';
import { days, filterOf, shownIn } from './filters.ts';
import { listFile } from './list-files.ts';
import { fileLink, form, lacks, link, queryOf } from './parts.ts';
import { TRANSACTION_CHOICES, transactionBadge } from './states.ts';
import type { Page, ReplyOf, Visit } from './visit.ts';

type Listed = ReplyOf<'listTransactions'>['data'];

const METHODS = PAYMENT_METHODS.map((code) => [code, CURRENCIES[code].name] as const);
const FILTERS = ['status', 'crypto_selected', 'label'] as const;

/** A row for each, the newest first as they were listed. @param empty what is said where there is none */
export function transactionTable(visit: Visit, caption: string, listed: Listed, empty: Html | string): Html {
  const rows = listed.map((one) => [
    link(visit, `/transactions/${one.transaction_id}`, moment(one.created_at)),
    transactionBadge(one),
    one.label ?? '–',
    money(one.usd_amount, 'USD'),
    money(one.crypto_amount, one.crypto_selected),
    money(one.crypto_received, one.crypto_selected),
  ]);
  return table(caption, ['Created', 'Status', 'Label', 'Price', 'Asked for', 'Received'], rows, empty);
}

export const TRANSACTIONS: Page = {
  path: '/transactions',
  under: '/transactions',
  async show(visit) {
    const query = queryOf(visit);
    const shown = shownIn(query, FILTERS);
    const { data, has_more: hasMore } = await visit.ask('listTransactions', {
      ...filterOf(query, FILTERS),
      starting_after: typed(query, 'after'),
    });
    const isFiltered = Object.values(shown).some((value) => value !== undefined);
    const none = isFiltered
      ? html`No payment matches. ${link(visit, '/transactions', 'Show all')}`
      : html`There is no payment yet. ${link(visit, '/transactions/new', 'Ask for one')}`;
    const older = withQuery('/transactions', { ...shown, after: data.at(-1)?.transaction_id });
    const body = html`<p>${link(visit, '/transactions/new', 'New payment')}</p>
${filters(query)}
${transactionTable(visit, 'Payments', data, none)}
<p>${hasMore && link(visit, older, 'Older payments')}</p>
${data.length > 0 && fileLink(visit, withQuery(TRANSACTIONS_FILE.path, shown))}`;
    return { title: 'Payments', body };
  },
};

export const TRANSACTIONS_FILE = listFile('listTransactions', {
  path: '/transactions.csv',
  under: '/transactions',
  name: () => 'payments',
  filter: (visit) => filterOf(queryOf(visit), FILTERS),
  columns: [
    ...['transaction_id', 'created_at', 'confirmed_at', 'status', 'label', 'usd_amount', 'exchange_rate', 'crypto_selected'],
    ...['crypto_amount', 'crypto_received', 'confirmations', 'wallet_address'],
  ] as const,
  idOf: ({ transaction_id: id }) => id,
});

/** What is shown stands in the address, and nowhere else. */
function filters(query: Form): Html {
  return html`<form method="get" class="filters">
${input({ name: 'status', label: 'Status', value: query.get('status'), choices: [['', 'Any'], ...TRANSACTION_CHOICES] }, null)}
${input({ name: 'crypto_selected', label: 'Paid with', value: query.get('crypto_selected'), choices: [['', 'Any'], ...METHODS] }, null)}
${input({ name: 'label', label: 'Label', value: query.get('label') }, null)}
${days(query)}
<button>Show</button>
</form>`;
}

export const NEW_TRANSACTION: Page = {
  path: '/transactions/new',
  under: '/transactions',
  async show(visit, refused) {
    const inputs = [
      { name: 'amount', label: 'Price in USD', hint: 'Such as 25.00', required: true },
      { name: 'crypto_selected', label: 'Paid with', choices: METHODS },
      { name: 'label', label: 'Label', hint: 'Your own reference; the customer sees it.' },
      { name: 'email', label: "Customer's e-mail", type: 'email' as const },
    ];
    const body = visit.has('payments')
      ? form(visit, { act: 'create', button: 'Ask for the payment', inputs, refused })
      : lacks('payments');
    return { title: 'New payment', body };
  },
  acts: {
    async create(visit, sent) {
      const fields = ['amount', 'crypto_selected', 'label', 'email'].map((name) => [name, typed(sent, name)]);
      const made = await visit.ask('createTransaction', { ...Object.fromEntries(fields), idempotency_key: sent.get('key') });
      return `/transactions/${made.transaction_id}`;
    },
  },
};
