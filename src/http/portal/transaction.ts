// One payment: what was asked for, what came, what happened, and what the merchant can do about it.
import { balanceOf, type PaymentMethod } from '../../core/currency.ts';
import { formatAmount, plus } from '../../core/money.ts';
import { Refusal } from '../../core/refusal.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import { type RefundShown, readRefund } from '../../flow/payouts/reimbursements.ts';
import { type Checkout, readCheckouts } from '../../flow/transactions/checkouts.ts';
import { readWhatCame } from '../../flow/transactions/reads.ts';
import { type Form, typed } from '../pages/forms.ts';
import type { Refused } from '../pages/frame.ts';
import { type Html, html } from '../pages/html.ts';
import { facts, type Input, moment, money, table } from '../pages/parts.ts';
import { form, lacks, PASSWORD } from './parts.ts';
import { transactionBadge } from './states.ts';
import type { Page, ReplyOf, Visit } from './visit.ts';

type Checked = ReplyOf<'checkTransaction'>;

type Came = Awaited<ReturnType<typeof readWhatCame>>;
/** What the page shows of one. */
type Known = { readonly checked: Checked; readonly checkout: Checkout; readonly came: Came; readonly refund: RefundShown | null };

const MOST_EVENTS = 100;
const EXPAND = ['events', 'rate', 'checkout'];
/** When the operations may do something; they decide, these only leave out what is in vain. */
const isCancellable = ({ status, confirmations }: Checked): boolean =>
  status === 'started' || (status === 'pending' && confirmations === 0);
const ACCEPTABLE: ReadonlySet<TransactionStatus> = new Set(['review', 'declined']);
const CREDITED: ReadonlySet<TransactionStatus> = new Set(['succeeded', 'settled']);
const BEFORE_BOOKING: ReadonlySet<TransactionStatus> = new Set(['started', 'pending', 'confirmed']);

export const TRANSACTION: Page = {
  path: '/transactions/:id',
  under: '/transactions',
  async show(visit, refused) {
    // the operation decides whose it is
    const checked = await visit.ask('checkTransaction', { transaction_id: visit.id, expand: EXPAND });
    const { ctx } = visit.context;
    const [checkouts, came, refund] = await Promise.all([
      readCheckouts(ctx, [visit.id]),
      readWhatCame(ctx, visit.id),
      readRefund(ctx, visit.id),
    ]);
    const checkout = checkouts.get(visit.id);
    if (checkout === undefined) throw new Refusal('transaction_not_found');
    const known = { checked, checkout, came, refund };
    const body = html`<p class="status">${transactionBadge(checked)}</p>
${facts(whatIsAsked(known))}
${refundFacts(known)}
${actions(visit, known, refused)}
<h2>What came in</h2>
${payments(known)}
<h2>What happened</h2>
${events(checked)}`;
    return { title: `Payment of ${checked.usd_amount} USD`, body };
  },
  acts: {
    async cancel(visit, sent) {
      await visit.ask('cancelTransaction', { transaction_id: visit.id, idempotency_key: sent.get('key') });
      return `/transactions/${visit.id}`;
    },
    accept: (visit, sent) => resolved(visit, { action: 'accept', part: typed(sent, 'part'), idempotency_key: sent.get('key') }),
    decline: (visit, sent) => resolved(visit, { action: 'decline', idempotency_key: sent.get('key') }),
    async reimburse(visit, sent) {
      await visit.confirm(sent);
      const destination = typed(sent, 'destination');
      return resolved(visit, { action: 'reimburse', destination, ...whatToSend(sent), idempotency_key: sent.get('key') });
    },
  },
};

/** What was chosen: a part, and the currency of it. */
function whatToSend(sent: Form): { readonly part?: string; readonly currency?: string } {
  const [part = '', currency = ''] = (typed(sent, 'what') ?? '').split(' ', 2);
  return { ...(part === 'excess' ? { part } : {}), ...(currency === '' ? {} : { currency }) };
}

async function resolved(visit: Visit, body: Readonly<Record<string, unknown>>): Promise<string> {
  await visit.ask('resolveTransaction', { transaction_id: visit.id, ...body });
  return `/transactions/${visit.id}`;
}

/** An amount in its own currency; what came over Lightning is of the balance that it goes to. */
const amountIn = (currency: PaymentMethod, minor: bigint): string => `${formatAmount(minor, currency)} ${balanceOf(currency)}`;

function whatIsAsked({ checked, checkout: { currency, label, address }, came: { lies } }: Known) {
  const { rate } = checked;
  const unit = balanceOf(currency);
  const all = (of: 'inAvailable' | 'inSuspense') => {
    const there = lies.filter((one) => one[of] > 0n).map((one) => amountIn(one.currency, one[of]));
    return there.length > 0 && html`<span class="money">${there.join(', ')}</span>`;
  };
  return [
    ['Label', label],
    ['Price', money(checked.usd_amount, 'USD')],
    ['Asked for', money(checked.crypto_amount, unit)],
    ['Received', money(checked.crypto_received, unit)],
    ['Credited to your balance', all('inAvailable')],
    ['Not credited, waits for a decision', all('inSuspense')],
    [
      'Rate',
      rate !== undefined &&
        html`1 ${unit} = ${rate.usd} USD, ${moment(rate.at)} (${rate.sources.map(({ source }) => source).join(', ')})`,
    ],
    ['Pays to', html`<code>${address}</code>`],
    ["Customer's page", checked.checkout !== undefined && html`<a href="${checked.checkout.url}">${checked.checkout.url}</a>`],
    ['Created', moment(checked.created_at)],
    ['Confirmed', checked.confirmed_at !== null && moment(checked.confirmed_at)],
    ['Identifier', html`<code>${checked.transaction_id}</code>`],
  ] as const;
}

