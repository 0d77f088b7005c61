// The calls of the simulated RPC that change something: sending a transaction (with the faults about sending), testing one, and regtest's
// own ways to make and unmake blocks.

import { mulDivUp, parseAmount } from '../../../core/money.ts';
import { feeOf, isActive, tip } from '../chain-state.ts';
import type { Dialect } from '../dialects.ts';
import { objection, policyRefusal } from '../mempool-policy.ts';
import { withRejectMessage } from '../reject-messages.ts';
import { scriptOf } from '../scripts.ts';
import type { SimulatedNode } from '../simulated-node.ts';
import { readTransaction, type Transaction } from '../transaction.ts';
import { amount, type Json, regtestParameters } from './answers.ts';
import {
  hash,
  integer,
  list,
  type Params,
  RPC_DESERIALIZATION,
  RPC_INVALID_PARAMETER,
  RPC_MISC,
  RPC_NOT_FOUND,
  RPC_REJECTED,
  RPC_TYPE,
  RPC_VERIFY,
  RpcError,
  rateDigits,
  text,
} from './error.ts';

/** 0.10 per 1,000 virtual bytes: the most that sendrawtransaction pays unless a parameter allows more. */
const MAX_FEE_PER_KVB = 10_000_000n;

function decoded(dialect: Dialect, hex: string): Transaction {
  const transaction = readTransaction(hex);
  // a node without segwit does not know that form of bytes
  if (transaction === null || (!dialect.segwit && transaction.inputs.some((input) => input.witness.length > 0))) {
    throw new RpcError(RPC_DESERIALIZATION, 'TX decode failed. Make sure the tx has at least one input.');
  }
  return transaction;
}

/**
 * The limit of the second parameter in minor units per 1,000 virtual bytes; null = none (0, or Dogecoin Core, whose limit is 100 DOGE in
 * all).
 */
function maxFeeRate({ dialect }: SimulatedNode, params: Params): bigint | null {
  if (dialect.smallOutputMinor > 0n) return null;
  // older nodes take `allowhighfees` there
  if (typeof params[1] === 'boolean') return params[1] ? null : MAX_FEE_PER_KVB;
  const given = rateDigits(params, 1);
  if (given === null) return MAX_FEE_PER_KVB;
  const parsed = parseAmount(given, 8);
  if (!('minor' in parsed)) throw new RpcError(RPC_TYPE, 'Invalid amount');
  return parsed.minor === 0n ? null : parsed.minor;
}

/**
 * `sendrawtransaction hex [maxfeerate]`: the txid, also of what is in the mempool already. Refuses with the words and codes of Bitcoin
 * Core.
 */
export function sendRawTransaction(node: SimulatedNode, params: Params): Json {
  const transaction = decoded(node.dialect, text(params, 0));
  const limit = maxFeeRate(node, params);
  const { state } = node;
  const { fault } = state.trouble;
  if (fault === 'reject') throw withRejectMessage(state.dialect, policyRefusal(state, transaction));
  if (state.mempool.has(transaction.txid)) {
    node.deny(transaction, fault === 'forgets');
    return transaction.txid;
  }
  const no = objection(state, transaction);
  if (no !== null) throw withRejectMessage(state.dialect, no);
  if (limit !== null && (feeOf(state, transaction) ?? 0n) > mulDivUp(BigInt(transaction.vsize), limit, 1000n)) {
    throw new RpcError(RPC_VERIFY, 'Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)');
  }
  node.enter(transaction, { denied: fault === 'forgets' });
  return transaction.txid;
}

/** `testmempoolaccept [hex …]`: for each whether the mempool would take it, and why not. */
export function testMempoolAccept(node: SimulatedNode, params: Params): Json {
  return list(params, 0).map((hex) => {
    const transaction = decoded(node.dialect, text([hex], 0));
    const { txid, wtxid } = transaction;
    const known = node.state.mempool.has(txid) && !node.state.denied.has(txid);
    const no = known ? new RpcError(RPC_REJECTED, 'txn-already-in-mempool') : objection(node.state, transaction);
    if (no !== null) return { txid, wtxid, allowed: false, 'reject-reason': reason(no) };
    const base = feeOf(node.state, transaction) ?? 0n;
    return { txid, wtxid, allowed: true, vsize: transaction.vsize, fees: { base: amount(base) } };
  });
}

function reason(no: RpcError): string {
  if (no.code === RPC_VERIFY) return 'missing-inputs';
  return no.code === RPC_REJECTED ? (no.message.split(',')[0] as string) : 'txn-already-known';
}

function scriptOfAddress(node: SimulatedNode, params: Params, index: number): Buffer {
  const script = scriptOf(text(params, index), regtestParameters(node.state));
  if (script === null) throw new RpcError(RPC_NOT_FOUND, 'Error: Invalid address');
  return script;
}

/** `generatetoaddress n address`, regtest's: hashes of the new blocks, with all of the mempool. */
export function generateToAddress(node: SimulatedNode, params: Params): Json {
  const count = integer(params, 0);
  const script = scriptOfAddress(node, params, 1);
  if (count < 0 || count > 10_000) throw new RpcError(RPC_INVALID_PARAMETER, 'nblocks must lie between 0 and 10000');
  const before = node.state.active.length;
  if (count > 0) node.mine(count, { script });
  return node.state.active.slice(before).map((block) => block.hash);
}

/** `generateblock address [txid …]`, regtest's: one block with these transactions of the mempool and no others. */
export function generateBlock(node: SimulatedNode, params: Params): Json {
  const script = scriptOfAddress(node, params, 0);
  const transactions = list(params, 1).map((id) => {
    const entry = node.state.mempool.get(text([id], 0));
    if (entry === undefined) throw new RpcError(RPC_NOT_FOUND, `Transaction ${String(id)} not in mempool.`);
    return entry.transaction;
  });
  return { hash: node.mine(1, { script, transactions }).hash };
}

/** `invalidateblock hash`: takes it and all above it off the active chain; their transactions return to the mempool. */
export function invalidateBlock(node: SimulatedNode, params: Params): Json {
  const block = node.state.blocks.get(hash(params, 0, 'blockhash'));
  if (block === undefined) throw new RpcError(RPC_NOT_FOUND, 'Block not found');
  if (block.height === 0) throw new RpcError(RPC_MISC, 'the genesis block stays');
  if (isActive(node.state, block)) node.rewind(tip(node.state).height - block.height + 1);
  return null;
}
