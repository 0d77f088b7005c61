// How bitcoind shows blocks, transactions and mempool entries in JSON, by the dialect of the currency. Amounts are JSON numbers with
// exactly eight decimals.
import type { AddressParameters } from '../../../core/currencies/utxo.ts';
import { utxoRow } from '../../../core/currency.ts';
import { formatMinor, sum } from '../../../core/money.ts';
import { type Block, blockSizes } from '../block.ts';
import { type ChainState, confirmationsOf, feeOf, isActive, type MempoolEntry } from '../chain-state.ts';
import { withDescendants } from '../faucet.ts';
import { addressOf, asmOf, kindOf } from '../scripts.ts';
import { type Input, type Output, RBF_SEQUENCE, type Transaction } from '../transaction.ts';

export type Json = unknown;
const rawJson = (JSON as unknown as { rawJSON: (text: string) => Json }).rawJSON;

/** An amount as bitcoind writes it: a number with eight decimals, never through a floating-point number. */
export const amount = (minor: bigint): Json => rawJson(formatMinor(minor, 8));

/** Difficulty of the bits 0x207fffff. */
export const REGTEST_DIFFICULTY = 4.656542373906925e-10;
export const REGTEST_TARGET = `7fffff${'00'.repeat(29)}`;
const hex8 = (value: number): string => (value >>> 0).toString(16).padStart(8, '0');
/** A regtest block is worth 2 hashes of work. */
export const chainWork = (height: number): string => (2 * (height + 1)).toString(16).padStart(64, '0');
/** How this chain's regtest writes addresses. */
export const regtestParameters = (state: ChainState): AddressParameters => utxoRow(state.dialect.code).utxo.address.regtest;

/** A block as `getblockheader` answers it verbosely; `confirmations` is -1 on a branch that was left. */
export function headerAnswer(state: ChainState, block: Block): Record<string, Json> {
  const confirmations = confirmationsOf(state, block);
  const next = confirmations > 0 ? state.active[block.height + 1] : undefined;
  return {
    hash: block.hash,
    confirmations,
    height: block.height,
    version: block.version,
    versionHex: hex8(block.version),
    merkleroot: block.merkleRoot,
    time: block.time,
    mediantime: block.medianTime,
    nonce: block.nonce,
    bits: hex8(block.bits),
    ...(state.dialect.rpc.modern ? { target: REGTEST_TARGET } : {}),
    difficulty: REGTEST_DIFFICULTY,
    chainwork: chainWork(block.height),
    nTx: block.transactions.length,
    ...(block.height > 0 ? { previousblockhash: block.previousHash } : {}),
    ...(next === undefined ? {} : { nextblockhash: next.hash }),
  };
}

/** @param verbosity 1 = ids, 2 = transactions, 3 = with what they spend (where the node knows that) */
export function blockAnswer(state: ChainState, block: Block, verbosity: number): Record<string, Json> {
  const { strippedSize, size, weight } = blockSizes(block);
  const prevouts = verbosity >= 3;
  const tx =
    verbosity === 1
      ? block.transactions.map((transaction) => transaction.txid)
      : block.transactions.map((transaction) => ({
          ...transactionAnswer(state, transaction, { prevouts, fee: !transaction.coinbase }),
          ...lockAnswer(state, transaction, block),
        }));
  const sizes = state.dialect.segwit ? { strippedsize: strippedSize, size, weight } : { size };
  const locked = state.dialect.quorums ? { chainlock: isChainLocked(state, block) } : {};
  return { ...headerAnswer(state, block), ...sizes, ...locked, tx };
}

/** @param show whether to include the fee, where the node knows it, and what the inputs spend */
export function transactionAnswer(
  state: ChainState,
  transaction: Transaction,
  show: { readonly prevouts: boolean; readonly fee: boolean },
): Record<string, Json> {
  const { segwit, quorums } = state.dialect;
  const fee = show.fee && state.dialect.rpc.modern ? feeOf(state, transaction) : null;
  return {
    txid: transaction.txid,
    ...(quorums ? {} : { hash: transaction.wtxid }),
    version: transaction.version,
    ...(quorums ? { type: 0 } : {}),
    size: transaction.raw.length,
    ...(segwit ? { vsize: transaction.vsize, weight: transaction.weight } : {}),
    locktime: transaction.lockTime,
    vin: transaction.inputs.map((input) => inputAnswer(state, transaction, input, show.prevouts)),
    vout: transaction.outputs.map((output, n) => outputAnswer(state, output, n)),
    ...(fee === null ? {} : { fee: amount(fee) }),
    hex: transaction.raw.toString('hex'),
  };
}

function inputAnswer(state: ChainState, transaction: Transaction, input: Input, prevouts: boolean): Record<string, Json> {
  const mweb = state.dialect.rpc.mwebFlags ? { ismweb: false } : {};
  const witness = input.witness.length === 0 ? {} : { txinwitness: input.witness.map((item) => item.toString('hex')) };
  if (transaction.coinbase) return { ...mweb, coinbase: input.scriptSig.toString('hex'), ...witness, sequence: input.sequence };
  const source = prevouts && state.dialect.rpc.modern ? state.alive.get(input.txid) : undefined;
  const output = source?.transaction.outputs[input.vout];
  return {
    ...mweb,
    txid: input.txid,
    vout: input.vout,
    scriptSig: { asm: asmOf(input.scriptSig), hex: input.scriptSig.toString('hex') },
    ...witness,
    ...(source === undefined || output === undefined
      ? {}
      : {
          prevout: {
            generated: source.transaction.coinbase,
            height: source.block?.height ?? 0,
            value: amount(output.minor),
            scriptPubKey: scriptAnswer(state, output.script),
          },
        }),
    sequence: input.sequence,
  };
}

