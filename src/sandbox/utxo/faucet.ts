// Makes the transactions of the outside world: payments from the faucet, fee replacements, and double spends back into it. Reads the
// chain's state, changes nothing.
import { greatest, minus, mulDivUp, plus, sum } from '../../core/money.ts';
import { type ChainState, conflictsOf, feeOf, isMature } from './chain-state.ts';
import { faucetScript, signedByFaucet } from './faucet-key.ts';
import { type Input, type Output, type Parts, RBF_SEQUENCE, sealed, type Transaction } from './transaction.ts';

/** Upper bounds of virtual sizes: a P2WPKH and a P2PKH input; and version, counts and lock time together. */
const WITNESS_INPUT_VSIZE = 69;
const INPUT_VSIZE = 149;
const FRAME_VSIZE = 14;
/** Change below this goes to the miner, as does what the currency's policy calls small. */
const LEAST_CHANGE = 10_000n;

type UnspentOutput = { readonly txid: string; readonly vout: number; readonly minor: bigint };

const NO_SCRIPT = Buffer.alloc(0);
const inputOf = (output: UnspentOutput): Input => ({
  txid: output.txid,
  vout: output.vout,
  scriptSig: NO_SCRIPT,
  sequence: RBF_SEQUENCE,
  witness: [],
});
const total = (unspent: readonly UnspentOutput[]): bigint => sum(unspent.map((output) => output.minor));

const leastChange = (state: ChainState): bigint => greatest(LEAST_CHANGE, state.dialect.smallOutputMinor);

function feeFor(state: ChainState, inputs: number, outputs: readonly Output[]): bigint {
  const outputsSize = outputs.reduce((size, output) => size + 9 + output.script.length, 0);
  const vsize = FRAME_VSIZE + inputs * (state.dialect.segwit ? WITNESS_INPUT_VSIZE : INPUT_VSIZE) + outputsSize;
  return mulDivUp(state.dialect.faucetFeePerKvb, BigInt(vsize), 1000n);
}

/** The mempool transactions that leave when this one leaves: itself and everything that spends it. */
export function withDescendants(state: ChainState, txid: string): ReadonlySet<string> {
  const found = new Set([txid]);
  for (const each of found) {
    state.alive.get(each)?.transaction.outputs.forEach((_, vout) => {
      const spender = state.spenders.get(`${each}:${vout}`);
      if (spender !== undefined) found.add(spender);
    });
  }
  return found;
}

/** Fees of all that would leave the mempool if these left. */
function feesLost(state: ChainState, txids: readonly string[]): bigint {
  const lost = new Set(txids.flatMap((txid) => [...withDescendants(state, txid)]));
  return sum([...lost].map((txid) => feeOf(state, state.alive.get(txid)?.transaction as Transaction) ?? 0n));
}

/** The faucet's outputs that may be spent now, confirmed ones first, oldest first. */
function* spendable(state: ChainState, without: ReadonlySet<string>): Generator<UnspentOutput> {
  for (const confirmed of [true, false]) {
    for (const [key, minor] of state.faucetOutputs) {
      const [txid = '', vout = ''] = key.split(':');
      const source = state.alive.get(txid);
      if (source === undefined || without.has(txid) || (source.block !== null) !== confirmed) continue;
      const output = { txid, vout: Number(vout), minor };
      if (!source.transaction.coinbase || isMature(state, { ...source.transaction, inputs: [inputOf(output)] })) yield output;
    }
  }
}

/** Outputs that make up `target`: one that suffices, or as many as it takes; null when the faucet does not have enough. */
function gather(
  state: ChainState,
  target: (inputs: number) => bigint,
  first: readonly UnspentOutput[],
  without: ReadonlySet<string>,
): UnspentOutput[] | null {
  const unspent = [...first];
  for (const output of spendable(state, without)) {
    if (unspent.length > 0 && total(unspent) >= target(unspent.length)) return unspent;
    unspent.push(output);
  }
  return unspent.length > 0 && total(unspent) >= target(unspent.length) ? unspent : null;
}

function spendOutputs(
  state: ChainState,
  unspent: readonly UnspentOutput[],
  outputs: readonly Output[],
  feeMinor: bigint,
): Transaction {
  const spent = plus(sum(outputs.map((output) => output.minor)), feeMinor);
  const change = minus(total(unspent), spent);
  const parts: Parts = {
    version: state.dialect.transactionVersion,
    inputs: unspent.map(inputOf),
    outputs: change >= leastChange(state) ? [...outputs, { minor: change, script: faucetScript(state.dialect) }] : outputs,
    lockTime: 0,
  };
  return sealed(
    signedByFaucet(
      state.dialect,
      parts,
      unspent.map((output) => output.minor),
    ),
  );
}

/** A payment of these outputs from the faucet; null when the faucet does not have enough. */
export function payment(state: ChainState, outputs: readonly Output[]): Transaction | null {
  const withChange = [...outputs, { minor: 0n, script: faucetScript(state.dialect) }];
  const amount = sum(outputs.map((output) => output.minor));
  const fee = (inputs: number) => feeFor(state, inputs, withChange);
  const unspent = gather(state, (inputs) => plus(amount, fee(inputs)), [], new Set());
  return unspent === null ? null : spendOutputs(state, unspent, outputs, fee(unspent.length));
}

/** The outputs that a transaction spends if all of them are the faucet's; otherwise null. */
function faucetOutputsOf(state: ChainState, transaction: Transaction): UnspentOutput[] | null {
  const unspent: UnspentOutput[] = [];
  for (const input of transaction.inputs) {
    const source = state.alive.get(input.txid)?.transaction.outputs[input.vout];
    if (!source?.script.equals(faucetScript(state.dialect))) return null;
    unspent.push({ txid: input.txid, vout: input.vout, minor: source.minor });
  }
  return unspent;
}

/** Whether a transaction was paid by the faucet. */
export const isFromFaucet = (state: ChainState, transaction: Transaction): boolean =>
  faucetOutputsOf(state, transaction) !== null;

/**
 * A transaction that spends the same outputs as `original` and pays `outputs` instead, at a fee with which BIP125 allows the replacement.
 * @returns null when what it spends is not the faucet's, or not enough
 */
export function replacement(state: ChainState, original: Transaction, outputs: readonly Output[]): Transaction | null {
  const own = faucetOutputsOf(state, original);
  if (own === null) return null;
  const withChange = [...outputs, { minor: 0n, script: faucetScript(state.dialect) }];
  const amount = sum(outputs.map((output) => output.minor));
  const lost = feesLost(state, [original.txid]);
  const fee = (inputs: number) => plus(lost, feeFor(state, inputs, withChange));
  const unspent = gather(state, (inputs) => plus(amount, fee(inputs)), own, withDescendants(state, original.txid));
  return unspent === null ? null : spendOutputs(state, unspent, outputs, fee(unspent.length));
}

/** A transaction that returns all inputs of `original` to the faucet; null when they are not the faucet's. */
export function doubleSpend(state: ChainState, original: Transaction): Transaction | null {
  const own = faucetOutputsOf(state, original);
  if (own === null) return null;
  const lost = feesLost(state, [original.txid, ...conflictsOf(state, original)]);
  const fee = plus(lost, feeFor(state, own.length, [{ minor: 0n, script: faucetScript(state.dialect) }]));
  return spendOutputs(state, own, [], fee);
}
