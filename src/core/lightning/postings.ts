// What is booked about our Lightning node besides payments. The account of the payments themselves is in judge/postings.
import { LIGHTNING } from '../currencies/lightning.ts';
import type { Entry } from '../judge/case.ts';
import { negated } from '../money.ts';

/** What our node holds in its channels. */
export const CHANNELS = `asset:ln:${LIGHTNING.balance}`;

/**
 * Fractions of a satoshi that payers gave too much, once they are whole satoshis.
 * @param all how many satoshis of them there were so far: the key, so that each is booked once
 */
export function roundingEntry(all: bigint, unbooked: bigint): Entry {
  return {
    key: `ln:rounding:${all}`,
    kind: 'lightning_rounding',
    postings: [
      { account: CHANNELS, amount: unbooked },
      { account: `income:rounding:${LIGHTNING.balance}`, amount: negated(unbooked) },
    ],
    parts: [],
  };
}

/** What our node has paid, fee included and rounded up, that no payout here has asked for. Satoshis. */
export function lightningOutflowEntry(paymentHash: string, amount: bigint): Entry {
  return {
    key: `unknown:ln:${paymentHash}`,
    kind: 'unknown_outflow',
    postings: [
      { account: `expense:unknown_outflow:${LIGHTNING.balance}`, amount },
      { account: CHANNELS, amount: negated(amount) },
    ],
    parts: [],
  };
}

/** What our channels held when the sandbox was made: the service's own capital. Satoshis. */
export function channelCapitalEntry(amount: bigint): Entry {
  return {
    key: 'capital:ln',
    kind: 'capital',
    postings: [
      { account: CHANNELS, amount },
      { account: `equity:operator:${LIGHTNING.balance}`, amount: negated(amount) },
    ],
    parts: [],
  };
}
