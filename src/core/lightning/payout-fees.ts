// What a payout over Lightning may cost, and what it costs: the real routing fee, at most ten satoshis or 1 % (behaviour §5).
import { MSAT } from '../currencies/lightning.ts';
import { atLeastZero, basisPointsDown, greatest, least, minus, mulDivDown, mulDivUp, plus } from '../money.ts';

const LEAST_LIMIT = 10n;
const LIMIT_BPS = 100;

/** The most that paying an amount may cost. Satoshis. */
export function feeLimit(amount: bigint): bigint {
  return greatest(LEAST_LIMIT, basisPointsDown(amount, LIMIT_BPS));
}

/** The largest amount that leaves room for its highest fee; 0 when there is none. Satoshis. */
export function mostPayable(available: bigint): bigint {
  // the fee grows by a satoshi with every hundred of the amount: a step more is tried, since both were rounded down
  const byShare = mulDivDown(available, 100n, 101n);
  const more = plus(byShare, 1n);
  const fits = plus(more, feeLimit(more)) <= available ? more : byShare;
  return least(fits, atLeastZero(minus(available, LEAST_LIMIT)));
}

/** The smallest amount that leaves something after the highest fee. Satoshis. */
export const LEAST_REFUND = plus(1n, LEAST_LIMIT);

/**
 * What an invoice may be of that pays a whole back: at most what leaves the highest fee in it, at least that less the same again, since what
 * it leaves is gone for its recipient. Satoshis; `most` is 0 below {@link LEAST_REFUND}.
 */
export function refundRange(total: bigint): { readonly least: bigint; readonly most: bigint } {
  const most = mostPayable(total);
  return { least: greatest(1n, minus(most, feeLimit(total))), most };
}

/** What a fee costs the merchant: whole satoshis, rounded up, never above what was held. */
export function chargedFee(feeMsat: bigint, held: bigint): bigint {
  return least(held, mulDivUp(feeMsat, 1n, MSAT));
}

/**
 * Whether what the node has paid for a hash is what a payout asks for: its amount, for no more than its highest fee, which the node is told with each request.
 * The node pays each hash once, and may have been asked by somebody else.
 * @param said msat
 * @param payout what its recipient gets, and its highest fee; satoshis
 */
export const isWhatWasAsked = (
  said: { readonly amountMsat: string; readonly feeMsat: string },
  { amount, feeMax }: { readonly amount: bigint; readonly feeMax: bigint },
): boolean => BigInt(said.amountMsat) === mulDivDown(amount, MSAT, 1n) && BigInt(said.feeMsat) <= mulDivDown(feeMax, MSAT, 1n);
