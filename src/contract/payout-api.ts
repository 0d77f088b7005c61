// The part of the merchant's API that pays out: rows of the table of endpoints.
import { ACH_SOURCES } from '../core/currency.ts';
import { PAYOUT_STATUSES } from '../core/payouts/states.ts';
import { PAYOUT_METHODS, PAYOUT_UNITS } from '../core/payouts/units.ts';
import { type Endpoint, needs, PAGE } from './endpoint.ts';
import * as field from './fields.ts';
import * as money from './money-fields.ts';
import * as payout from './payout-fields.ts';
import * as reply from './payout-replies.ts';

const ORDINARY = { perMinute: 120 };
const payoutId = field.reference('Identifier of the payout.', 'payout_');
const method = field.choice('How the money leaves.', PAYOUT_METHODS, 'invalid_method');

export const PAYOUT_API = {
  requestPayout: {
    path: '/request_payout',
    subject: 'payouts',
    summary: 'Request a payout',
    about: `By bitcoin the destination receives the amount; the network fee is held at its maximum on top of it and trued up. By ach the bank account receives the amount less 1 %, and the amount is paid from one balance at the median rate: \`source_currency\`, else ${ACH_SOURCES.join(', then ')}, then the largest. By lightning the invoice is paid for the real routing fee, at most 10 satoshis or 1 %, which is held on top; the same invoice again gets the payout that there is. A Lightning address or an LNURL is asked for its invoice before the answer. By usdt the destination receives the amount; the most that its gas may be worth is held in the same currency on top of it and trued up.`,
    access: needs('payouts'),
    limit: { perMinute: 20 },
    keyKept: 'for ever',
    fields: {
      method,
      amount: payout.payoutAmount(
        `In ${PAYOUT_METHODS.map((one) => `${PAYOUT_UNITS[one].code} for ${one}`).join(', ')}; or \`all\`.`,
      ),
      destination: payout.destination('Wallet address, Lightning invoice or bank account.'),
      source_currency: field.optional(money.balanceCurrency('For ach: the balance it is paid from.')),
    },
    reply: reply.payoutReply,
    refusals: [
      'destination_not_allowed',
      'payout_below_minimum',
      'amount_above_maximum',
      'invoice_already_used',
      'invoice_expired',
      'invoice_amount_mismatch',
      'insufficient_balance',
      'rate_unavailable',
      'currency_unavailable',
      'lightning_unavailable',
    ],
  },
  checkPayout: {
    path: '/check_payout',
    subject: 'payouts',
    summary: 'Read the status of a payout',
    about: 'With what it cost, the transaction that carries it, why it waits and why it failed.',
    access: needs('read'),
    limit: { perMinute: 1200 },
    keyKept: null,
    fields: { payout_id: payoutId },
    reply: reply.checkedPayout,
    refusals: ['payout_not_found'],
  },
  listPayouts: {
    path: '/list_payouts',
    subject: 'payouts',
    summary: 'List payouts',
    about: 'All of the merchant, newest first.',
    access: needs('read'),
    limit: ORDINARY,
    keyKept: null,
    fields: {
      limit: field.optional(field.integer(`How many items; ${PAGE.usual} when it is left out.`, PAGE.least, PAGE.most)),
      starting_after: field.optional(field.reference('The last id of the page before.', 'payout_')),
      status: field.optional(field.choice('Only this status.', PAYOUT_STATUSES)),
      method: field.optional(field.choice('Only this method.', PAYOUT_METHODS, 'invalid_method')),
      created_gte: field.optional(field.moment('Created at or after.')),
      created_lt: field.optional(field.moment('Created before.')),
    },
    reply: reply.payoutList,
    refusals: ['payout_not_found'],
  },
  cancelPayout: {
    path: '/cancel_payout',
    subject: 'payouts',
    summary: 'Cancel a payout',
    about:
      'Only while it is pending: it is failed with the error `cancelled`, and its hold is released. Cancelling twice gives the same answer.',
    access: needs('payouts'),
    limit: ORDINARY,
    keyKept: 'a day',
    fields: { payout_id: payoutId },
    reply: reply.checkedPayout,
    refusals: ['payout_not_found', 'payout_not_cancellable'],
  },
  getPayoutSettings: {
    path: '/get_payout_settings',
    subject: 'payouts',
    summary: 'Read the settings of automatic payouts',
    about: 'What leaves by itself, and since when it may.',
    access: needs('read'),
    limit: ORDINARY,
    keyKept: null,
    fields: {},
    reply: reply.payoutSettingsReply,
    refusals: [],
  },
  setPayoutSettings: {
    path: '/set_payout_settings',
    subject: 'payouts',
    summary: 'Change the settings of automatic payouts',
    about:
      'Fields that are not sent stay; `leave` is 0 and `enabled` true until they are sent. A new or changed destination is used after 24 hours. `paused: false` ends a pause.',
    access: needs('payouts'),
    limit: ORDINARY,
    keyKept: 'a day',
    fields: {
      enabled: field.optional(field.flag('Whether anything is paid out by itself.')),
      method: field.optional(method),
      destination: field.optional(payout.destination('Where it goes; a BOLT11 invoice is refused, since it can be paid once.')),
      threshold: field.optional(payout.plainAmount("The balance from which on it is paid out, in the method's unit.")),
      leave: field.optional(payout.plainAmount("How much of the balance stays, in the method's unit.")),
      source_currency: field.optional(money.balanceCurrency('For ach: the balance it is paid from.')),
      paused: field.optional(field.flag('false ends a pause, true begins one.')),
    },
    reply: reply.payoutSettingsReply,
    refusals: [
      'missing_field',
      'payout_below_minimum',
      'destination_not_allowed',
      'currency_unavailable',
      'lightning_unavailable',
    ],
  },
} as const satisfies Record<string, Endpoint>;
