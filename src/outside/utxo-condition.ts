// What one full node says of itself, judged: whether it is of our chain, has read all that it knows, and follows the chain still. Called by
// utxo-node.ts at the begin of each pass.
import { chainNetwork, type Network, type UtxoCode, utxoRow } from '../core/currency.ts';
import type { Clock, NodeCondition } from '../core/ports.ts';
import { NodeTrouble, RpcRefusal, type TroubleState } from './node-trouble.ts';
import { asHash, type Rpc } from './utxo-rpc.ts';

export type ConditionOptions = { readonly currency: UtxoCode; readonly network: Network; readonly clock: Clock };

/** A tip older than this many block times is a node that does not follow the chain. */
const STUCK_BLOCKS = 10;

/** What the node says of itself, in one request (and one more for the age of its tip). Never throws NodeTrouble: that is its answer. */
export async function readCondition(rpc: Rpc, options: ConditionOptions): Promise<NodeCondition> {
  try {
    return await judgeCondition(rpc, options, 1);
  } catch (error) {
    if (error instanceof NodeTrouble) return { state: error.state, reason: error.message, height: null };
    if (error instanceof RpcRefusal) return { state: 'bad_answer', reason: `${rpc.name}: ${error.message}`, height: null };
    throw error;
  }
}

async function judgeCondition(rpc: Rpc, options: ConditionOptions, attempt: 1 | 2): Promise<NodeCondition> {
  const { currency, network, clock } = options;
  const { utxo } = utxoRow(currency);
  const [chain, genesis, connections] = (await rpc.batch([
    { method: 'getblockchaininfo' },
    { method: 'getblockhash', params: [0] },
    { method: 'getconnectioncount' },
  ])) as [unknown, unknown, unknown];
  for (const answer of [chain, genesis]) if (answer instanceof RpcRefusal) throw answer;
  const expected = utxo.genesis[chainNetwork(network)];
  if (genesis !== expected)
    return trouble(
      'wrong_network',
      null,
      `${rpc.name}: its first block is ${String(genesis)}, ${network} begins with ${expected}`,
    );
  const info = chainInfo(rpc, chain);
  const peers = typeof connections === 'number' ? connections : null;
  const own = network === 'regtest' || network === 'sandbox';
  if (!own && info.initialBlockDownload)
    return trouble('syncing', info.blocks, `${rpc.name}: initial block download, ${info.blocks} of ${info.headers} blocks`);
  // on a chain of our own nobody has peers, and a block may be taken back by hand
  if (info.headers > info.blocks + 1 && (!own || peers !== 0)) {
    return trouble('syncing', info.blocks, `${rpc.name}: ${info.blocks} of ${info.headers} blocks, ${withPeers(peers)}`);
  }
  const tip = await readTip(rpc, options, info);
  if (tip === null) {
    // it may have lost a reorganisation between two questions: what it says now is about the new tip
    if (attempt === 1) return judgeCondition(rpc, options, 2);
    throw new NodeTrouble(
      'bad_answer',
      `${rpc.name}: it claims ${info.blocks} blocks, and does not have the last one, ${info.hash}, there`,
    );
  }
  if (typeof tip === 'object') return tip;
  const ageMs = clock.now() - tip;
  if (!own && ageMs > STUCK_BLOCKS * utxo.blockSeconds * 1000) {
    return trouble('stuck', info.blocks, `${rpc.name}: the tip is ${Math.round(ageMs / 60_000)} min old, ${withPeers(peers)}`);
  }
  // nobody tells it of a payment, however young its tip is
  if (!own && peers === 0) return trouble('stuck', info.blocks, `${rpc.name}: it has no peers`);
  const pruned = info.pruneHeight === null ? {} : { prunedBelow: info.pruneHeight };
  return { state: 'ready', height: info.blocks, hash: info.hash, tipTimeMs: tip, peers: peers ?? 0, ...pruned };
}

const withPeers = (peers: number | null): string =>
  peers === 0 ? 'and it has no peers' : `with ${peers ?? 'an unknown number of'} peers`;

/**
 * The time of the tip, ms; null when the node does not have at the height that it claims the block that it claims. Where two chains share
 * their first block, the one that tells them apart must be ours.
 */
async function readTip(rpc: Rpc, options: ConditionOptions, info: ChainInfo): Promise<number | NodeCondition | null> {
  const split = options.network === 'mainnet' ? utxoRow(options.currency).utxo.split : undefined;
  const [header, last, parted] = await rpc.batch([
    { method: 'getblockheader', params: [info.hash] },
    { method: 'getblockhash', params: [info.blocks] },
    ...(split !== undefined && info.blocks >= split.height ? [{ method: 'getblockhash', params: [split.height] }] : []),
  ]);
  if (split !== undefined && parted !== undefined && parted !== split.hash && !(parted instanceof RpcRefusal)) {
    const reason = `${rpc.name}: its block ${split.height} is ${typeof parted === 'string' ? parted : 'no hash'}, the one of ${options.currency} is ${split.hash}`;
    return trouble('wrong_network', null, reason);
  }
  if (header instanceof RpcRefusal || last instanceof RpcRefusal || last !== info.hash) return null;
  const time = (header as { time?: unknown } | null)?.time;
  if (typeof time !== 'number') throw new NodeTrouble('bad_answer', `${rpc.name}: getblockheader did not answer a time`);
  return time * 1000;
}

function trouble(state: TroubleState, height: number | null, reason: string): NodeCondition {
  return { state, height, reason };
}

type ChainInfo = {
  readonly blocks: number;
  readonly headers: number;
  readonly hash: string;
  readonly initialBlockDownload: boolean;
  /** The lowest block that a pruned node has; null when it has all. */
  readonly pruneHeight: number | null;
};

function chainInfo(rpc: Rpc, answer: unknown): ChainInfo {
  const { blocks, headers, bestblockhash, initialblockdownload, pruned, pruneheight } = (answer ?? {}) as Record<string, unknown>;
  if (typeof blocks !== 'number' || !Number.isSafeInteger(blocks) || blocks < 0) {
    throw new NodeTrouble('bad_answer', `${rpc.name}: getblockchaininfo did not answer a height`);
  }
  return {
    blocks,
    headers: typeof headers === 'number' ? headers : blocks,
    hash: asHash(rpc, 'getblockchaininfo', bestblockhash),
    initialBlockDownload: initialblockdownload === true,
    pruneHeight: pruned === true && typeof pruneheight === 'number' && pruneheight > 0 ? pruneheight : null,
  };
}
