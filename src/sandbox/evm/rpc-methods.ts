// The JSON-RPC methods of the simulated Ethereum node, as the Execution API specifies them; traces and the pool as geth has them.
import { BASE_FEE, CALL_GAS, type EvmBlock, type EvmState, gasPriceOf, gasUsedBy, nonce, PLAIN_GAS, tip } from './chain-state.ts';
import { CONTRACTS, ether, type Frame, type Log } from './contracts.ts';
import {
  accountsAt,
  blockAt,
  called,
  EvmRpcError,
  hex,
  INVALID_PARAMS,
  type Json,
  SERVER_ERROR,
  simulated,
} from './rpc-calls.ts';
import type { SimulatedEvm } from './simulated-evm.ts';
import { CHAIN_ID, type EvmTransaction, TIP } from './transaction.ts';

const MOST_LOG_BLOCKS = 10_000;
const ZERO_HASH = `0x${'0'.repeat(64)}`;
const NO_BLOOM = `0x${'0'.repeat(512)}`;
/** INVALID: what a contract's code is does not matter here, only that there is some. */
const CODE = '0xfe';

function text(params: readonly unknown[], at: number): string {
  const value = params[at];
  if (typeof value !== 'string') throw new EvmRpcError(INVALID_PARAMS, `invalid argument ${at}: a text is expected`);
  return value.toLowerCase();
}

function transactionJson(transaction: EvmTransaction, block: EvmBlock | null, at: number | null): Json {
  const { hash, from, to, value, input, maxFee, tip: priority, gas, signature } = transaction;
  return {
    type: '0x2',
    chainId: hex(CHAIN_ID),
    hash,
    from,
    to,
    nonce: hex(transaction.nonce),
    value: hex(value),
    input,
    gas: hex(gas),
    maxFeePerGas: hex(maxFee),
    maxPriorityFeePerGas: hex(priority),
    gasPrice: hex(gasPriceOf(transaction)),
    accessList: [],
    v: hex(signature.yParity),
    yParity: hex(signature.yParity),
    r: signature.r,
    s: signature.s,
    blockHash: block?.hash ?? null,
    blockNumber: block === null ? null : hex(block.number),
    transactionIndex: at === null ? null : hex(at),
  };
}

function blockJson(block: EvmBlock, isWhole: boolean): Json {
  return {
    number: hex(block.number),
    hash: block.hash,
    parentHash: block.parentHash,
    timestamp: hex(block.timestamp),
    baseFeePerGas: hex(BASE_FEE),
    gasLimit: hex(45_000_000),
    gasUsed: hex(block.transactions.reduce((sum, one) => sum + gasUsedBy(one), 0)),
    logsBloom: NO_BLOOM,
    stateRoot: ZERO_HASH,
    withdrawals: [],
    uncles: [],
    transactions: block.transactions.map((one, at) => (isWhole ? transactionJson(one, block, at) : one.hash)),
  };
}

/** What a miner would take now, as a block without a hash. */
function pendingJson(state: EvmState): Json {
  const { number, timestamp } = tip(state);
  return {
    number: hex(number + 1),
    hash: null,
    parentHash: tip(state).hash,
    timestamp: hex(timestamp),
    transactions: shown(state).map((one) => transactionJson(one, null, null)),
  };
}

function logsOf(block: EvmBlock): readonly (Log & { readonly at: number; readonly index: number })[] {
  let index = 0;
  return block.executed.flatMap(({ logs }, at) => logs.map((log) => ({ ...log, at, index: index++ })));
}

const logJson = (block: EvmBlock, { at, index, address, topics, data }: ReturnType<typeof logsOf>[number]): Json => ({
  address,
  topics,
  data,
  blockHash: block.hash,
  blockNumber: hex(block.number),
  transactionHash: block.transactions[at]?.hash,
  transactionIndex: hex(at),
  logIndex: hex(index),
  removed: false,
});

