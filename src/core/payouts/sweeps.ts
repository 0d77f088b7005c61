// When a payment on Ethereum's chain is moved to the address that payouts leave from, and how that is booked: only its gas, because the ledger
// has one account for a currency's addresses together.
import { GAS } from '../currencies/evm.ts';
import { ETHER, type EvmCode, isToken } from '../currency.ts';
import type { Entry } from '../judge/case.ts';
import { minus, negated, sum } from '../money.ts';
import type { TransactionFacts } from '../ports.ts';
import type { Rate } from '../rate.ts';
import { type BookedSteps, costLines, nextTime, outBy } from './booked-steps.ts';
import { exactOffer, type GasFees, gasWorth } from './gas.ts';

/** A top-up brings no more than this, in wei: what the dearest transaction of ours may cost. The signer holds it. */
export const MOST_TOP_UP = BigInt(GAS.most) * GAS.mostFee;

/** What moving a payment costs now, in wei: a token's needs ether, which is sent there first. */
function sweepGas(currency: EvmCode, fees: GasFees): bigint {
  const { maxFee } = exactOffer(fees);
  return BigInt(isToken(currency) ? GAS.token + GAS.plain : GAS.plain) * maxFee;
}

/** The least that is worth moving, in minor units; null where there is no price. @param multiple how many times the gas */
export function leastSwept(
  currency: EvmCode,
  { fees, multiple, rates }: { readonly fees: GasFees; readonly multiple: number; readonly rates: Rates },
): bigint | null {
  return gasWorth(currency, sweepGas(currency, fees) * BigInt(multiple), rates);
}
type Rates = ReadonlyMap<string, { readonly usd: Rate }>;

/** What arrives of ether that is moved: all but its gas, which is paid whole because both fees of its transaction are the same. */
export const sweptEther = (total: bigint, gas: number, maxFee: bigint): bigint => minus(total, BigInt(gas) * maxFee);

/** The block of a sweep or a top-up is final, whether it succeeded or not. Null when its gas cost what is booked of it. */
export function sweepGasEntry(batchId: string, wei: bigint, booked: BookedSteps): Entry | null {
  const accounts = { expense: `expense:network_fee:${ETHER}`, income: `income:gas:${ETHER}`, assets: `asset:chain:${ETHER}` };
  const postings = costLines(accounts, wei, outBy(booked, 'gas'));
  return postings.length === 0 ? null : nextTime({ key: `sweep:${batchId}:gas`, kind: 'gas_paid', postings, parts: [] }, booked);
}

/**
 * What a token's contract has kept of a transfer for itself, as its own events say: all of them are of what the sender had, and together just what was
 * to be moved. Null for anything else, of which nobody but a person knows what it has done.
 */
export function keptOf(
  { outputs, outcome }: Pick<TransactionFacts, 'outputs' | 'outcome'>,
  { target, amount }: { readonly target: Uint8Array; readonly amount: bigint },
): bigint | null {
  if (outcome?.result !== 'unclear' || outputs.length === 0 || outputs.some(({ sentOn }) => sentOn === true)) return null;
  const payee = Buffer.from(target).toString('hex');
  const amounts = (all: typeof outputs) => sum(all.map(({ amountMinor }) => amountMinor));
  const arrived = amounts(outputs.filter(({ script }) => script === payee));
  return amounts(outputs) === amount && arrived < amount ? minus(amount, arrived) : null;
}

/** What of a transfer has not arrived at its target, as the events say whatever else they are; null: all has. */
export function notArrived(
  { outputs }: Pick<TransactionFacts, 'outputs'>,
  { target, amount }: { readonly target: Uint8Array; readonly amount: bigint },
): bigint | null {
  const payee = Buffer.from(target).toString('hex');
  const arrived = sum(outputs.flatMap(({ script, amountMinor }) => (script === payee ? [amountMinor] : [])));
  return arrived < amount ? minus(amount, arrived) : null;
}

/** What a token's contract has kept of a sweep that is final, as the difference to what is booked of that; null where there is none. */
export function keptEntry(batchId: string, currency: EvmCode, kept: bigint, booked: BookedSteps): Entry | null {
  const more = minus(kept, outBy(booked, 'kept'));
  if (more === 0n) return null;
  const postings = [
    { account: `expense:token_fee:${currency}`, amount: more },
    { account: `asset:chain:${currency}`, amount: negated(more) },
  ];
  return nextTime({ key: `sweep:${batchId}:kept`, kind: 'token_fee_paid', postings, parts: [] }, booked);
}

/** What is gone from an address for good, as an operator has said; below zero: it is there again. @param number of this address, from 1 on */
export function writeOffEntry(currency: EvmCode, { address, number, amount }: WriteOffOf): Entry {
  return {
    key: `written_off:${currency.toLowerCase()}:${address}:${number}`,
    kind: amount > 0n ? 'written_off' : 'write_off_taken_back',
    postings: [
      { account: `expense:written_off:${currency}`, amount },
      { account: `asset:chain:${currency}`, amount: negated(amount) },
    ],
    parts: [],
  };
}
type WriteOffOf = { readonly address: string; readonly number: number; readonly amount: bigint };
