// The methods of the simulated bitcoind by name: those that only read. send.ts has those that change something.
import { sum } from '../../../core/money.ts';
import { type Block, blockBytes, headBytes } from '../block.ts';
import { type ChainState, confirmationsOf, feeOf, isActive, type MempoolEntry, tip } from '../chain-state.ts';
import type { Dialect } from '../dialects.ts';
import { scriptOf } from '../scripts.ts';
import type { SimulatedNode } from '../simulated-node.ts';
import type { Transaction } from '../transaction.ts';
import {
  amount,
  blockAnswer,
  chainWork,
  headerAnswer,
  type Json,
  lockAnswer,
  mempoolAnswer,
  placeAnswer,
  REGTEST_DIFFICULTY,
  REGTEST_TARGET,
  regtestParameters,
  scriptAnswer,
  transactionAnswer,
} from './answers.ts';
import { CURRENCY_METHODS } from './currency-methods.ts';
import {
  flag,
  hash,
  integer,
  type Params,
  RPC_INVALID_PARAMETER,
  RPC_MISC,
  RPC_NOT_FOUND,
  RpcError,
  text,
  verbosity,
} from './error.ts';
import { generateBlock, generateToAddress, invalidateBlock, sendRawTransaction, testMempoolAccept } from './send.ts';

export type Method = (node: SimulatedNode, params: Params) => Json;

const NOT_FOUND = 'No such mempool or blockchain transaction. Use gettransaction for wallet transactions.';
const GENESIS_COINBASE = 'The genesis block coinbase is not considered an ordinary transaction and cannot be retrieved';

/** The mempool as this node reports it. */
function* admitted(state: ChainState): Generator<MempoolEntry> {
  for (const entry of state.mempool.values()) if (!state.denied.has(entry.transaction.txid)) yield entry;
}
const isAdmitted = (state: ChainState, txid: string): boolean => state.mempool.has(txid) && !state.denied.has(txid);

function blockAsked(state: ChainState, params: Params): Block {
  const block = state.blocks.get(hash(params, 0, 'blockhash'));
  if (block === undefined) throw new RpcError(RPC_NOT_FOUND, 'Block not found');
  return block;
}

function getBlockchainInfo({ state }: SimulatedNode): Json {
  const block = tip(state);
  const { modern } = state.dialect.rpc;
  return {
    chain: 'regtest',
    blocks: block.height,
    headers: block.height,
    bestblockhash: block.hash,
    ...(modern ? { bits: '207fffff', target: REGTEST_TARGET } : {}),
    difficulty: REGTEST_DIFFICULTY,
    ...(modern ? { time: block.time } : {}),
    mediantime: block.medianTime,
    verificationprogress: 1,
    ...(state.dialect.rpc.blockFlag ? {} : { initialblockdownload: false }),
    chainwork: chainWork(block.height),
    size_on_disk: 300 * state.blocks.size,
    pruned: false,
    ...(modern ? { warnings: [] } : { softforks: { segwit: { type: 'buried', active: true, height: 0 } }, warnings: '' }),
  };
}

function getBlockHash({ state }: SimulatedNode, params: Params): Json {
  const block = state.active[integer(params, 0)];
  if (block === undefined) throw new RpcError(RPC_INVALID_PARAMETER, 'Block height out of range');
  return block.hash;
}

function getBlockHeader({ state }: SimulatedNode, params: Params): Json {
  const block = blockAsked(state, params);
  return flag(params, 1, true) ? headerAnswer(state, block) : headBytes(state.dialect, block).toString('hex');
}

function getBlock({ state }: SimulatedNode, params: Params): Json {
  if (state.dialect.rpc.blockFlag && params[1] !== undefined && typeof params[1] !== 'boolean')
    throw new RpcError(RPC_MISC, 'JSON value is not a boolean as expected');
  const level = verbosity(params, 1, 1);
  const block = blockAsked(state, params);
  return level <= 0 ? blockBytes(state.dialect, block).toString('hex') : blockAnswer(state, block, level);
}