function receiptJson(block: EvmBlock, at: number): Json {
  const transaction = block.transactions[at] as EvmTransaction;
  const { hash, from, to } = transaction;
  const used = block.transactions.slice(0, at + 1).reduce((sum, one) => sum + gasUsedBy(one), 0);
  return {
    type: '0x2',
    transactionHash: hash,
    transactionIndex: hex(at),
    blockHash: block.hash,
    blockNumber: hex(block.number),
    from,
    to,
    contractAddress: null,
    status: block.executed[at]?.succeeded ? '0x1' : '0x0',
    gasUsed: hex(gasUsedBy(transaction)),
    cumulativeGasUsed: hex(used),
    effectiveGasPrice: hex(gasPriceOf(transaction)),
    logs: logsOf(block)
      .filter((log) => log.at === at)
      .map((log) => logJson(block, log)),
    logsBloom: NO_BLOOM,
  };
}

const frameJson = ({ value, calls, ...frame }: Frame): Json => ({
  ...frame,
  value: hex(value),
  gas: '0x0',
  gasUsed: '0x0',
  ...(calls === undefined ? {} : { calls: calls.map(frameJson) }),
});

function poolJson(state: EvmState): Json {
  const pending: Record<string, Record<string, Json>> = {};
  for (const one of shown(state)) {
    const ofSender = pending[one.from] ?? {};
    ofSender[String(one.nonce)] = transactionJson(one, null, null);
    pending[one.from] = ofSender;
  }
  return { pending, queued: {} };
}

type Filter = {
  readonly blockHash?: string;
  readonly fromBlock?: string;
  readonly toBlock?: string;
  readonly address?: string | readonly string[];
  readonly topics?: readonly (string | readonly string[] | null)[];
};

function filteredLogs(state: EvmState, filter: Filter): Json {
  const matches = (wanted: string | readonly string[] | null | undefined, value: string | undefined): boolean =>
    wanted === null || wanted === undefined || [wanted].flat().some((one) => one.toLowerCase() === value);
  const from = blockAt(state, filter.fromBlock ?? 'latest')?.number ?? 0;
  const to = Math.min(blockAt(state, filter.toBlock ?? 'latest')?.number ?? tip(state).number, tip(state).number);
  if (to - from >= MOST_LOG_BLOCKS) throw new EvmRpcError(INVALID_PARAMS, `query exceeds max block range ${MOST_LOG_BLOCKS}`);
  const blocks = filter.blockHash === undefined ? state.active.slice(from, to + 1) : [known(state, filter.blockHash)];
  return blocks.flatMap((block) =>
    logsOf(block)
      .filter(
        ({ address, topics }) =>
          matches(filter.address, address) && (filter.topics ?? []).every((one, at) => matches(one, topics[at])),
      )
      .map((log) => logJson(block, log)),
  );
}

/** What our node shows of the pool that an account has sent. */
const shownOf = (state: EvmState, address: string): readonly EvmTransaction[] =>
  shown(state).filter(({ from }) => from === address);

/** How many an account has sent, with those that wait and can be mined: without a gap in their nonces. */
function countWithWaiting(state: EvmState, address: string): bigint {
  const waiting = new Set(shownOf(state, address).map((one) => BigInt(one.nonce)));
  let count = accountsAt(state, 'latest').get(nonce(address));
  while (waiting.has(count)) count += 1n;
  return count;
}

/** What waits of a sender, apart what waits behind a gap in its nonces (geth's `txpool_contentFrom`). */
function poolOf(state: EvmState, address: string): Json {
  const count = countWithWaiting(state, address);
  const [pending, queued]: [Record<string, Json>, Record<string, Json>] = [{}, {}];
  for (const one of shownOf(state, address))
    (BigInt(one.nonce) < count ? pending : queued)[String(one.nonce)] = transactionJson(one, null, null);
  return { pending, queued };
}

/** What our node shows of the pool. */
const shown = ({ pool, denied }: EvmState): readonly EvmTransaction[] =>
  [...pool.values()].filter(({ hash }) => !denied.has(hash));

