// What a transaction on Ethereum's chain may cost: the fee that it offers, what is held for a payout, what of it the payout is charged.
// Fees are wei for each unit of gas (EIP-1559).
import { GAS } from '../currencies/evm.ts';
import { CURRENCIES, ETHER, type EvmCode, isToken } from '../currency.ts';
import { greatest, least, mulDivUp, plus } from '../money.ts';
import type { Rate } from '../rate.ts';

export type GasFees = { readonly base: bigint; readonly tip: bigint };
/** maxFeePerGas and maxPriorityFeePerGas. */
export type GasOffer = { readonly maxFee: bigint; readonly tip: bigint };

const bounded = (fee: bigint): bigint => greatest(GAS.leastFee, least(fee, GAS.mostFee));

/** What is offered for a payout: twice today's base fee may be asked for before it has to wait. What is not needed is not paid. */
export function payoutOffer({ base, tip }: GasFees): GasOffer {
  const maxFee = bounded(plus(base * 2n, tip));
  return { maxFee, tip: least(greatest(tip, 1n), maxFee) };
}

/** What is offered where the cost must be known before: the whole is paid, whatever the block asks for. A quarter above today's. */
export function exactOffer({ base, tip }: GasFees): GasOffer {
  const maxFee = bounded(plus(mulDivUp(base, 5n, 4n), tip));
  return { maxFee, tip: maxFee };
}

/** Whether every node takes an offer in place of another: an eighth more of both fees, where nodes ask for a tenth. */
export const isReplacement = (offer: GasOffer, last: GasOffer): boolean =>
  offer.maxFee >= mulDivUp(last.maxFee, 9n, 8n) && offer.tip >= mulDivUp(last.tip, 9n, 8n);

/** A replacement offers an eighth more of both than any before it, which every node takes, and what is asked for now where that is more. */
export function replacementOffer(lastMaxFee: bigint, today: GasFees): GasOffer {
  const maxFee = greatest(mulDivUp(lastMaxFee, 9n, 8n), exactOffer(today).maxFee);
  return { maxFee, tip: maxFee };
}

/** What a call takes at least before anything is run (EIP-7623's least, which is above that of EIP-2028): with less no block takes it, nor anything behind its nonce. @param input 0x and hex */
export function leastGas(input: string): number {
  const bytes = Buffer.from(input.slice(2), 'hex');
  const zeros = bytes.filter((byte) => byte === 0).length;
  const others = bytes.length - zeros;
  return GAS.plain + 10 * (zeros + 4 * others);
}

/** The most gas that a call is given, by what nodes say that it uses: a plain transfer uses exactly its own. @param input 0x and hex */
export function gasLimit(estimate: number, input: string): number {
  const used = Math.max(estimate, leastGas(input));
  return used <= GAS.plain ? GAS.plain : Math.min(GAS.most, Math.ceil(used * 1.25));
}

/** What gas that costs this many wei is worth in minor units of a currency, rounded up. */
export function gasWorth(currency: EvmCode, wei: bigint, rates: ReadonlyMap<string, { readonly usd: Rate }>): bigint | null {
  if (!isToken(currency)) return wei;
  const [ether, own] = [rates.get(ETHER)?.usd, rates.get(currency)?.usd];
  if (ether === undefined || own === undefined) return null;
  return mulDivUp(wei * ether, 10n ** BigInt(CURRENCIES[currency].decimals), own * 10n ** BigInt(CURRENCIES[ETHER].decimals));
}

/** What is held for a payout's gas, in wei: half as much again as a transfer to a new address may cost at this fee. */
export function reservedGas(maxFee: bigint): bigint {
  return (BigInt(GAS.token) * bounded(maxFee) * 3n) / 2n;
}

/** What a transfer is expected to cost at this fee, in wei. */
export function usualGas(currency: EvmCode, maxFee: bigint): bigint {
  return BigInt(isToken(currency) ? GAS.token : GAS.plain) * bounded(maxFee);
}

/**
 * What a payout is charged: as much of the fee that was signed as its gas has cost of the most that it could cost, rounded up.
 * @param first the fee, gas and offer of its first transaction: what a replacement costs more is the service's
 */
export function chargedGas(
  first: { readonly fee: bigint; readonly gas: number; readonly maxFee: bigint },
  gasPaid: bigint,
): bigint {
  return least(first.fee, mulDivUp(first.fee, gasPaid, BigInt(first.gas) * first.maxFee));
}
