// The answers about payouts, field by field (behaviour §8).
import { LEDGER_CODES } from '../core/currency.ts';
import { HELD_REASONS, PAYOUT_STATUSES } from '../core/payouts/states.ts';
import { PAYOUT_METHODS } from '../core/payouts/units.ts';
import { ADDRESS, amount, currency, hasMore, PAYOUT_ID, success, time } from './replies.ts';
import * as shape from './shapes.ts';

const requested = {
  id: shape.string('Identifier, prefix `payout_`.', PAYOUT_ID, { pattern: '^payout_' }),
  method: shape.word('How the money leaves.', PAYOUT_METHODS, 'bitcoin'),
  amount: amount('Amount requested, as it was sent; the resolved amount for `all`.', '0.05'),
  status: shape.word('How far it is.', PAYOUT_STATUSES, 'processing'),
  created_at: time('Creation time.'),
};

/** Exactly these five fields. */
export const payoutReply = shape.object({ success, payout: shape.named('RequestedPayout', shape.object(requested)) });

export const payout = shape.named(
  'Payout',
  shape.object({
    ...requested,
    fee: shape.nullable(amount('What it cost besides the amount; null until that is known.', '0.00000423')),
    fee_currency: shape.word('Currency of the fee.', LEDGER_CODES),
    destination: shape.nullable(
      shape.string('Where it goes; null while the key is lost with which the number of a bank account was sealed.', ADDRESS),
    ),
    txid: shape.optional(
      shape.nullable(
        shape.string(
          'bitcoin, usdt: id of the transaction that carries it; null until one is signed.',
          '82f33bcc7168481c89b4df851d39bf44a646d5dd957a5df3258c9c90cda26e86',
        ),
      ),
    ),
    payment_hash: shape.optional(shape.nullable(shape.string('lightning: hash of the payment.', 'ab12'))),
    trace: shape.optional(shape.nullable(shape.string('ach: trace number.', '091000010000001'))),
    error: shape.nullable(shape.string('Why it failed.', 'cancelled')),
    held_reason: shape.nullable(shape.word('Why it waits.', HELD_REASONS)),
    completed_at: shape.nullable(time('When the evidence of payment was stored.')),
  }),
);
export const checkedPayout = shape.object({ success, payout });
export const payoutList = shape.object({ success, data: shape.list('Newest first.', payout), has_more: hasMore });

export const payoutSettingsReply = shape.object({
  success,
  settings: shape.named(
    'PayoutSettings',
    shape.object({
      enabled: shape.flag('Whether anything is paid out by itself.', true),
      method: shape.nullable(shape.word('How the money leaves.', PAYOUT_METHODS, 'bitcoin')),
      destination: shape.nullable(shape.string('Where it goes.', ADDRESS)),
      threshold: shape.nullable(amount("The balance from which on it is paid out, in the method's unit.", '0.01000000')),
      leave: shape.nullable(amount("How much of the balance stays, in the method's unit.", '0.00000000')),
      source_currency: shape.nullable(currency),
      paused: shape.flag('Whether it rests until it is set again.', false),
      paused_reason: shape.nullable(shape.string('Why it rests.', 'three payouts in a row failed')),
      destination_usable_at: shape.nullable(time('From when on the destination is used.')),
    }),
  ),
});
