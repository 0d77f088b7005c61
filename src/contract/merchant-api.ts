// The merchant's API as a table: the operations of behaviour §8. A row without a handler does not compile (http/handlers/merchant.ts), and
// nothing about an endpoint is written anywhere else; payouts have a table of their own (payout-api.ts).
import { LIGHTNING } from '../core/currencies/lightning.ts';
import { MINUTE_MS, WINDOW_MS } from '../core/judge/times.ts';
import { TOKEN_LIFETIMES } from '../core/sign-in-ports.ts';
import { type Access, type Endpoint, needs, OPEN, PAGE } from './endpoint.ts';
import * as field from './fields.ts';
import * as money from './money-fields.ts';
import { PAYOUT_API } from './payout-api.ts';
import * as payout from './payout-fields.ts';
import * as reply from './replies.ts';
import { WEBHOOK_API } from './webhook-api.ts';

const transactionId = field.reference('Identifier of the transaction.', 'txn_');
/** What `expand` may contain. */
export const EXPANSIONS = ['payments', 'events', 'refund', 'rate', 'checkout'] as const;
const expand = field.optional(field.choices('Adds one field of each name to the answer.', EXPANSIONS));
const limit = field.optional(field.integer(`How many items; ${PAGE.usual} when it is left out.`, PAGE.least, PAGE.most));
const ORDINARY = { perMinute: 120 };

/** Accepting and declining need `payments`, sending money out needs `payouts`. */
const resolveAccess: Access = {
  kind: 'token',
  scopes: (body) => (body.action === 'reimburse' ? ['payouts'] : ['payments']),
  inWords: 'scope `payments`; `payouts` for `reimburse`',
  askNow: true,
};
const settingsAccess: Access = {
  kind: 'token',
  scopes(body) {
    const sent = (name: string) => body[name] !== undefined && body[name] !== null;
    // null is a value of payout_approval_above: it removes the limit
    const payouts = sent('payout_allow_list') || body.payout_approval_above !== undefined;
    const others = sent('tolerance_percent') || sent('late_payments');
    if (!payouts) return ['payments'];
    return others ? ['payments', 'payouts'] : ['payouts'];
  },
  inWords: 'scope `payments`; `payouts` for the two payout fields',
  askNow: true,
};

