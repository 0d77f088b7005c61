// The pages of the operator's console: what is wrong, and what waits for a person, each with the command that does something about it.
import { formatAmount } from '../../core/money.ts';
import { formatRate } from '../../core/rate.ts';
import { MOST_LISTED, merchantsOfAll, payoutsOfAll, reviewsOfAll } from '../../flow/console.ts';
import { type Context, watchedCodes } from '../../flow/context.ts';
import { readTotals } from '../../flow/metrics.ts';
import { readWholeReadiness } from '../../flow/readiness.ts';
import type { Shown } from '../pages/frame.ts';
import { type Html, html } from '../pages/html.ts';
import { moment, money, table } from '../pages/parts.ts';

export type ConsolePage = {
  readonly path: `/ops${string}`;
  readonly name: string;
  readonly show: (ctx: Context) => Promise<Shown>;
};

const at = (ms: number | null): Html | string => moment(ms === null ? null : new Date(ms).toISOString());
const command = (text: string): Html => html`<code>bursar ${text}</code>`;
const cut = (count: number): Html | false =>
  count === MOST_LISTED && html`<p class="note">The oldest ${MOST_LISTED} are shown.</p>`;

export const CONSOLE_PAGES: readonly ConsolePage[] = [
  { path: '/ops', name: 'Overview', show: overview },
  { path: '/ops/chains', name: 'Chains', show: chains },
  { path: '/ops/reviews', name: 'Reviews', show: reviews },
  { path: '/ops/payouts', name: 'Payouts', show: payouts },
  { path: '/ops/merchants', name: 'Merchants', show: merchants },
];

async function overview(ctx: Context): Promise<Shown> {
  const [{ problems, blocked, breakers }, totals] = await Promise.all([readWholeReadiness(ctx), readTotals(ctx)]);
  const sum = (counts: readonly { readonly count: bigint }[]): string =>
    counts.reduce((all, { count }) => all + count, 0n).toString();
  const body = html`${
    problems.length === 0
      ? html`<p>Nothing is wrong that the service knows of.</p>`
      : html`<section class="attention"><h2>${blocked === null ? 'What is wrong' : 'Nothing can be received'}</h2>
<ul>${problems.map((one) => html`<li>${one}</li>`)}</ul></section>`
  }
<h2>What waits</h2>
${table(
  'What waits',
  ['What', 'How many', 'Command'],
  [
    ['Transactions in review', sum(totals.reviews), command('review list')],
    ['Payouts that are not over', sum(totals.payouts), command('payout list')],
    ['Events for webhooks', totals.deliveries.toString(), command('webhook list')],
    ['Stopped by a red audit', breakers.map(({ name }) => name).join(', ') || 'nothing', command('audit')],
  ],
  '',
)}
<h2>What the service has</h2>
${table(
  'What the service has',
  ['Account', 'Amount'],
  totals.assets.map(({ account, currency, amount }) => [
    html`<code>${account}</code>`,
    money(formatAmount(amount, currency), currency),
  ]),
  'Nothing yet.',
)}
<h2>What merchants have of it</h2>
${table(
  'What merchants have of it',
  ['What', 'Amount'],
  totals.owed.map(({ kind, currency, amount }) => [kind, money(formatAmount(amount, currency), currency)]),
  'Nothing yet.',
)}`;
  return { title: 'Operator console', body };
}

