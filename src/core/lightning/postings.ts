// What is booked about our Lightning node besides payments. The account of the payments themselves is in judge/postings.
import { LIGHTNING, MSAT } from '../currencies/lightning.ts';
import type { Entry } from '../judge/case.ts';
import { atLeastZero, least, minus, mulDivDown, mulDivUp, negated, plus } from '../money.ts';
import type { WalletTransaction } from './port.ts';

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

/**
 * What of our node is its operator's: all that it has in its channels and its wallet, less what payments brought there and payouts left.
 */
export const OPERATORS_PART = `asset:ln:operator:${LIGHTNING.balance}`;
const OPERATORS_EQUITY = `equity:operator:ln:${LIGHTNING.balance}`;
const CHANNEL_COSTS = `expense:ln:channels:${LIGHTNING.balance}`;
const LOSSES = `expense:ln:lost:${LIGHTNING.balance}`;

/** What the operator had at a node when it was first looked at. Satoshis. */
export function operatorsOpeningEntry(identity: string, amount: bigint): Entry {
  return {
    key: `ln:opening:${identity}`,
    kind: 'lightning_opening',
    postings: [
      { account: OPERATORS_PART, amount },
      { account: OPERATORS_EQUITY, amount: negated(amount) },
    ],
    parts: [],
  };
}

/**
 * What a node has earned by forwarding, once it is whole satoshis.
 * @param all how many satoshis of it there were so far: the key, so that each is booked once
 */
export function routingEntry(identity: string, all: bigint, unbooked: bigint): Entry {
  return {
    key: `ln:routed:${identity}:${all}`,
    kind: 'lightning_routing',
    postings: [
      { account: OPERATORS_PART, amount: unbooked },
      { account: `income:routing:${LIGHTNING.balance}`, amount: negated(unbooked) },
    ],
    parts: [],
  };
}

/**
 * What a transaction of the node's wallet has done to all that the node has: the fee of one that opens channels, or that does nothing but pay a fee
 * (it makes another go faster, or puts outputs together), is a cost, everything else the operator has put there or taken away (also what he has given
 * to the other side of a channel). Null where it has only moved.
 */
export function walletEntry({ txid, amount, fee, intoChannels }: WalletTransaction): Entry | null {
  const change = plus(intoChannels, amount);
  const isFeeAlone = change === negated(fee);
  const cost = intoChannels === 0n && !isFeeAlone ? 0n : least(fee, atLeastZero(negated(change)));
  const own = plus(change, cost);
  const postings = [
    { account: OPERATORS_PART, amount: change },
    { account: CHANNEL_COSTS, amount: cost },
    { account: OPERATORS_EQUITY, amount: negated(own) },
  ].filter((line) => line.amount !== 0n);
  return postings.length < 2 ? null : { key: `ln:wallet:${txid}`, kind: 'lightning_wallet', postings, parts: [] };
}

/** What closing channels has cost, with what was spent to get everything back; named by the last of them. Satoshis. */
export function closingEntry(channelPoint: string, cost: bigint): Entry {
  return {
    key: `ln:closed:${channelPoint}`,
    kind: 'lightning_closing',
    postings: [
      { account: CHANNEL_COSTS, amount: cost },
      { account: OPERATORS_PART, amount: negated(cost) },
    ],
    parts: [],
  };
}

export type OwnPayment = { readonly amountMsat: bigint; readonly feeMsat: bigint; readonly cameBackMsat: bigint };

/** What is gone from the node by what its operator has paid himself: rounded up, less what he has paid to the node itself. Satoshis. */
export const goneBy = ({ amountMsat, feeMsat, cameBackMsat }: OwnPayment): bigint =>
  mulDivUp(minus(plus(amountMsat, feeMsat), cameBackMsat), 1n, MSAT);

/** What the operator has paid himself from our node: its fee is a cost, what has not come back he has taken. Null where nothing is gone. */
export function ownPaymentEntry(paymentHash: string, payment: OwnPayment): Entry | null {
  const gone = goneBy(payment);
  const taken = mulDivDown(minus(payment.amountMsat, payment.cameBackMsat), 1n, MSAT);
  const postings = [
    { account: OPERATORS_EQUITY, amount: taken },
    { account: CHANNEL_COSTS, amount: minus(gone, taken) },
    { account: OPERATORS_PART, amount: negated(gone) },
  ].filter((line) => line.amount !== 0n);
  return postings.length < 2 ? null : { key: `ln:own:${paymentHash}`, kind: 'lightning_own', postings, parts: [] };
}

/**
 * What a node has less than the books, once its operator has said what it was: he has taken it, or it is lost.
 * @param atMs when it was compared: with that each difference is booked once
 */
export function missingEntry(
  identity: string,
  of: { readonly amount: bigint; readonly isOwn: boolean; readonly atMs: number },
): Entry {
  return {
    key: `ln:missing:${identity}:${of.atMs}`,
    kind: 'lightning_missing',
    postings: [
      { account: of.isOwn ? OPERATORS_EQUITY : LOSSES, amount: of.amount },
      { account: OPERATORS_PART, amount: negated(of.amount) },
    ],
    parts: [],
  };
}

/** What our node was paid for an invoice that no transaction here has asked for, once its operator has seen that: it is his to give back. Satoshis. */
export function unknownReceiptEntry(paymentHash: string, amount: bigint): Entry {
  return {
    key: `ln:unknown:${paymentHash}`,
    kind: 'unknown_inflow',
    postings: [
      { account: OPERATORS_PART, amount },
      { account: OPERATORS_EQUITY, amount: negated(amount) },
    ],
    parts: [],
  };
}
