// Balances, and the entries that explain them.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { balanceOf, CURRENCIES, CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import { Refusal } from '../../core/refusal.ts';
import { type Html, html } from '../pages/html.ts';
import { moment, money, table, withQuery } from '../pages/parts.ts';
import { listFile } from './list-files.ts';
import { fileLink, link, queryOf } from './parts.ts';
import type { Page, ReplyOf, Visit } from './visit.ts';

/** One row for each currency. */
export function balanceTable(visit: Visit, balances: ReplyOf<'getAccountInfo'>['balances']): Html {
  const rows = CURRENCY_CODES.map((code) => [
    link(visit, `/balances/${code}`, CURRENCIES[code].name),
    money(balances[code], code),
  ]);
  return table('Balances', ['Currency', 'Available'], rows, '');
}

export const BALANCES: Page = {
  path: '/balances',
  under: '/balances',
  async show(visit) {
    const { balances } = await visit.ask('getAccountInfo');
    return {
      title: 'Balances',
      body: html`<p class="note">What is available for payouts. ${balanceOf(LIGHTNING.code)} includes what came over Lightning.</p>
${balanceTable(visit, balances)}
<p>${link(visit, '/payouts/new', 'Request a payout')}</p>`,
    };
  },
};

export const BALANCE: Page = {
  path: '/balances/:id',
  under: '/balances',
  async show(visit) {
    const code = currencyOf(visit);
    const after = queryOf(visit).get('after') ?? undefined;
    const { data, has_more: hasMore } = await visit.ask('listBalanceEntries', {
      currency: code,
      limit: 50,
      starting_after: after,
    });
    const rows = data.map((entry) => [
      moment(entry.created_at),
      entry.kind.replaceAll('_', ' '),
      money(entry.amount, code),
      money(entry.balance_after, code),
      entry.transaction_id !== undefined
        ? link(visit, `/transactions/${entry.transaction_id}`, entry.transaction_id)
        : entry.payout_id !== undefined && link(visit, `/payouts/${entry.payout_id}`, entry.payout_id),
    ]);
    const older = hasMore && link(visit, withQuery(`/balances/${code}`, { after: data.at(-1)?.entry_id }), 'Older entries');
    return {
      title: `Balance in ${CURRENCIES[code].name}`,
      body: html`${table('Entries', ['When', 'What', 'Change', 'Balance after', 'Belongs to'], rows, 'There is no entry.')}
<p>${older}</p>
${data.length > 0 && fileLink(visit, `/balances/${code}/entries.csv`)}`,
    };
  },
};

export const ENTRIES_FILE = listFile('listBalanceEntries', {
  path: '/balances/:id/entries.csv',
  under: '/balances',
  name: (visit) => `balance-${currencyOf(visit)}`,
  filter: (visit) => ({ currency: currencyOf(visit) }),
  columns: ['entry_id', 'created_at', 'kind', 'currency', 'amount', 'balance_after', 'transaction_id', 'payout_id'],
  idOf: ({ entry_id: id }) => id,
});

/** @throws Refusal not_found */
function currencyOf({ id }: Pick<Visit, 'id'>): CurrencyCode {
  const found = CURRENCY_CODES.find((code) => code === id);
  if (found === undefined) throw new Refusal('not_found', { message: 'There is no such currency.' });
  return found;
}
