// One payment: what was asked for, what came, what happened, and what the merchant can do about it.
import { formatAmount } from '../../core/money.ts';
import { Refusal } from '../../core/refusal.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import { type Checkout, readCheckouts } from '../../flow/transactions/checkouts.ts';
import { type Html, html } from '../html.ts';
import { typed } from './forms.ts';
import { facts, form, lacks, moment, money, PASSWORD, table } from './parts.ts';
import { transactionBadge } from './states.ts';
import type { Page, Refused, ReplyOf, Visit } from './visit.ts';

type Checked = ReplyOf<'checkTransaction'>;

const EXPAND = ['payments', 'events', 'refund', 'rate', 'checkout'];
/** Statuses in which the operations may do something; they decide, these only leave out what is in vain. */
const CANCELLABLE: ReadonlySet<TransactionStatus> = new Set(['started', 'pending']);
const ACCEPTABLE: ReadonlySet<TransactionStatus> = new Set(['review', 'declined']);
const CREDITED: ReadonlySet<TransactionStatus> = new Set(['succeeded', 'settled']);

export const TRANSACTION: Page = {
  path: '/transactions/:id',
  under: '/transactions',
  async show(visit, refused) {
    // the operation decides whose it is
    const checked = await visit.ask('checkTransaction', { transaction_id: visit.id, expand: EXPAND });
    const checkout = (await readCheckouts(visit.context.ctx, [visit.id])).get(visit.id);
    if (checkout === undefined) throw new Refusal('transaction_not_found');
    const body = html`<p class="status">${transactionBadge(checked)}</p>
${facts(whatIsAsked(checked, checkout))}
${refundFacts(checked, checkout)}
${actions(visit, checked, checkout, refused)}
<h2>What came in</h2>
${payments(checked, checkout)}
<h2>What happened</h2>
${table(
  'What happened',
  ['When', 'Status', 'Why'],
  (checked.events ?? []).map(({ at, status, reason }) => [moment(at), status, reason]),
  '',
)}`;
    return { title: `Payment of ${checked.usd_amount} USD`, body };
  },
  acts: {
    async cancel(visit, sent) {
      await visit.ask('cancelTransaction', { transaction_id: visit.id, idempotency_key: sent.get('key') });
      return `/transactions/${visit.id}`;
    },
    accept: (visit, sent) => resolved(visit, { action: 'accept', idempotency_key: sent.get('key') }),
    decline: (visit, sent) => resolved(visit, { action: 'decline', idempotency_key: sent.get('key') }),
    async reimburse(visit, sent) {
      await visit.confirm(sent);
      const [destination, part] = [typed(sent, 'destination'), typed(sent, 'part')];
      return resolved(visit, { action: 'reimburse', destination, part, idempotency_key: sent.get('key') });
    },
  },
};

async function resolved(visit: Visit, body: Readonly<Record<string, unknown>>): Promise<string> {
  await visit.ask('resolveTransaction', { transaction_id: visit.id, ...body });
  return `/transactions/${visit.id}`;
}

function whatIsAsked(checked: Checked, { currency, label, address }: Checkout) {
  const { rate } = checked;
  return [
    ['Label', label],
    ['Price', money(checked.usd_amount, 'USD')],
    ['Asked for', money(checked.crypto_amount, currency)],
    ['Received', money(checked.crypto_received, currency)],
    [
      'Rate',
      rate !== undefined &&
        html`1 ${currency} = ${rate.usd} USD, ${moment(rate.at)} (${rate.sources.map(({ source }) => source).join(', ')})`,
    ],
    ['Pays to', html`<code>${address}</code>`],
    ["Customer's page", checked.checkout !== undefined && html`<a href="${checked.checkout.url}">${checked.checkout.url}</a>`],
    ['Created', moment(checked.created_at)],
    ['Confirmed', checked.confirmed_at !== null && moment(checked.confirmed_at)],
    ['Identifier', html`<code>${checked.transaction_id}</code>`],
  ] as const;
}

function refundFacts({ refund }: Checked, { currency }: Checkout): Html | null {
  if (refund == null) return null;
  return html`<h2>Reimbursement</h2>
${facts([
  ['Status', refund.status],
  ['Amount', money(refund.amount, currency)],
  ['Fee', money(refund.fee, currency)],
  ['To', html`<code>${refund.destination}</code>`],
  ['Transaction', refund.txid !== null && html`<code>${refund.txid}</code>`],
])}`;
}

function payments({ payments: seen = [] }: Checked, { currency }: Checkout): Html {
  const rows = seen.map((one) => [
    moment(one.seen_at),
    money(one.amount, currency),
    one.confirmations,
    one.counted ? 'yes' : 'no',
    html`<code>${one.txid}</code>`,
  ]);
  return table('What came in', ['Seen', 'Amount', 'Confirmations', 'Counts', 'Transaction'], rows, 'Nothing was seen.');
}

function actions(visit: Visit, { status, refund }: Checked, checkout: Checkout, refused: Refused | null): Html {
  const { currency, excessMinor } = checkout;
  const hasExcess = CREDITED.has(status) && excessMinor > 0n && refund == null;
  const buttons = [
    CANCELLABLE.has(status) && form(visit, { act: 'cancel', button: 'Cancel this payment', refused, isDangerous: true }),
    ACCEPTABLE.has(status) && form(visit, { act: 'accept', button: 'Accept what came in', refused }),
    status === 'review' && form(visit, { act: 'decline', button: 'Decline', refused, isDangerous: true }),
  ].filter((one) => one !== false);
  const sendBack = ACCEPTABLE.has(status) || hasExcess;
  return html`${buttons.length > 0 && (visit.has('payments') ? html`<div class="actions">${buttons}</div>` : lacks('payments'))}
${
  sendBack &&
  html`<details${refused !== null && html` open`}><summary>${hasExcess ? `Send back the ${formatAmount(excessMinor, currency)} ${currency} too much` : 'Send it back'}</summary>
${visit.has('payouts') ? form(visit, { act: 'reimburse', button: 'Send it back', inputs: reimbursement(hasExcess), refused, isDangerous: true }) : lacks('payouts')}</details>`
}`;
}

function reimbursement(isExcess: boolean) {
  return [
    {
      name: 'destination',
      label: 'Where to',
      hint: "What the customer has told you. The address that it came from is often one of an exchange, and not the customer's.",
      required: true,
    },
    ...(isExcess ? [{ name: 'part', label: 'What', choices: [['excess', 'Only what was too much']] as const }] : []),
    PASSWORD,
  ];
}