export const MERCHANT_API = {
  auth: {
    path: '/auth',
    subject: 'sign-in',
    summary: 'Sign in',
    about: `Username and password for an access token (${TOKEN_LIFETIMES.access}) and a refresh token (${TOKEN_LIFETIMES.refresh}).`,
    access: OPEN,
    limit: { perMinute: 20 },
    keyKept: null,
    fields: {
      username: field.text('The name of the user.', { max: 254, example: 'demo' }),
      password: field.text('The password.', { max: 1024, anything: true, example: 'demo-demo-demo' }),
    },
    reply: reply.tokenPair,
    refusals: ['invalid_credentials', 'account_suspended'],
  },
  refresh: {
    path: '/auth_refresh',
    subject: 'sign-in',
    summary: 'Exchange a token pair for a new one',
    about: 'The expired access token and its refresh token for a new pair. A refresh token is used once.',
    access: OPEN,
    limit: { perMinute: 30 },
    keyKept: null,
    fields: {
      access_token: field.token('The access token, expired or not.'),
      refresh_token: field.token('The refresh token of the same sign-in.'),
    },
    reply: reply.tokenPair,
    refusals: ['refresh_token_expired', 'refresh_token_reused', 'conflicting_credentials', 'account_suspended'],
  },
  createTransaction: {
    path: '/create_transaction',
    subject: 'transactions',
    summary: 'Create a payment transaction',
    about: `Priced in USD, paid in a cryptocurrency within ${WINDOW_MS / MINUTE_MS} minutes.`,
    access: needs('payments'),
    limit: { perMinute: 120, burst: 60 },
    keyKept: 'a day',
    fields: {
      amount: money.usdAmount('Amount in USD: 0.50 to 100,000.00 on chain, 0.01 to 5,000.00 over Lightning.'),
      crypto_selected: money.payWith(`Cryptocurrency code, any case; ${LIGHTNING.code} for Lightning.`),
      email: field.optional(field.email("The customer's e-mail for the receipt.")),
      label: field.optional(field.text('Reference of your own.', { max: 200, example: 'order-1042' })),
      expand,
    },
    reply: reply.createdTransaction,
    refusals: [
      'amount_below_minimum',
      'amount_above_maximum',
      'rate_unavailable',
      'currency_unavailable',
      'lightning_unavailable',
    ],
  },
  checkTransaction: {
    path: '/check_transaction',
    subject: 'transactions',
    summary: 'Read the status of a transaction',
    about: 'Answers at once, or, with wait_seconds, when the status differs from status_was or the time is up.',
    access: needs('read'),
    limit: { perMinute: 1200 },
    keyKept: null,
    fields: {
      transaction_id: transactionId,
      wait_seconds: field.optional(field.integer('How long to wait for another status.', 0, 30)),
      status_was: field.optional(field.status('The status already known; the present one when it is left out.')),
      expand,
    },
    reply: reply.checkedTransaction,
    refusals: ['transaction_not_found'],
  },
  cancelTransaction: {
    path: '/cancel_transaction',
    subject: 'transactions',
    summary: 'Cancel a transaction',
    about: 'While it is started, or pending without a confirmation. Cancelling twice gives the same answer.',
    access: needs('payments'),
    limit: ORDINARY,
    keyKept: 'a day',
    fields: { transaction_id: transactionId, expand },
    reply: reply.cancelledTransaction,
    refusals: ['transaction_not_found', 'transaction_not_cancellable', 'lightning_unavailable'],
  },
  ...PAYOUT_API,
  getAccountInfo: {
    path: '/get_account_info',
    subject: 'account',
    summary: 'Read the account and its balances',
    about: 'Balances are what is available for payout.',
    access: needs('read'),
    limit: ORDINARY,
    keyKept: null,
    fields: {},
    reply: reply.accountInfo,
    refusals: [],
  },
  listTransactions: {
    path: '/list_transactions',
    subject: 'transactions',
    summary: 'List transactions',
    about: 'All of the merchant, newest first.',
    access: needs('read'),
    limit: ORDINARY,
    keyKept: null,
    fields: {
      limit,
      starting_after: field.optional(field.reference('The last transaction_id of the page before.', 'txn_')),
      status: field.optional(field.status('Only this status.')),
      crypto_selected: field.optional(money.payWith('Only this cryptocurrency.')),
      label: field.optional(field.text('Only this label.', { max: 200, example: 'order-1042' })),
      created_gte: field.optional(field.moment('Created at or after.')),
      created_lt: field.optional(field.moment('Created before.')),
    },
    reply: reply.transactionList,
    refusals: ['transaction_not_found'],
  },
  resolveTransaction: {
    path: '/resolve_transaction',
    subject: 'transactions',
    summary: 'Decide a transaction in review',
    about:
      'accept credits what came in, decline leaves it in suspense, reimburse sends it to `destination` once it is final, less the network fee.',
    access: resolveAccess,
    limit: ORDINARY,
    keyKept: 'a day',
    fields: {
      transaction_id: transactionId,
      action: field.choice('What to do.', ['accept', 'decline', 'reimburse']),
      destination: field.optional(
        payout.destination(
          'Where a reimbursement goes: an address, over Lightning a BOLT11 invoice, a Lightning address or an LNURL; required for `reimburse`.',
        ),
      ),
      part: field.optional(field.choice('Only what came in above the amount due.', ['excess'])),
      currency: field.optional(money.balanceCurrency("The currency of a reimbursement; the transaction's when it is left out.")),
    },
    alsoRequired: (body) => (body.action === 'reimburse' ? ['destination'] : []),
    reply: reply.resolvedTransaction,
    refusals: [
      'transaction_not_found',
      'invalid_destination',
      'destination_not_allowed',
      'not_resolvable',
      'currency_unavailable',
      'lightning_unavailable',
      'invoice_already_used',
      'amount_below_minimum',
      'insufficient_balance',
      'invoice_expired',
      'invoice_amount_mismatch',
      'missing_field',
    ],
  },
  getSettings: {
    path: '/get_settings',
    subject: 'settings',
    summary: 'Read the settings',
    about: 'Tolerance, late payments, and the rules of payouts.',
    access: needs('read'),
    limit: ORDINARY,
    keyKept: null,
    fields: {},
    reply: reply.settingsReply,
    refusals: [],
  },
  setSettings: {
    path: '/set_settings',
    subject: 'settings',
    summary: 'Change the settings',
    about: 'Fields that are not sent stay. Tolerance and late policy hold for transactions created from then on.',
    access: settingsAccess,
    limit: ORDINARY,
    keyKept: 'a day',
    fields: {
      tolerance_percent: field.optional(payout.percent('0 to 5 with at most 2 decimals.')),
      late_payments: field.optional(field.choice('What happens to payments after the window.', ['accept', 'review'])),
      payout_allow_list: field.optional(payout.destinations('Destinations payouts may go to; empty = any.')),
      payout_approval_above: field.removable(payout.usdText('Payouts above this many USD wait for approval; null = none do.')),
    },
    reply: reply.settingsReply,
    refusals: ['invalid_destination'],
  },
  listBalanceEntries: {
    path: '/list_balance_entries',
    subject: 'account',
    summary: 'List what changed the balances',
    about: 'Every figure of a balance is explained by its entries, newest first.',
    access: needs('read'),
    limit: ORDINARY,
    keyKept: null,
    fields: {
      currency: field.optional(money.balanceCurrency('Only this currency.')),
      limit,
      starting_after: field.optional(field.entryId('The last entry_id of the page before.')),
    },
    reply: reply.entryList,
    refusals: ['not_found'],
  },
  getRates: {
    path: '/get_rates',
    subject: 'rates',
    summary: 'Read the exchange rates',
    about: 'The median of the live sources for each currency that has one.',
    access: needs('read'),
    limit: ORDINARY,
    keyKept: null,
    fields: {},
    reply: reply.ratesReply,
    refusals: [],
  },
  ...WEBHOOK_API,
  signOut: {
    path: '/sign_out',
    subject: 'sign-in',
    summary: 'Sign out',
    about: 'Revokes every token of this sign-in.',
    access: { kind: 'token', scopes: () => [], inWords: 'any signed-in user', askNow: false },
    limit: ORDINARY,
    keyKept: 'a day',
    alsoOnReplay: true,
    fields: {},
    reply: reply.done,
    refusals: [],
  },
} as const satisfies Record<string, Endpoint>;

export type MerchantApi = typeof MERCHANT_API;
