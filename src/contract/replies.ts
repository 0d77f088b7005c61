// The answers, field by field (behaviour §8).
import { CURRENCY_CODES, type CurrencyCode, PAYMENT_METHODS } from '../core/currency.ts';
import { TOKEN_LIFETIMES } from '../core/sign-in-ports.ts';
import { TRANSACTION_STATUSES } from '../core/transaction-states.ts';
import * as shape from './shapes.ts';

/** A decimal string; negative only where a field says so (entries of a balance). */
export const amount = (about: string, example: string) =>
  shape.string(about, example, { pattern: '^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$' });
/** UTC, ISO 8601 with milliseconds and `Z`. */
export const time = (about: string, example = '2026-11-22T10:00:00.000Z') =>
  shape.string(about, example, { format: 'date-time' });
const status = shape.named('TransactionStatus', shape.word('Status of the transaction.', TRANSACTION_STATUSES));
const ID = 'txn_0351dYxk0d1Jt8vTgkN1AM';
export const PAYOUT_ID = 'payout_0351dYxk0d1Jt8vTgkN1AM';
export const ADDRESS = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4';
const transactionId = shape.string('Identifier, prefix `txn_`.', ID, { pattern: '^txn_' });
export const success = shape.constant(true);
export const currency = shape.named('Currency', shape.word('Code of a currency that has a balance.', CURRENCY_CODES));

const rateInfo = shape.named(
  'Rate',
  shape.object({
    usd: amount('USD for one unit.', '65000.00'),
    at: time('When the sources were asked for it.'),
    sources: shape.list(
      'The sources that were used.',
      shape.object({
        source: shape.string('Name of an exchange.', 'kraken'),
        usd: amount('Its price.', '65000.00'),
        at: time('When it said so.'),
      }),
    ),
  }),
);

export const tokenPair = shape.named(
  'TokenPair',
  shape.object({
    access_token: shape.string(`JWT, valid for ${TOKEN_LIFETIMES.access}.`, 'eyJhbGciOiJFZERTQSJ9.e30.c2lnbmF0dXJl'),
    token_type: shape.constant('bearer'),
    refresh_token: shape.string(`JWT, valid for ${TOKEN_LIFETIMES.refresh}, single use.`, 'eyJhbGciOiJFZERTQSJ9.e30.cmVmcmVzaA'),
  }),
);

/** Added to create, check and cancel by `expand` only. */
const expansions = {
  payments: shape.optional(
    shape.list(
      'Payments that were seen, on request.',
      shape.named(
        'Payment',
        shape.object({
          txid: shape.string(
            'Id of the transaction on its chain.',
            '82f33bcc7168481c89b4df851d39bf44a646d5dd957a5df3258c9c90cda26e86',
          ),
          amount: amount('In the currency that was paid.', '0.00038462'),
          confirmations: shape.whole('Blockchain confirmations.', 1),
          seen_at: time('When it was first seen.'),
          counted: shape.flag('Whether it counts towards the amount due.', true),
        }),
      ),
    ),
  ),
  events: shape.optional(
    shape.list(
      'Its history, on request.',
      shape.named(
        'TransactionEvent',
        shape.object({ status, at: time('When.'), reason: shape.string('Why, in words.', 'payment seen') }),
      ),
    ),
  ),
  refund: shape.optional(
    shape.nullable(
      shape.named(
        'Refund',
        shape.object({
          status: shape.word('How far it is.', ['pending', 'completed', 'failed']),
          amount: amount('What the customer gets; with the fee it is what was taken.', '0.00038000'),
          destination: shape.string('Where to.', ADDRESS),
          txid: shape.nullable(shape.string('Id of the transaction that carries it.', 'ab12')),
          fee: shape.nullable(amount("Network fee, and what a token's contract has kept for itself.", '0.00000462')),
        }),
      ),
    ),
  ),
  rate: shape.optional(rateInfo),
  checkout: shape.optional(
    shape.named(
      'Checkout',
      shape.object({
        url: shape.string(
          'A page for the customer, on request: whoever has the link sees it.',
          'https://pay.example.com/pay/3Yq0m8cVd1Jt8vTgkN1AMx',
        ),
      }),
    ),
  ),
};

