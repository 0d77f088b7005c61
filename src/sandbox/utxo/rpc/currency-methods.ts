// Methods that only one currency's node has: Dash Core's locks, BCHN's double-spend proofs and fee estimate, Dogecoin Core's old ones.
import type { UtxoCode } from '../../../core/currency.ts';
import { tip } from '../chain-state.ts';
import type { SimulatedNode } from '../simulated-node.ts';
import { amount, type Json } from './answers.ts';
import { hash, integer, list, type Params, RpcError, text } from './error.ts';

type Method = (node: SimulatedNode, params: Params) => Json;

const RPC_INTERNAL = -32603;
const NO_SIGNATURE = '00'.repeat(96);

function getBestChainLock({ state }: SimulatedNode): Json {
  const block = state.active[state.chainLock];
  if (block === undefined) throw new RpcError(RPC_INTERNAL, 'Unable to find any ChainLock');
  return { blockhash: block.hash, height: block.height, signature: NO_SIGNATURE, known_block: true };
}

function getInstantLocks({ state }: SimulatedNode, params: Params): Json {
  return list(params, 0).map((each) => {
    const txid = text([each], 0);
    const transaction = state.alive.get(txid)?.transaction;
    if (transaction === undefined || !state.locked.has(txid)) return 'None';
    const inputs = transaction.inputs.map((input) => ({ txid: input.txid, vout: input.vout }));
    return { txid, inputs, id: txid, cycleHash: tip(state).hash, signature: NO_SIGNATURE };
  });
}

function getTransactionChainLocks({ state }: SimulatedNode, params: Params): Json {
  return list(params, 0).map((each) => {
    const known = state.alive.get(text([each], 0));
    const height = known?.block?.height ?? -1;
    return { height, chainlock: height >= 0 && height <= state.chainLock, mempool: known !== undefined && known.block === null };
  });
}

/** Never a proof: a double spend here comes from a control, between two looks at the node. */
function getDoubleSpendProof(_: SimulatedNode, params: Params): Json {
  hash(params, 0, 'dspid or txid');
  return null;
}

export const CURRENCY_METHODS: Partial<Record<UtxoCode, Readonly<Record<string, Method>>>> = {
  DASH: {
    getbestchainlock: getBestChainLock,
    getislocks: getInstantLocks,
    gettxchainlocks: getTransactionChainLocks,
  },
  BCH: {
    estimatefee: ({ state }) => amount(state.dialect.relayFeePerKvb),
    getdsproof: getDoubleSpendProof,
    getdsprooflist: () => [],
  },
  DOGE: {
    estimatefee: () => -1,
    estimatesmartfee: (_, params) => ({ feerate: -1, blocks: integer(params, 0, 1) }),
    getinfo: ({ state }) => ({
      version: state.dialect.rpc.version,
      protocolversion: state.dialect.rpc.protocol,
      blocks: tip(state).height,
      timeoffset: 0,
      connections: 0,
      proxy: '',
      testnet: false,
      relayfee: amount(state.dialect.relayFeePerKvb),
      errors: '',
    }),
  },
};