function refundFacts({ refund }: Known): Html | null {
  if (refund === null) return null;
  return html`<h2>Reimbursement</h2>
${facts([
  ['Status', refund.status],
  ['Amount', html`<span class="money">${amountIn(refund.currency, refund.amount)}</span>`],
  ['Fee', html`<span class="money">${amountIn(refund.currency, refund.fee)}</span>`],
  ['To', html`<code>${refund.destination}</code>`],
  ['Transaction', refund.txid !== null && html`<code>${refund.txid}</code>`],
])}`;
}

function payments({ came: { payments: seen, lies } }: Known): Html {
  const rows = seen.map((one) => [
    moment(new Date(one.seenAtMs).toISOString()),
    html`<span class="money">${amountIn(one.currency, one.minor)}</span>`,
    one.confirmations,
    one.counted ? 'yes' : 'no',
    html`<code>${one.txid}</code>`,
  ]);
  const count = lies.reduce((sum, one) => sum + one.payments, 0);
  return html`${table('What came in', ['Seen', 'Amount', 'Confirmations', 'Counts', 'Transaction'], rows, 'Nothing was seen.')}
${count > rows.length && html`<p class="note">The newest ${rows.length} of ${count}.</p>`}`;
}

/** Every payment that anybody adds is an event. */
function events({ events: all = [] }: Checked): Html {
  const shown = all.slice(-MOST_EVENTS);
  const rows = shown.map(({ at, status, reason }) => [moment(at), status, reason]);
  return html`${table('What happened', ['When', 'Status', 'Why'], rows, '')}
${all.length > shown.length && html`<p class="note">The last ${shown.length} of ${all.length}.</p>`}`;
}

function actions(visit: Visit, { checked, checkout, came: { lies }, refund }: Known, refused: Refused | null): Html {
  const { status } = checked;
  const isUndecided = ACCEPTABLE.has(status);
  const isRefunding = refund?.status === 'pending';
  const hasExcess = !isUndecided && !BEFORE_BOOKING.has(status) && lies.some(({ inSuspense }) => inSuspense > 0n);
  const buttons = [
    isCancellable(checked) && form(visit, { act: 'cancel', button: 'Cancel this payment', refused, isDangerous: true }),
    isUndecided && !isRefunding && form(visit, { act: 'accept', button: 'Accept what came in', refused }),
    hasExcess &&
      !isRefunding &&
      form(visit, { act: 'accept', button: 'Keep what is too much', hidden: { part: 'excess' }, refused }),
    status === 'review' && !isRefunding && form(visit, { act: 'decline', button: 'Decline', refused, isDangerous: true }),
  ].filter((one) => one !== false);
  const choices = isRefunding ? [] : isUndecided ? ofUndecided(checkout, lies) : ofDecided(status, checkout, lies);
  return html`${buttons.length > 0 && (visit.has('payments') ? html`<div class="actions">${buttons}</div>` : lacks('payments'))}
${
  choices.length > 0 &&
  html`<details${refused?.form.get('do') === 'reimburse' && html` open`}><summary>${hasExcess ? 'Send back what is too much, or all of it' : 'Send it back'}</summary>
${visit.has('payouts') ? form(visit, { act: 'reimburse', button: 'Send it back', inputs: reimbursement(choices), refused, isDangerous: true }) : lacks('payouts')}</details>`
}`;
}

type Choice = readonly [string, string];

/** All that came in, one currency at a time; what is not booked yet can be asked for, too. */
function ofUndecided({ currency }: Checkout, lies: Came['lies']): readonly Choice[] {
  const came = lies.length > 0 ? lies : [{ currency, inAvailable: 0n, inSuspense: 0n }];
  return came.map((one) => {
    const booked = plus(one.inAvailable, one.inSuspense);
    const words = booked > 0n ? amountIn(one.currency, booked) : `what comes in ${balanceOf(one.currency)}`;
    return [`whole ${balanceOf(one.currency)}`, words] as const;
  });
}

/** What is too much, and all of what is credited, one currency at a time: what was accepted in another currency can go back too. */
function ofDecided(status: TransactionStatus, { currency }: Checkout, lies: Came['lies']): readonly Choice[] {
  if (BEFORE_BOOKING.has(status)) return [];
  const excess = lies
    .filter(({ inSuspense }) => inSuspense > 0n)
    .map(
      (one) =>
        [`excess ${balanceOf(one.currency)}`, `Only what was not credited: ${amountIn(one.currency, one.inSuspense)}`] as const,
    );
  if (!CREDITED.has(status)) return excess;
  const own = lies.filter((one) => one.currency === currency);
  const whole = [...own, ...lies.filter((one) => one.currency !== currency)]
    .filter(({ inAvailable }) => inAvailable > 0n)
    .map((one) => {
      const all = amountIn(one.currency, plus(one.inAvailable, one.inSuspense));
      const which = one.currency === currency ? 'All of it' : `All that came in ${balanceOf(one.currency)}`;
      return [
        `whole ${balanceOf(one.currency)}`,
        `${which}: ${all}, of which your balance pays ${amountIn(one.currency, one.inAvailable)}`,
      ] as const;
    });
  return [...excess, ...whole];
}

const reimbursement = (choices: readonly Choice[]): readonly Input[] => [
  { name: 'what', label: 'What', choices, hint: 'The network fee is taken from it.' },
  {
    name: 'destination',
    label: 'Where to',
    hint: "What the customer has told you. The address that it came from is often one of an exchange, and not the customer's.",
    required: true,
  },
  PASSWORD,
];
