// What a node accepts into its mempool: the checks of bitcoind's AcceptToMemoryPool that a payment processor can run into, with their
// reject reasons and numbers. P2WPKH and P2PKH signatures are verified; other scripts are accepted unchecked. The faucet's own transactions
// are not checked here.
import { formatMinor, greatest, minus, mulDivUp, plus, sum } from '../../core/money.ts';
import { type ChainState, conflictsOf, feeOf, isMature } from './chain-state.ts';
import { withDescendants } from './faucet.ts';
import { RPC_ALREADY_IN_CHAIN, RPC_REJECTED, RPC_VERIFY, RpcError } from './rpc/error.ts';
import { kindOf } from './scripts.ts';
import { isSigned } from './sighash.ts';
import { type Output, outpointKey, outputBytes, RBF_SEQUENCE, type Transaction } from './transaction.ts';

/**
 * The smallest value of an output: bitcoind's GetDustThreshold (spending it costs 148 bytes, or 67 with a witness), or the currency's own
 * limit.
 */
function dustMinor({ dialect }: ChainState, output: Output): bigint {
  const spendSize = kindOf(output.script).startsWith('witness_') ? 67 : 148;
  const threshold = mulDivUp(BigInt(outputBytes(output).length + spendSize), dialect.dustFeePerKvb, 1000n);
  return greatest(threshold, dialect.leastOutputMinor);
}
const rejected = (reason: string): RpcError => new RpcError(RPC_REJECTED, reason);

/** Why the node would refuse a transaction, or null. Not for transactions that are in its mempool already. */
export function objection(state: ChainState, transaction: Transaction): RpcError | null {
  return (
    structure(state, transaction) ?? inputs(state, transaction) ?? fees(state, transaction) ?? signatures(state, transaction)
  );
}

/** Dash's special transactions are of version 3, so version 3 is accepted there. */
const newestVersion = (state: ChainState): number => (state.dialect.quorums ? 3 : 2);

function structure(state: ChainState, transaction: Transaction): RpcError | null {
  if (transaction.outputs.length === 0) return rejected('bad-txns-vout-empty');
  if (new Set(transaction.inputs.map(outpointKey)).size < transaction.inputs.length) return rejected('bad-txns-inputs-duplicate');
  if (transaction.coinbase) return rejected('coinbase');
  if (transaction.version < 1 || transaction.version > newestVersion(state)) return rejected('version');
  for (const output of transaction.outputs) {
    const kind = kindOf(output.script);
    if (kind === 'nonstandard' || (kind.startsWith('witness_') && !state.dialect.segwit)) return rejected('scriptpubkey');
    if (kind !== 'nulldata' && output.minor < dustMinor(state, output)) return rejected('dust');
  }
  return null;
}

function inputs(state: ChainState, transaction: Transaction): RpcError | null {
  const inChain = state.alive.get(transaction.txid);
  if (inChain !== undefined && inChain.block !== null) {
    const someLeft = transaction.outputs.some(
      (_, vout) => state.alive.get(state.spenders.get(`${transaction.txid}:${vout}`) ?? '')?.block == null,
    );
    const words = state.dialect.rpc.modern ? 'Transaction outputs already in utxo set' : 'Transaction already in block chain';
    if (someLeft) return new RpcError(RPC_ALREADY_IN_CHAIN, words);
  }
  for (const input of transaction.inputs) {
    const source = state.alive.get(input.txid);
    const spender = state.alive.get(state.spenders.get(outpointKey(input)) ?? '');
    const usable = source?.transaction.outputs[input.vout] !== undefined && !state.denied.has(input.txid);
    if (!usable || (spender !== undefined && spender.block !== null))
      return new RpcError(RPC_VERIFY, 'bad-txns-inputs-missingorspent');
  }
  return isMature(state, transaction) ? null : rejected('bad-txns-premature-spend-of-coinbase');
}

/** By size, plus the currency's surcharge for each small output. */
function leastFee({ dialect }: ChainState, transaction: Transaction): bigint {
  const small = transaction.outputs.filter(
    (output) => output.minor < dialect.smallOutputMinor && kindOf(output.script) !== 'nulldata',
  );
  const bySize = mulDivUp(BigInt(transaction.vsize), dialect.relayFeePerKvb, 1000n);
  return sum([bySize, ...small.map(() => dialect.smallOutputMinor)]);
}

function fees(state: ChainState, transaction: Transaction): RpcError | null {
  const fee = feeOf(state, transaction) ?? 0n;
  if (fee < 0n) return rejected('bad-txns-in-belowout');
  const relayFee = leastFee(state, transaction);
  if (fee < relayFee) return rejected(`min relay fee not met, ${fee} < ${relayFee}`);
  const conflicts = conflictsOf(state, transaction);
  if (conflicts.length === 0) return null;
  if (conflicts.some((txid) => state.locked.has(txid))) return rejected('tx-txlock-conflict');
  if (!mayReplace(state, conflicts)) return rejected('txn-mempool-conflict');
  const ended = new Set(conflicts.flatMap((txid) => [...withDescendants(state, txid)]));
  if (transaction.inputs.some((input) => ended.has(input.txid))) return rejected('bad-txns-spends-conflicting-tx');
  const lost = sum([...ended].map((txid) => feeOf(state, state.alive.get(txid)?.transaction as Transaction) ?? 0n));
  const whole = (minor: bigint): string => formatMinor(minor, 8);
  const head = `insufficient fee, rejecting replacement ${transaction.txid}`;
  if (fee < lost) return rejected(`${head}, less fees than conflicting txs; ${whole(fee)} < ${whole(lost)}`);
  if (fee < plus(lost, relayFee)) {
    return rejected(`${head}, not enough additional fees to relay; ${whole(minus(fee, lost))} < ${whole(relayFee)}`);
  }
  return null;
}

/** Whether the node's policy allows replacing these transactions at all (BIP125 to the letter: only what the transaction itself signals). */
function mayReplace(state: ChainState, conflicts: readonly string[]): boolean {
  if (state.dialect.replacement !== 'optin') return state.dialect.replacement === 'full';
  return conflicts.every((txid) => state.alive.get(txid)?.transaction.inputs.some((input) => input.sequence <= RBF_SEQUENCE));
}

function signatures(state: ChainState, transaction: Transaction): RpcError | null {
  for (const [index, input] of transaction.inputs.entries()) {
    const output = state.alive.get(input.txid)?.transaction.outputs[input.vout] as Output;
    const kind = kindOf(output.script);
    const witness = kind === 'witness_v0_keyhash';
    if (!witness && kind !== 'pubkeyhash') continue;
    const keyHash = output.script.subarray(witness ? 2 : 3, witness ? 22 : 23);
    if (!isSigned(state.dialect, transaction, index, { keyHash, minor: output.minor }, witness)) {
      const flag = state.dialect.rpc.modern ? 'mandatory-script-verify-flag-failed' : 'non-mandatory-script-verify-flag';
      return rejected(`${flag} (Signature must be zero for failed CHECK(MULTI)SIG operation)`);
    }
  }
  return null;
}

/** The node's message when it is set to refuse (fault `reject`). */
export const policyRefusal = (state: ChainState, transaction: Transaction): RpcError =>
  rejected(`min relay fee not met, 0 < ${mulDivUp(BigInt(transaction.vsize), state.dialect.relayFeePerKvb, 1000n)}`);