function getRawTransaction({ state }: SimulatedNode, params: Params): Json {
  const txid = hash(params, 0, 'parameter 1');
  const level = verbosity(params, 1, 0);
  const asked = typeof params[2] === 'string' ? state.blocks.get(hash(params, 2, 'parameter 3')) : null;
  if (asked === undefined) throw new RpcError(RPC_NOT_FOUND, 'Block hash not found');
  const found = asked === null ? anywhere(state, txid) : inBlock(asked, txid);
  const { transaction, block } = found;
  if (level <= 0) return transaction.raw.toString('hex');
  return {
    ...(asked === null ? {} : { in_active_chain: isActive(state, asked) }),
    ...transactionAnswer(state, transaction, { prevouts: level >= 2, fee: level >= 2 && !transaction.coinbase }),
    ...placeAnswer(state, block),
    ...lockAnswer(state, transaction, block),
  };
}

type Found = { readonly transaction: Transaction; readonly block: Block | null };

function anywhere(state: ChainState, txid: string): Found {
  const known = state.alive.get(txid);
  if (state.active[0]?.transactions[0]?.txid === txid) throw new RpcError(RPC_NOT_FOUND, GENESIS_COINBASE);
  if (known === undefined || state.denied.has(txid)) throw new RpcError(RPC_NOT_FOUND, NOT_FOUND);
  return known;
}
function inBlock(block: Block, txid: string): Found {
  const transaction = block.transactions.find((each) => each.txid === txid);
  if (transaction !== undefined) return { transaction, block };
  throw new RpcError(
    RPC_NOT_FOUND,
    'No such transaction found in the provided block. Use gettransaction for wallet transactions.',
  );
}

function getTxOut({ state }: SimulatedNode, params: Params): Json {
  const txid = hash(params, 0, 'txid');
  const vout = integer(params, 1);
  const withMempool = flag(params, 2, true);
  const known = state.alive.get(txid);
  const output = known?.transaction.outputs[vout];
  if (known === undefined || output === undefined || (known.block === null && (!withMempool || state.denied.has(txid))))
    return null;
  const spender = state.alive.get(state.spenders.get(`${txid}:${vout}`) ?? '');
  if (spender !== undefined && (withMempool || spender.block !== null)) return null;
  return {
    bestblock: tip(state).hash,
    confirmations: known.block === null ? 0 : confirmationsOf(state, known.block),
    value: amount(output.minor),
    scriptPubKey: scriptAnswer(state, output.script),
    coinbase: known.transaction.coinbase,
  };
}

function getRawMempool({ state }: SimulatedNode, params: Params): Json {
  const entries = [...admitted(state)];
  if (!flag(params, 0, false)) return entries.map((entry) => entry.transaction.txid);
  return Object.fromEntries(entries.map((entry) => [entry.transaction.txid, mempoolAnswer(state, entry)]));
}

function getMempoolEntry({ state }: SimulatedNode, params: Params): Json {
  const txid = hash(params, 0, 'txid');
  const entry = state.mempool.get(txid);
  if (entry === undefined || !isAdmitted(state, txid)) throw new RpcError(RPC_NOT_FOUND, 'Transaction not in mempool');
  return mempoolAnswer(state, entry);
}

function getMempoolInfo({ state }: SimulatedNode): Json {
  const transactions = [...admitted(state)].map((entry) => entry.transaction);
  const bytes = transactions.reduce((total, transaction) => total + transaction.vsize, 0);
  const relayFee = amount(state.dialect.relayFeePerKvb);
  const totalFee = amount(sum(transactions.map((transaction) => feeOf(state, transaction) ?? 0n)));
  return {
    loaded: true,
    size: transactions.length,
    bytes,
    usage: bytes * 5,
    ...(state.dialect.rpc.modern ? { total_fee: totalFee } : {}),
    maxmempool: 300_000_000,
    mempoolminfee: relayFee,
    minrelaytxfee: relayFee,
    ...(state.dialect.rpc.modern ? { incrementalrelayfee: relayFee } : {}),
    unbroadcastcount: 0,
    ...(state.dialect.rpc.modern ? { fullrbf: true } : {}),
  };
}