async function chains(ctx: Context): Promise<Shown> {
  const { chains: seen, rates, rateSources } = await readWholeReadiness(ctx);
  const nowMs = ctx.ports.clock.now();
  const configured = new Set<string>(watchedCodes(ctx));
  const rows = seen
    .filter(({ currency }) => configured.has(currency))
    .map((one) => [
      one.currency,
      one.contested === null ? one.state : `${one.state}, contested: ${one.contested}`,
      one.nodeHeight,
      one.height,
      one.nodeHeight === null || one.height === null ? null : Math.max(0, one.nodeHeight - one.height),
      at(one.checkedAtMs),
      [one.reason, ...one.others].filter((text) => text !== null).join('; '),
    ]);
  const prices = Object.entries(rates).map(([currency, rate]) => [
    currency,
    rate === undefined ? '–' : money(formatRate(rate.usd), 'USD'),
    rate === undefined ? '–' : `${Math.round((nowMs - rate.atMs) / 1000)} s`,
  ]);
  const sources = rateSources.map((one) => [one.source, one.state, one.reason ?? '', at(one.sinceMs)]);
  const body = html`${table('Chains', ['Currency', 'State', 'Node at', 'Read to', 'Behind', 'Asked', 'Why'], rows, 'No node is configured.')}
<p class="note">More: ${command('chain status')}</p>
<h2>Prices</h2>
${table('Prices', ['Currency', 'Price', 'Age'], prices, 'No currency has a price.')}
<h2>Sources of prices</h2>
${table('Sources of prices', ['Exchange', 'State', 'Why', 'Since'], sources, 'None was asked yet.')}`;
  return { title: 'Chains and prices', body };
}

async function reviews(ctx: Context): Promise<Shown> {
  const waiting = await reviewsOfAll(ctx);
  const rows = waiting.map((one) => [
    moment(one.createdAt.toISOString()),
    html`<code>${one.transactionId}</code>`,
    html`<code>${one.affiliateId}</code>`,
    one.status,
    money(formatAmount(one.amountDue, one.currency), one.currency),
    money(formatAmount(one.received, one.currency), one.currency),
    one.suspense.map(({ currency, amount }) => `${formatAmount(amount, currency)} ${currency}`).join(', ') || '–',
    one.reason ?? '–',
  ]);
  const heads = ['Created', 'Transaction', 'Merchant', 'Status', 'Asked for', 'Received', 'In suspense', 'Why'];
  const body = html`${table('Reviews', heads, rows, 'Nothing waits for a decision.')}${cut(waiting.length)}
<p class="note">The merchant decides, or you: ${command('review accept')}, ${command('review decline')}, ${command('review reimburse')}. Declined ones with money in suspense: ${command('review list --declined')}.</p>`;
  return { title: 'Reviews', body };
}

async function payouts(ctx: Context): Promise<Shown> {
  const open = await payoutsOfAll(ctx);
  const rows = open.map((one) => [
    moment(new Date(one.createdAtMs).toISOString()),
    html`<code>${one.id}</code>`,
    html`<code>${one.affiliateId}</code>`,
    one.status,
    one.heldReason?.replaceAll('_', ' ') ?? '–',
    one.method,
    one.amountText,
    html`<code>${one.destination ?? '–'}</code>`,
  ]);
  const heads = ['Requested', 'Payout', 'Merchant', 'Status', 'Waits for', 'Method', 'Amount', 'To'];
  const body = html`${table('Payouts', heads, rows, 'No payout is open.')}${cut(open.length)}
<p class="note">All of one: ${command('payout show')}. What you may decide: ${command('payout approve')}, ${command('payout cancel')}, ${command('payout resolve')}.</p>`;
  return { title: 'Payouts that are not over', body };
}

async function merchants(ctx: Context): Promise<Shown> {
  const all = await merchantsOfAll(ctx);
  const rows = all.map((one) => [
    one.businessName,
    one.email,
    html`<code>${one.affiliateId}</code>`,
    one.suspendedAt === null ? 'open' : html`suspended since ${moment(one.suspendedAt.toISOString())}`,
    one.users.map(({ username, scopes }) => `${username} (${scopes.join(', ')})`).join('; '),
  ]);
  const body = html`${table('Merchants', ['Name', 'E-mail', 'Identifier', 'State', 'Users'], rows, 'There is no merchant.')}${cut(all.length)}
<p class="note">${command('merchant add')}, ${command('merchant suspend')}, ${command('user add')}, ${command('user set')}</p>`;
  return { title: 'Merchants', body };
}
