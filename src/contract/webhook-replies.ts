// The answers about events and webhooks, field by field (behaviour §8).
import { CURRENCY_CODES } from '../core/currency.ts';
import { EVENT_TYPES } from '../core/events.ts';
import { PAYOUT_STATUSES } from '../core/payouts/states.ts';
import { TRANSACTION_STATUSES } from '../core/transaction-states.ts';
import { payout } from './payout-replies.ts';
import { amount, hasMore, success, time, transactionThen } from './replies.ts';
import * as shape from './shapes.ts';

const EVENT_ID = 'evt_t0351dYxk0d1Jt8vTgkN1AM2';
const WEBHOOK_ID = 'wh_0351dYxk0d1Jt8vTgkN1AM';
const ADDRESS = 'https://shop.example.com/hooks/bursar';

export const event = shape.named(
  'Event',
  shape.object({
    id: shape.string('Identifier, prefix `evt_`; the same wherever the event is told.', EVENT_ID, { pattern: '^evt_' }),
    type: shape.word('What happened.', EVENT_TYPES, 'transaction.pending'),
    created_at: time('When it happened.'),
    sequence: shape.whole(
      'Its number among the events of its object, from 1 without a gap; higher after the database was put back to an earlier state.',
      2,
    ),
    data: shape.object({
      object: shape.either(transactionThen, payout),
      previous: shape.object({
        status: shape.nullable(
          shape.word('The status before; null for what was created.', [
            ...new Set([...TRANSACTION_STATUSES, ...PAYOUT_STATUSES]),
          ]),
        ),
      }),
      payment: shape.optional(
        shape.object(
          {
            currency: shape.word('What was paid.', CURRENCY_CODES),
            txid: shape.string('Id of the transaction on its chain.', 'ab12'),
            amount: amount('In that currency.', '0.00038462'),
          },
          'The payment that an announcement is about.',
        ),
      ),
    }),
  }),
);
export const eventList = shape.object({ success, data: shape.list('Newest first.', event), has_more: hasMore });

const id = shape.string('Identifier, prefix `wh_`.', WEBHOOK_ID, { pattern: '^wh_' });
const url = shape.string('Where events are sent.', ADDRESS);
export const webhookSecret = shape.object({
  success,
  webhook: shape.object({
    id,
    url,
    secret: shape.string(
      'Signs what is sent (Standard Webhooks 1.0.0); shown this once.',
      'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      {
        pattern: '^whsec_',
      },
    ),
  }),
});
const webhook = shape.named(
  'Webhook',
  shape.object({
    id,
    url,
    events: shape.list('The types it gets.', shape.word('A type.', EVENT_TYPES)),
    enabled: shape.flag('False once its host has answered 410: nothing is sent to it any more.', true),
    created_at: time('Creation time.'),
  }),
);
export const webhookList = shape.object({ success, data: shape.list('Newest first.', webhook), has_more: hasMore });
export const redelivered = shape.object({ success, webhooks: shape.whole('To how many webhooks it is delivered again.', 1) });
