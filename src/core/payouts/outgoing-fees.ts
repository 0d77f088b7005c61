// What a transaction on a chain costs: its size before it is signed (BIP141 virtual bytes), the fee at a rate, each payout's share, and the
// most that a payout may be charged. Rates are minor units per 1,000 virtual bytes.
import { type OwnAddressKind, SCRIPT_FORMS } from '../currencies/utxo.ts';
import { type UtxoCode, utxoRow } from '../currency.ts';
import { greatest, least, minus, mulDivUp, plus, sum } from '../money.ts';

/** Version, lock time, counts of inputs and outputs (up to 252), and the segwit marker, rounded up. */
const FRAME_VBYTES = 11;
/** A signed input of ours: outpoint, sequence, script and signature at their longest. P2WPKH: 41 + (1 + 73 + 34) / 4. */
const INPUT_VBYTES = { p2wpkh: 68, p2pkh: 149 } as const;
export type InputKind = keyof typeof INPUT_VBYTES;
/** The inputs that spend each kind of our addresses, and whether their signatures cover the amounts (BIP143, also in Bitcoin Cash's form). */
const INPUTS: Readonly<Record<OwnAddressKind, { readonly kind: InputKind; readonly coversAmounts: boolean }>> = {
  p2wpkh: { kind: 'p2wpkh', coversAmounts: true },
  p2pkh: { kind: 'p2pkh', coversAmounts: false },
  'cashaddr-p2pkh': { kind: 'p2pkh', coversAmounts: true },
};
const inputsOf = (currency: UtxoCode) => INPUTS[utxoRow(currency).utxo.addressKind];
/** What our addresses of a currency are, and so our inputs. */
export const inputKind = (currency: UtxoCode): InputKind => inputsOf(currency).kind;
/** Whether the signatures of a currency cover the amounts of its inputs; where they do not, the signer must see what made each. */
export const coversAmounts = (currency: UtxoCode): boolean => inputsOf(currency).coversAmounts;
const outputVbytes = (scriptBytes: number): number => 9 + scriptBytes;

/** The size of a transaction with these inputs and output scripts, at most one byte an input too large. */
export function virtualBytes(inputs: readonly InputKind[], scriptLengths: readonly number[]): number {
  const ins = inputs.reduce((total, kind) => total + INPUT_VBYTES[kind], 0);
  return FRAME_VBYTES + ins + scriptLengths.reduce((total, length) => total + outputVbytes(length), 0);
}

const MOST_INPUTS = 200;
/** Where the signer must be shown every transaction that made an input, of up to 100,000 bytes each. */
const MOST_SHOWN_INPUTS = 30;

/** Inputs that one transaction has at most. */
export function mostInputs(currency: UtxoCode): number {
  return coversAmounts(currency) ? MOST_INPUTS : MOST_SHOWN_INPUTS;
}

/** How many of these outputs, the largest first, make an amount; all of them and one more where they do not. */
export function inputsFor(amount: bigint, largestFirst: readonly bigint[]): number {
  let left = amount;
  for (const [at, output] of largestFirst.entries()) {
    left = minus(left, output);
    if (left <= 0n) return at + 1;
  }
  return largestFirst.length + 1;
}

/** The fee of this many virtual bytes, rounded up. */
export function feeOf(vbytes: number, ratePerKvb: bigint): bigint {
  return mulDivUp(BigInt(vbytes), ratePerKvb, 1000n);
}

/** What it costs to spend one output later: below it change is worth less than its own fee. */
export function worthSpending(kind: InputKind, ratePerKvb: bigint): bigint {
  return feeOf(INPUT_VBYTES[kind], ratePerKvb);
}

const ratesOf = (currency: UtxoCode) => utxoRow(currency).utxo.feeRates;

/** An estimate of a node within what may be paid. */
export function boundedRate(currency: UtxoCode, estimate: bigint): bigint {
  const { least: lowest, highest } = ratesOf(currency);
  return greatest(lowest, least(estimate, highest));
}

/** A payout alone in its transaction: four inputs, its own output, and the change. */
const RESERVED_VBYTES = 400;
const RESERVED_INPUTS = 4;
/** To how many times today's estimate, and at least how many times the lowest rate, the fee may rise before a payout has to wait. */
const RESERVED_TIMES = 3n;
const RESERVED_TIMES_LOWEST = 10n;

/**
 * What is held for the network fee of a payout that is requested at this estimate.
 * @param inputs how many of our outputs its amount needs
 */
export function reservedFee(currency: UtxoCode, estimate: bigint, inputs = 1): bigint {
  // one more than the amount needs pays the fee itself
  const more = Math.max(0, Math.min(inputs + 1, mostInputs(currency)) - RESERVED_INPUTS);
  const vbytes = RESERVED_VBYTES + more * INPUT_VBYTES[inputKind(currency)];
  const lowest = ratesOf(currency).least * RESERVED_TIMES_LOWEST;
  return feeOf(vbytes, boundedRate(currency, greatest(lowest, boundedRate(currency, estimate) * RESERVED_TIMES)));
}

const LONGEST_SCRIPT = 34;

/** What a transaction with two inputs, one payee and change costs at this estimate. */
export function usualFee(currency: UtxoCode, estimate: bigint): bigint {
  const kind = inputKind(currency);
  const vbytes = virtualBytes([kind, kind], [LONGEST_SCRIPT, SCRIPT_FORMS[kind].bytes]);
  return feeOf(vbytes, boundedRate(currency, estimate));
}

/**
 * A replacement pays a quarter more than the last attempt, at least: nodes ask only for their incremental relay fee on top (BIP125 rule 4),
 * and so little would not move a transaction that is stuck. From 1 to 500 satoshis a virtual byte it takes under 30 attempts.
 */
const REPLACEMENT_INCREASE_DIVISOR = 4n;

/** The rate of a replacement: enough above the last for every node to take it (BIP125 rule 4), and today's estimate where that is higher. */
export function replacementRate(currency: UtxoCode, last: bigint, estimate: bigint): bigint {
  return boundedRate(
    currency,
    greatest(estimate, plus(last, greatest(ratesOf(currency).least, mulDivUp(last, 1n, REPLACEMENT_INCREASE_DIVISOR)))),
  );
}

/**
 * Divides a transaction's fee among its payouts equally; the first ones carry what is left over. Their sum is the fee.
 * @param payouts how many, at least one
 */
export function shares(fee: bigint, payouts: number): readonly bigint[] {
  const each = fee / BigInt(payouts);
  let rest = minus(fee, sum(Array.from({ length: payouts }, () => each)));
  return Array.from({ length: payouts }, () => {
    if (rest === 0n) return each;
    rest = minus(rest, 1n);
    return plus(each, 1n);
  });
}