function outputAnswer(state: ChainState, output: Output, n: number): Record<string, Json> {
  const mweb = state.dialect.rpc.mwebFlags ? { ismweb: false } : {};
  // Dash also writes the amount in its smallest unit, as a number
  const units = state.dialect.quorums ? { valueSat: rawJson(String(output.minor)) } : {};
  return { ...mweb, value: amount(output.minor), ...units, n, scriptPubKey: scriptAnswer(state, output.script) };
}

/** A script as verbose transactions have it: `address` in newer dialects, `addresses` and `reqSigs` in older ones. */
export function scriptAnswer(state: ChainState, script: Buffer): Record<string, Json> {
  const address = addressOf(script, regtestParameters(state));
  const shared = { asm: asmOf(script), hex: script.toString('hex') };
  if (state.dialect.rpc.addresses === 'one') return { ...shared, ...(address === null ? {} : { address }), type: kindOf(script) };
  return address === null
    ? { ...shared, type: kindOf(script) }
    : { ...shared, reqSigs: 1, type: kindOf(script), addresses: [address] };
}

/** What getrawtransaction adds for a transaction in a block of the best chain. */
export function placeAnswer(state: ChainState, block: Block | null): Record<string, Json> {
  if (block === null) return {};
  const confirmations = confirmationsOf(state, block);
  return confirmations < 1
    ? { blockhash: block.hash, confirmations: 0 }
    : { blockhash: block.hash, confirmations, time: block.time, blocktime: block.time };
}

const isChainLocked = (state: ChainState, block: Block): boolean => isActive(state, block) && block.height <= state.chainLock;

/** What Dash Core reports of the locks of a transaction in a block, or in the mempool (null). */
export function lockAnswer(state: ChainState, transaction: Transaction, block: Block | null): Record<string, Json> {
  if (!state.dialect.quorums) return {};
  const own = state.locked.has(transaction.txid);
  const chainlock = block !== null && isChainLocked(state, block);
  return {
    height: block !== null && isActive(state, block) ? block.height : -1,
    ...(block === null ? { confirmations: 0 } : {}),
    instantlock: own || chainlock,
    instantlock_internal: own,
    chainlock,
  };
}

/** The mempool transactions that this one needs, itself included. */
function withAncestors(state: ChainState, txid: string): ReadonlySet<string> {
  const found = new Set([txid]);
  for (const each of found) {
    for (const input of state.mempool.get(each)?.transaction.inputs ?? [])
      if (state.mempool.has(input.txid)) found.add(input.txid);
  }
  return found;
}

/** Whether it, or something it depends on, signals (BIP125) that it may be replaced. */
const signals = (state: ChainState, family: ReadonlySet<string>): boolean =>
  [...family].some((txid) => state.mempool.get(txid)?.transaction.inputs.some((input) => input.sequence <= RBF_SEQUENCE));

/** An entry as `getmempoolentry` answers it, with the fields and the units of the dialect. */
export function mempoolAnswer(state: ChainState, entry: MempoolEntry): Record<string, Json> {
  const { transaction } = entry;
  const ancestors = withAncestors(state, transaction.txid);
  const descendants = withDescendants(state, transaction.txid);
  const members = (txids: ReadonlySet<string>): Transaction[] =>
    [...txids].map((txid) => (state.mempool.get(txid) as MempoolEntry).transaction);
  const total = (txids: ReadonlySet<string>): bigint => sum(members(txids).map((each) => feeOf(state, each) ?? 0n));
  const fees = (txids: ReadonlySet<string>): Json => amount(total(txids));
  const satoshis = (txids: ReadonlySet<string>): Json => rawJson(String(total(txids)));
  const size = (txids: ReadonlySet<string>): number => members(txids).reduce((total, each) => total + each.vsize, 0);
  const fee = amount(feeOf(state, transaction) ?? 0n);
  const old = { fee, modifiedfee: fee, descendantfees: satoshis(descendants), ancestorfees: satoshis(ancestors) };
  const mweb = { mwebweight: 0, descendantmwebweight: 0, ancestormwebweight: 0 };
  const spenders = transaction.outputs.map((_, vout) => state.spenders.get(`${transaction.txid}:${vout}`));
  return {
    vsize: transaction.vsize,
    weight: transaction.weight,
    ...(state.dialect.rpc.modern ? {} : old),
    ...(state.dialect.rpc.mwebFlags ? mweb : {}),
    time: entry.time,
    height: entry.height,
    descendantcount: descendants.size,
    descendantsize: size(descendants),
    ancestorcount: ancestors.size,
    ancestorsize: size(ancestors),
    wtxid: transaction.wtxid,
    fees: { base: fee, modified: fee, ancestor: fees(ancestors), descendant: fees(descendants) },
    depends: [...new Set(transaction.inputs.map((input) => input.txid))].filter((txid) => state.mempool.has(txid)),
    spentby: [...new Set(spenders)].filter((txid) => txid !== undefined),
    'bip125-replaceable': signals(state, ancestors),
    unbroadcast: false,
  };
}
