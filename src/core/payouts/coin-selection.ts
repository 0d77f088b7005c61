// Which of our outputs a batch spends. Outputs are taken in the order of preference until they suffice, and change that would be dust is avoided;
// while fees are low and there are many outputs, a few small ones more are spent along, so that they do not pile up.
import { minus, plus, sum } from '../money.ts';
import { feeOf, type InputKind, virtualBytes, worthSpending } from './outgoing-fees.ts';

export type UnspentOutput = { readonly txid: string; readonly vout: number; readonly amount: bigint };
export type Selection = {
  readonly inputs: readonly UnspentOutput[];
  readonly fee: bigint;
  readonly vbytes: number;
  /** 0 = no change output. */
  readonly change: bigint;
};

export type SelectionWanted = {
  readonly kind: InputKind;
  /** What the payees get, all of them. */
  readonly amount: bigint;
  /** The lengths of the payees' output scripts in bytes. */
  readonly scriptLengths: readonly number[];
  /** The length of a change script. */
  readonly changeLength: number;
  /** The smallest output that nodes relay. */
  readonly dust: bigint;
  readonly ratePerKvb: bigint;
  /** What the payees get contains the fee: it is taken from their amounts, and not from the change. */
  readonly isFeeInside: boolean;
  /** Up to this rate outputs are gathered; null = never. */
  readonly gatherUpTo: bigint | null;
  readonly mostInputs: number;
};

/** How many more outputs than needed are gathered, … */
const GATHERED = 10;
/** … as long as this many are left for the next batches. */
const LEFT = 50;

/**
 * Ways to choose inputs, the dearest first: with small outputs spent along, in the order of preference, and the largest only. None when the
 * outputs do not suffice. Outputs that are worth less than their own input are left out. What is too small for a change output goes to the fee.
 * @param outputs those that may be spent, in the order of preference
 */
export function selections(outputs: readonly UnspentOutput[], wanted: SelectionWanted): readonly Selection[] {
  const { kind, ratePerKvb, gatherUpTo, mostInputs } = wanted;
  const useful = outputs.filter((output) => output.amount > worthSpending(kind, ratePerKvb));
  const needed: UnspentOutput[] = [];
  for (const output of useful) {
    if (completed(needed, wanted) !== null || needed.length === mostInputs) break;
    needed.push(output);
  }
  const plain = completed(needed, wanted);
  const largest = withLargest(useful, wanted);
  const found = [plain, largest].filter((one) => one !== null);
  const [first] = found;
  if (first === undefined || gatherUpTo === null || ratePerKvb > gatherUpTo) return found;
  const taken = new Set(first.inputs);
  const small = useful.filter((output) => !taken.has(output)).sort((a, b) => (a.amount < b.amount ? -1 : 1));
  const gathered = small.slice(0, Math.max(0, Math.min(GATHERED, small.length - LEFT, mostInputs - first.inputs.length)));
  const along = gathered.length === 0 ? null : completed([...first.inputs, ...gathered], wanted);
  return along === null ? found : [along, ...found];
}

/** The first of {@link selections}; null when there is none. */
export function selectOutputs(outputs: readonly UnspentOutput[], wanted: SelectionWanted): Selection | null {
  return selections(outputs, wanted)[0] ?? null;
}

/** Where the preferred order needs too many inputs: the largest outputs. */
function withLargest(outputs: readonly UnspentOutput[], wanted: SelectionWanted): Selection | null {
  const sorted = outputs.toSorted((a, b) => (a.amount > b.amount ? -1 : 1));
  for (let count = 1; count <= Math.min(wanted.mostInputs, sorted.length); count++) {
    const selection = completed(sorted.slice(0, count), wanted);
    if (selection !== null) return selection;
  }
  return null;
}

/** These inputs with their fee and change; null when they do not suffice. */
export function completed(inputs: readonly UnspentOutput[], wanted: SelectionWanted): Selection | null {
  if (wanted.isFeeInside) return withFeeInside(inputs, wanted);
  const kinds = inputs.map(() => wanted.kind);
  const total = sum(inputs.map((output) => output.amount));
  const without = virtualBytes(kinds, wanted.scriptLengths);
  const left = minus(total, plus(wanted.amount, feeOf(without, wanted.ratePerKvb)));
  if (inputs.length === 0 || left < 0n) return null;
  const withChange = virtualBytes(kinds, [...wanted.scriptLengths, wanted.changeLength]);
  const fee = feeOf(withChange, wanted.ratePerKvb);
  const change = minus(total, plus(wanted.amount, fee));
  // change must be worth more than it costs to spend it later
  if (change >= wanted.dust && change > worthSpending(wanted.kind, wanted.ratePerKvb))
    return { inputs, fee, vbytes: withChange, change };
  return { inputs, fee: minus(total, wanted.amount), vbytes: without, change: 0n };
}

/** Change is what the payees' amounts leave of the inputs, whatever the fee is: a replacement changes what the payees get, and nothing else. */
function withFeeInside(inputs: readonly UnspentOutput[], wanted: SelectionWanted): Selection | null {
  const change = minus(sum(inputs.map((output) => output.amount)), wanted.amount);
  if (inputs.length === 0 || change < 0n || (change > 0n && change < wanted.dust)) return null;
  const lengths = change === 0n ? wanted.scriptLengths : [...wanted.scriptLengths, wanted.changeLength];
  const vbytes = virtualBytes(
    inputs.map(() => wanted.kind),
    lengths,
  );
  return { inputs, fee: feeOf(vbytes, wanted.ratePerKvb), vbytes, change };
}
