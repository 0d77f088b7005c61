// Payouts: the list, one of them, and the form that requests one.
import { CURRENCY_CODES } from '../../core/currency.ts';
import { PAYOUT_METHODS, PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { type Form, typed } from '../pages/forms.ts';
import type { Refused } from '../pages/frame.ts';
import { type Html, html } from '../pages/html.ts';
import { facts, input, moment, money, table, withQuery } from '../pages/parts.ts';
import { balanceTable } from './balances.ts';
import { days, filterOf, shownIn } from './filters.ts';
import { listFile } from './list-files.ts';
import { fileLink, form, lacks, link, PASSWORD, queryOf } from './parts.ts';
import { PAYOUT_CHOICES, payoutBadge } from './states.ts';
import type { Page, ReplyOf, Visit } from './visit.ts';

type Payout = ReplyOf<'checkPayout'>['payout'];

/** Names of the methods for people, with what a destination of each is. */
export const METHODS: Readonly<Record<Payout['method'], { readonly name: string; readonly destination: string }>> = {
  lightning: { name: 'Lightning', destination: 'a BOLT11 invoice, a Lightning address or an LNURL' },
  bitcoin: { name: 'Bitcoin', destination: 'a Bitcoin address' },
  ach: { name: 'Bank transfer (ACH)', destination: 'a bank account as ach:routing number:account number:checking or savings' },
  usdt: { name: PAYOUT_UNITS.usdt.code, destination: 'an Ethereum address' },
};
export const METHOD_CHOICES = PAYOUT_METHODS.map((method) => {
  const { code, minimum } = PAYOUT_UNITS[method];
  return [method, `${METHODS[method].name}, from ${minimum} ${code}`] as const;
});
export const DESTINATION_HINT = `${PAYOUT_METHODS.map((method) => `${METHODS[method].name}: ${METHODS[method].destination}`).join('. ')}.`;
const AMOUNT_HINT =
  'In the unit of the method, or: all. The network fee comes on top; the 1 % of a bank transfer is taken from the amount.';
const FILTERS = ['status', 'method'] as const;

/** Why a payout waits, in words. */
const WAITS: Readonly<Record<NonNullable<Payout['held_reason']>, string>> = {
  breaker: 'payouts are stopped until the operator has looked',
  receivable: 'the balance owes something',
  approval: 'it waits for approval',
  not_final: 'what it is paid from is not final yet',
  cool_down: 'its destination is new',
  unknown_outcome: 'its outcome is not known; the operator must find out',
};

/** A row for each, the newest first as they were listed. @param empty what is said where there is none */
export function payoutTable(visit: Visit, caption: string, listed: readonly Payout[], empty: Html | string): Html {
  const rows = listed.map((one) => [
    link(visit, `/payouts/${one.id}`, moment(one.created_at)),
    payoutBadge(one.status),
    METHODS[one.method].name,
    money(one.amount, PAYOUT_UNITS[one.method].code),
    money(one.fee, one.fee_currency),
    one.error ?? (one.held_reason === null ? '' : `waits: ${WAITS[one.held_reason]}`),
  ]);
  return table(caption, ['Requested', 'Status', 'Method', 'Amount', 'Fee', 'About'], rows, empty);
}

export const PAYOUTS: Page = {
  path: '/payouts',
  under: '/payouts',
  async show(visit) {
    const query = queryOf(visit);
    const shown = shownIn(query, FILTERS);
    const { data, has_more: hasMore } = await visit.ask('listPayouts', {
      ...filterOf(query, FILTERS),
      starting_after: typed(query, 'after'),
    });
    const older = withQuery('/payouts', { ...shown, after: data.at(-1)?.id });
    const body = html`<p>${link(visit, '/payouts/new', 'New payout')} · ${link(visit, '/settings/payouts', 'Automatic payouts')}</p>
${filters(query)}
${payoutTable(visit, 'Payouts', data, 'There is no such payout.')}
<p>${hasMore && link(visit, older, 'Older payouts')}</p>
${data.length > 0 && fileLink(visit, withQuery(PAYOUTS_FILE.path, shown))}`;
    return { title: 'Payouts', body };
  },
};

export const PAYOUTS_FILE = listFile('listPayouts', {
  path: '/payouts.csv',
  under: '/payouts',
  name: () => 'payouts',
  filter: (visit) => filterOf(queryOf(visit), FILTERS),
  columns: [
    ...(['id', 'created_at', 'completed_at', 'status', 'method', 'amount'] as const),
    ['amount_currency', ({ method }) => PAYOUT_UNITS[method].code],
    ...(['fee', 'fee_currency', 'destination', 'txid', 'payment_hash', 'trace', 'held_reason', 'error'] as const),
  ],
  idOf: ({ id }) => id,
});

function filters(query: Form): Html {
  const names = PAYOUT_METHODS.map((method) => [method, METHODS[method].name] as const);
  return html`<form method="get" class="filters">
${input({ name: 'status', label: 'Status', value: query.get('status'), choices: [['', 'Any'], ...PAYOUT_CHOICES] }, null)}
${input({ name: 'method', label: 'Method', value: query.get('method'), choices: [['', 'Any'], ...names] }, null)}
${days(query)}
<button>Show</button>
</form>`;
}

export const PAYOUT: Page = {
  path: '/payouts/:id',
  under: '/payouts',
  async show(visit, refused) {
    const { payout } = await visit.ask('checkPayout', { payout_id: visit.id });
    const { code } = PAYOUT_UNITS[payout.method];
    const body = html`<p class="status">${payoutBadge(payout.status)}</p>
${facts([
  ['Method', METHODS[payout.method].name],
  ['Amount', money(payout.amount, code)],
  ['Fee', html`${money(payout.fee, payout.fee_currency)}${payout.method === 'ach' && ', taken from the amount'}`],
  ['To', payout.destination !== null && html`<code>${payout.destination}</code>`],
  ['Waits', payout.held_reason !== null && WAITS[payout.held_reason]],
  ['Failed', payout.error],
  ['Transaction', payout.txid != null && html`<code>${payout.txid}</code>`],
  ['Payment hash', payout.payment_hash != null && html`<code>${payout.payment_hash}</code>`],
  ['Trace number', payout.trace ?? null],
  ['Requested', moment(payout.created_at)],
  ['Completed', payout.completed_at !== null && moment(payout.completed_at)],
  ['Identifier', html`<code>${payout.id}</code>`],
])}
${payout.status === 'pending' && (visit.has('payouts') ? form(visit, { act: 'cancel', button: 'Cancel this payout', refused, isDangerous: true }) : lacks('payouts'))}`;
    return { title: `Payout of ${payout.amount} ${code}`, body };
  },
  acts: {
    async cancel(visit, sent) {
      await visit.ask('cancelPayout', { payout_id: visit.id, idempotency_key: sent.get('key') });
      return `/payouts/${visit.id}`;
    },
  },
};

export const NEW_PAYOUT: Page = {
  path: '/payouts/new',
  under: '/payouts',
  async show(visit, refused) {
    if (!visit.has('payouts')) return { title: 'New payout', body: lacks('payouts') };
    const { balances } = await visit.ask('getAccountInfo');
    return { title: 'New payout', body: html`${balanceTable(visit, balances)}${request(visit, refused)}` };
  },
  acts: {
    async request(visit, sent) {
      await visit.confirm(sent);
      const fields = ['method', 'amount', 'destination', 'source_currency'].map((name) => [name, typed(sent, name)]);
      const { payout } = await visit.ask('requestPayout', { ...Object.fromEntries(fields), idempotency_key: sent.get('key') });
      return `/payouts/${payout.id}`;
    },
  },
};

function request(visit: Visit, refused: Refused | null): Html {
  const inputs = [
    { name: 'method', label: 'Method', choices: METHOD_CHOICES },
    { name: 'amount', label: 'Amount', hint: AMOUNT_HINT, required: true },
    { name: 'destination', label: 'Where to', hint: DESTINATION_HINT, required: true },
    SOURCE,
    PASSWORD,
  ];
  return form(visit, { act: 'request', button: 'Send the payout', inputs, refused });
}

/** Of a bank transfer. */
export const SOURCE = {
  name: 'source_currency',
  label: 'Paid from (bank transfers)',
  choices: [['', 'Chosen by Bursar'], ...CURRENCY_CODES.map((code) => [code, code] as const)] as const,
};