function getNetworkInfo({ state }: SimulatedNode): Json {
  const { rpc, relayFeePerKvb } = state.dialect;
  return {
    version: rpc.version,
    subversion: rpc.subversion,
    protocolversion: rpc.protocol,
    localservices: '0000000000000409',
    localrelay: true,
    timeoffset: 0,
    networkactive: true,
    connections: 0,
    connections_in: 0,
    connections_out: 0,
    networks: [],
    relayfee: amount(relayFeePerKvb),
    incrementalfee: amount(relayFeePerKvb),
    localaddresses: [],
    warnings: rpc.modern ? [] : '',
  };
}

function getChainTips({ state }: SimulatedNode): Json {
  const parents = new Set([...state.blocks.values()].map((block) => block.previousHash));
  const tips = [...state.blocks.values()].filter(
    (block) => block === tip(state) || (!parents.has(block.hash) && !isActive(state, block)),
  );
  return tips
    .sort((a, b) => b.height - a.height)
    .map((block) => ({
      height: block.height,
      hash: block.hash,
      branchlen: branchLength(state, block),
      status: isActive(state, block) ? 'active' : 'valid-fork',
    }));
}
function branchLength(state: ChainState, block: Block): number {
  let length = 0;
  for (let at: Block | undefined = block; at !== undefined && !isActive(state, at); at = state.blocks.get(at.previousHash))
    length += 1;
  return length;
}

function getZmqNotifications(node: SimulatedNode): Json {
  const address = node.publishesAt();
  const types = address === null ? [] : ['pubhashblock', 'pubrawtx'];
  return types.map((type) => ({ type, address, hwm: 1000 }));
}

function validateAddress({ state }: SimulatedNode, params: Params): Json {
  const address = text(params, 0);
  const script = scriptOf(address, regtestParameters(state));
  return script === null ? { isvalid: false } : { isvalid: true, address, scriptPubKey: script.toString('hex') };
}

const METHODS: Readonly<Record<string, Method>> = {
  getblockchaininfo: getBlockchainInfo,
  getbestblockhash: ({ state }) => tip(state).hash,
  getblockcount: ({ state }) => tip(state).height,
  getblockhash: getBlockHash,
  getblockheader: getBlockHeader,
  getblock: getBlock,
  getchaintips: getChainTips,
  getrawmempool: getRawMempool,
  getmempoolentry: getMempoolEntry,
  getmempoolinfo: getMempoolInfo,
  getrawtransaction: getRawTransaction,
  gettxout: getTxOut,
  getnetworkinfo: getNetworkInfo,
  getconnectioncount: () => 0,
  getpeerinfo: () => [],
  getzmqnotifications: getZmqNotifications,
  getindexinfo: ({ state }) => ({ txindex: { synced: true, best_block_height: tip(state).height } }),
  estimatesmartfee: () => ({ errors: ['Insufficient data or no feerate found'], blocks: 0 }),
  validateaddress: validateAddress,
  sendrawtransaction: sendRawTransaction,
  testmempoolaccept: testMempoolAccept,
  generatetoaddress: generateToAddress,
  generateblock: generateBlock,
  invalidateblock: invalidateBlock,
};

/** The method with this name; null when this currency's node has none. */
export function methodNamed(dialect: Dialect, name: string): Method | null {
  const own = CURRENCY_METHODS[dialect.code];
  if (own !== undefined && Object.hasOwn(own, name)) return own[name] as Method;
  return Object.hasOwn(METHODS, name) && !dialect.rpc.without.includes(name) ? (METHODS[name] as Method) : null;
}
/** Whether a call sends money: the faults about sending count these. */
export const sendsMoney = (name: string): boolean => name === 'sendrawtransaction';