function known(state: EvmState, hash: string): EvmBlock {
  const block = state.blocks.get(hash.toLowerCase());
  if (block === undefined) throw new EvmRpcError(SERVER_ERROR, 'unknown block');
  return block;
}

const METHODS: Readonly<Record<string, (state: EvmState, params: readonly unknown[]) => Json>> = {
  eth_chainId: () => hex(CHAIN_ID),
  net_version: () => String(CHAIN_ID),
  net_peerCount: () => '0x0',
  eth_syncing: () => false,
  eth_blockNumber: (state) => hex(tip(state).number),
  eth_gasPrice: () => hex(BASE_FEE + TIP),
  eth_getBlockByNumber(state, params) {
    const tag = text(params, 0);
    if (tag === 'pending') return pendingJson(state);
    const block = blockAt(state, tag);
    return block === null ? null : blockJson(block, params[1] === true);
  },
  eth_getBlockByHash(state, params) {
    const block = state.blocks.get(text(params, 0));
    return block === undefined ? null : blockJson(block, params[1] === true);
  },
  eth_getBlockReceipts(state, params) {
    const asked = text(params, 0);
    const block = asked.length === 66 ? state.blocks.get(asked) : blockAt(state, asked);
    return block?.transactions.map((_, at) => receiptJson(block, at)) ?? null;
  },
  eth_getTransactionReceipt(state, params) {
    const place = state.places.get(text(params, 0));
    return place === undefined ? null : receiptJson(place.block, place.at);
  },
  eth_getTransactionByHash(state, params) {
    const hash = text(params, 0);
    const place = state.places.get(hash);
    if (place !== undefined) return transactionJson(place.block.transactions[place.at] as EvmTransaction, place.block, place.at);
    const waiting = state.pool.get(hash);
    return waiting === undefined || state.denied.has(hash) ? null : transactionJson(waiting, null, null);
  },
  debug_traceBlockByHash(state, params) {
    const block = known(state, text(params, 0));
    return block.executed.map(({ frame }, at) => ({ txHash: block.transactions[at]?.hash, result: frameJson(frame) }));
  },
  eth_getLogs: (state, params) => filteredLogs(state, (params[0] ?? {}) as Filter),
  txpool_status: (state) => ({ pending: hex(shown(state).length), queued: '0x0' }),
  txpool_content: poolJson,
  txpool_contentFrom: (state, params) => poolOf(state, text(params, 0)),
  eth_getCode: (_state, params) => (CONTRACTS.has(text(params, 0)) ? CODE : '0x'),
  eth_getBalance: (state, params) => hex(accountsAt(state, params[1]).get(ether(text(params, 0)))),
  eth_getTransactionCount(state, params) {
    const address = text(params, 0);
    return hex(params[1] === 'pending' ? countWithWaiting(state, address) : accountsAt(state, params[1]).get(nonce(address)));
  },
  eth_maxPriorityFeePerGas: () => hex(TIP),
  eth_estimateGas(state, params) {
    called(state, params);
    const { data, input } = (params[0] ?? {}) as Record<string, string>;
    return hex((input ?? data ?? '0x') === '0x' ? PLAIN_GAS : CALL_GAS);
  },
  eth_call: called,
  eth_simulateV1: simulated,
};

export const SENDS = 'eth_sendRawTransaction';

function sendRaw(chain: SimulatedEvm, params: readonly unknown[]): Json {
  const { fault } = chain.state.trouble;
  if (fault === 'reject') throw new EvmRpcError(SERVER_ERROR, 'transaction underpriced: gas tip cap below the minimum needed');
  const answer = chain.send(text(params, 0), fault === 'forgets');
  if ('refused' in answer) throw new EvmRpcError(SERVER_ERROR, answer.refused);
  return answer.hash;
}

/** @throws EvmRpcError */
export function callMethod(chain: SimulatedEvm, method: string, params: readonly unknown[]): Json {
  if (method === SENDS) return sendRaw(chain, params);
  const { state } = chain;
  const run = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
  if (run === undefined) throw new EvmRpcError(-32601, `the method ${method} does not exist/is not available`);
  return run(state, params);
}
