// What answers look like on the wire, field by field (behaviour §8). Types, serialisers and documents come from here;
// nothing is validated with these at run time.
import { z } from 'zod';
import { CURRENCY_CODES } from '../core/currency.ts';
import { TRANSACTION_STATUSES } from '../core/transaction-states.ts';

const amount = (about: string) => z.string().meta({ description: about, pattern: '^-?(0|[1-9][0-9]*)(\\.[0-9]+)?$' });
const time = (about: string) => z.string().meta({ description: about, format: 'date-time' });
const status = z.enum(TRANSACTION_STATUSES).meta({ description: 'Status of the transaction.' });
const transactionId = z.string().meta({ description: 'Identifier, prefix `txn_`.', pattern: '^txn_' });
const success = z.literal(true);
const rateInfo = z.object({
  usd: amount('USD for one coin.'),
  at: time('When the sources were asked for it.'),
  sources: z
    .array(z.object({ source: z.string(), usd: amount('Its price.'), at: time('When it said so.') }))
    .meta({ description: 'The sources that were used.' }),
});

export const tokenPair = z.object({
  access_token: z.string().meta({ description: 'JWT, valid for 15 minutes.' }),
  token_type: z.literal('bearer'),
  refresh_token: z.string().meta({ description: 'JWT, valid for 15 days, single use.' }),
});

/** Added to create, check and cancel by `expand` only. */
const expansions = {
  payments: z
    .array(
      z.object({
        txid: z.string(),
        amount: amount('In the currency of the coin that was paid.'),
        confirmations: z.int().min(0),
        seen_at: time('When it was first seen.'),
        counted: z.boolean().meta({ description: 'Whether it counts towards the amount due.' }),
      }),
    )
    .optional(),
  events: z.array(z.object({ status, at: time('When.'), reason: z.string() })).optional(),
  refund: z
    .object({
      status: z.string(),
      amount: amount('What goes back to the customer.'),
      destination: z.string(),
      txid: z.string().nullable(),
      fee: amount('Network fee.').nullable(),
    })
    .nullable()
    .optional(),
  rate: rateInfo.optional(),
};

const created = {
  transaction_id: transactionId,
  wallet_address: z.string().meta({ description: 'Address the customer pays to.' }),
  qr_code: z.string().meta({ description: 'PNG as a data URI; it decodes to a payment URI (BIP 321).' }),
  crypto_amount: amount('Amount of cryptocurrency requested.'),
  usd_amount: amount('USD amount.'),
  exchange_rate: amount('USD for one coin, exactly the number used.'),
  expires_at: time('End of the payment window.'),
};
const checked = {
  crypto_received: amount('Amount of cryptocurrency received.'),
  confirmations: z.int().min(0).meta({ description: 'Blockchain confirmations.' }),
  created_at: time('Creation time.'),
  confirmed_at: time('When enough confirmations were reached; null until then.').nullable(),
};

export const createdTransaction = z.object({ ...created, status, ...expansions });
export const checkedTransaction = z.object({
  transaction_id: transactionId,
  status,
  crypto_amount: created.crypto_amount,
  crypto_received: checked.crypto_received,
  confirmations: checked.confirmations,
  usd_amount: created.usd_amount,
  created_at: checked.created_at,
  confirmed_at: checked.confirmed_at,
  ...expansions,
});
const message = z.string().meta({ description: 'Human-readable text.' });
export const cancelledTransaction = z.object({
  transaction_id: transactionId,
  status: z.literal('cancelled'),
  message,
  ...expansions,
});

const hasMore = z.boolean().meta({ description: 'Whether older items follow; pass the last id as starting_after.' });
export const transactionList = z.object({
  success,
  data: z.array(
    z.object({
      ...created,
      ...checked,
      status,
      message,
      crypto_selected: z.enum([...CURRENCY_CODES, 'BTC-LN']),
      label: z.string().nullable(),
    }),
  ),
  has_more: hasMore,
});
export const resolvedTransaction = z.object({ success, transaction: z.object({ transaction_id: transactionId, status }) });

export const payoutReply = z.object({
  success,
  payout: z.object({
    id: z.string().meta({ description: 'Identifier, prefix `payout_`.' }),
    method: z.enum(['lightning', 'bitcoin', 'ach', 'usdt']),
    amount: amount('Amount requested, as it was sent.'),
    status: z.enum(['pending', 'processing', 'completed', 'failed']),
    created_at: time('Creation time.'),
  }),
});

const byCode = <T extends z.ZodType>(value: T) =>
  z.object(Object.fromEntries(CURRENCY_CODES.map((code) => [code, value])) as Record<(typeof CURRENCY_CODES)[number], T>);

export const accountInfo = z.object({
  success,
  account: z.object({
    affiliate_id: z.string().meta({ description: 'Unique merchant identifier.' }),
    email: z.string().meta({ description: 'Account e-mail address.' }),
    business_name: z.string().meta({ description: 'Registered business name.' }),
    created_at: time('Account creation time.'),
  }),
  balances: byCode(amount('Available for payout.')),
});

export const settingsReply = z.object({
  success,
  settings: z.object({
    tolerance_percent: amount('How far a payment may fall short of the amount due, in percent (0 to 5).'),
    late_payments: z.enum(['accept', 'review']).meta({ description: 'What happens to payments after the window.' }),
    payout_allow_list: z.array(z.string()).meta({ description: 'Destinations payouts may go to; empty = any.' }),
    payout_approval_above: amount('Payouts above this many USD wait for approval; null = none do.').nullable(),
    payout_allow_list_from: time('When the list as shown takes effect, while a loosening waits.').optional(),
    payout_approval_above_from: time('When the limit as shown takes effect, while a loosening waits.').optional(),
  }),
});

export const entryList = z.object({
  success,
  data: z.array(
    z.object({
      entry_id: z.string(),
      currency: z.enum(CURRENCY_CODES),
      amount: amount('Change of the available balance, signed.'),
      balance_after: amount('The available balance after it.'),
      kind: z.string().meta({ description: 'What was booked.' }),
      transaction_id: z.string().optional(),
      payout_id: z.string().optional(),
      created_at: time('When it was booked.'),
    }),
  ),
  has_more: hasMore,
});

export const ratesReply = z.object({ success, rates: z.partialRecord(z.enum(CURRENCY_CODES), rateInfo) });
export const done = z.object({ success });