const created = {
  transaction_id: transactionId,
  wallet_address: shape.string('Address the customer pays to.', ADDRESS),
  qr_code: shape.string(
    'PNG as a data URI; it decodes to a payment URI (BIP 321, ERC-681, or LIGHTNING: and the invoice).',
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABAQAAAAA3bvkkAAAACklEQVQI12NgAAAAAgAB4iG8MwAAAABJRU5ErkJggg==',
  ),
  crypto_amount: amount('Amount of cryptocurrency requested.', '0.00038462'),
  usd_amount: amount('USD amount.', '25.00'),
  exchange_rate: amount('USD for one unit, exactly the number used.', '65000.00'),
  expires_at: time('End of the payment window.', '2026-11-22T10:15:00.000Z'),
};
const checked = {
  crypto_received: amount('Amount of cryptocurrency received.', '0.00000000'),
  confirmations: shape.whole('Blockchain confirmations.', 0),
  created_at: time('Creation time.'),
  confirmed_at: shape.nullable(time('When enough confirmations were reached; null until then.', '2026-11-22T10:09:31.000Z')),
};

/** What was asked for and what has come, as a check and an event show it. */
const received = {
  crypto_amount: created.crypto_amount,
  crypto_received: checked.crypto_received,
  confirmations: checked.confirmations,
  usd_amount: created.usd_amount,
  created_at: checked.created_at,
  confirmed_at: checked.confirmed_at,
};

export const createdTransaction = shape.named('CreatedTransaction', shape.object({ ...created, status, ...expansions }));
export const checkedTransaction = shape.named(
  'CheckedTransaction',
  shape.object({
    transaction_id: transactionId,
    status,
    ...received,
    ...expansions,
  }),
);
/** As an event shows it. */
export const transactionThen = shape.named(
  'TransactionThen',
  shape.object({
    transaction_id: transactionId,
    status,
    crypto_selected: shape.word('What it is paid with.', PAYMENT_METHODS),
    ...received,
    label: shape.nullable(shape.string('Reference of your own.', 'order-1042')),
  }),
);
const message = shape.string('Human-readable text.', 'The transaction has been cancelled.');
export const cancelledTransaction = shape.named(
  'CancelledTransaction',
  shape.object({ transaction_id: transactionId, status: shape.constant('cancelled'), message, ...expansions }),
);

export const hasMore = shape.flag('Whether older items follow; pass the last id as starting_after.', false);
const transaction = shape.named(
  'Transaction',
  shape.object({
    ...created,
    ...checked,
    status,
    message,
    crypto_selected: shape.word('What it is paid with.', PAYMENT_METHODS),
    label: shape.nullable(shape.string('Reference of your own.', 'order-1042')),
  }),
);
export const transactionList = shape.object({ success, data: shape.list('Newest first.', transaction), has_more: hasMore });
export const resolvedTransaction = shape.object({
  success,
  transaction: shape.object({ transaction_id: transactionId, status }),
});

const balance = amount('Available for payout.', '0.00038462');
export const accountInfo = shape.object({
  success,
  account: shape.named(
    'Account',
    shape.object({
      affiliate_id: shape.string('Unique merchant identifier.', 'aff_0351dYxk0d1Jt8vTgkN1AM'),
      email: shape.string('Account e-mail address.', 'shop@example.com'),
      business_name: shape.string('Registered business name.', 'The Shop'),
      created_at: time('Account creation time.'),
    }),
  ),
  balances: shape.named(
    'Balances',
    shape.object(Object.fromEntries(CURRENCY_CODES.map((code) => [code, balance])) as Record<CurrencyCode, typeof balance>),
  ),
});

export const settingsReply = shape.object({
  success,
  settings: shape.named(
    'Settings',
    shape.object({
      tolerance_percent: amount('How far a payment may fall short of the amount due, in percent (0 to 5).', '1.00'),
      late_payments: shape.word('What happens to payments after the window.', ['accept', 'review']),
      payout_allow_list: shape.list('Destinations payouts may go to; empty = any.', shape.string('A destination.', ADDRESS)),
      payout_approval_above: shape.nullable(amount('Payouts above this many USD wait for approval; null = none do.', '1000.00')),
      payout_allow_list_from: shape.optional(time('When the list as shown takes effect, while a loosening waits.')),
      payout_approval_above_from: shape.optional(time('When the limit as shown takes effect, while a loosening waits.')),
    }),
  ),
});

const balanceEntry = shape.named(
  'BalanceEntry',
  shape.object({
    entry_id: shape.string('Identifier, a number.', '1042'),
    currency,
    amount: amount('Change of the available balance, signed.', '0.00038462'),
    balance_after: amount('The available balance after it.', '0.00038462'),
    kind: shape.string('What was booked.', 'deposit'),
    transaction_id: shape.optional(transactionId),
    payout_id: shape.optional(shape.string('The payout it belongs to.', PAYOUT_ID)),
    created_at: time('When it was booked.'),
  }),
);
export const entryList = shape.object({ success, data: shape.list('Newest first.', balanceEntry), has_more: hasMore });

export const ratesReply = shape.object({ success, rates: shape.byName(CURRENCY_CODES, rateInfo) });
export const done = shape.object({ success });
