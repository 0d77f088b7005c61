// Judges what one full node reports of itself: whether it is on our chain, has read all the blocks it knows of, and still follows the
// chain.
import { chainNetwork, type Network, type UtxoCode, utxoRow } from '../../../core/currency.ts';
import type { AskedToo, Clock, NodeCondition } from '../../../core/ports.ts';
import { asHash, asTxids, type Rpc } from './rpc.ts';
import { TooLarge } from './rpc-body.ts';
import { NodeTrouble, plainText, RpcRefusal, type TroubleState } from './trouble.ts';

export type ConditionOptions = { readonly currency: UtxoCode; readonly network: Network; readonly clock: Clock };

const FALSE_ALARM_SECONDS = 10 * 365.25 * 86_400;
/** Miners date the headers, and blocks come more slowly for a while when some miners leave. */
const SLOW_BLOCKS = 1.5;

/**
 * A node whose tip is older than this does not follow the chain. The time between blocks is exponential, so a healthy chain waits longer
 * than k block times once in e^k blocks: less than once in ten years, even while blocks come at two thirds of their usual rate.
 */
export function stuckAfterMs(blockSeconds: number): number {
  return SLOW_BLOCKS * Math.log(FALSE_ALARM_SECONDS / blockSeconds) * blockSeconds * 1000;
}

const HASH_LENGTH = 64;
/** Far above every chain's height for centuries, and with room for what is added to a height in the database's 32 bits. */
const HIGHEST = 1_000_000_000;
/** The time of a header has 32 bits. */
const LATEST = 0xffffffff;
const MOST_PEERS_BYTES = 4 * 1024 * 1024;

/** Whether a number in an answer can be the height of a block. */
export const isHeight = (value: unknown): value is number => isWhole(value) && value <= HIGHEST;
/** Seconds since 1970. */
export const isTime = (value: unknown): value is number => isWhole(value) && value <= LATEST;
const isWhole = (value: unknown): value is number => typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;

/** The last known tip of the node: what was asked about it is not asked again. */
type KnownTip = { readonly hash: string; readonly height: number; readonly timeMs: number };

/** Makes the function that reads one node's condition: one request, and one more for a new tip. Never throws NodeTrouble: that is its result. */
export function createConditionReader(rpc: Rpc, options: ConditionOptions): (asked?: AskedToo) => Promise<NodeCondition> {
  let known: KnownTip | null = null;
  return async (asked = { mempool: false }) => {
    try {
      const { condition, tip } = await judgeCondition(rpc, options, { known, asked, attempt: 1 });
      if (tip !== null) known = tip;
      return condition;
    } catch (error) {
      if (error instanceof NodeTrouble) return { state: error.state, reason: error.message, height: null };
      if (error instanceof RpcRefusal) return { state: 'bad_answer', reason: `${rpc.name}: ${error.message}`, height: null };
      throw error;
    }
  };
}

type Question = { readonly known: KnownTip | null; readonly asked: AskedToo; readonly attempt: 1 | 2 };
type Judged = { readonly condition: NodeCondition; readonly tip: KnownTip | null };

async function judgeCondition(rpc: Rpc, options: ConditionOptions, question: Question): Promise<Judged> {
  const { network, clock } = options;
  const { utxo } = utxoRow(options.currency);
  const { info, genesis, peers, mempool } = await ask(rpc, question.asked);
  const expected = utxo.genesis[chainNetwork(network)];
  if (genesis !== expected) {
    const reason = `${rpc.name}: its first block is ${plainText(genesis, HASH_LENGTH)}, ${network} begins with ${expected}`;
    return trouble('wrong_network', null, reason);
  }
  const own = network === 'regtest' || network === 'sandbox';
  if (!own && info.initialBlockDownload)
    return trouble('syncing', info.blocks, `${rpc.name}: initial block download, ${info.blocks} of ${info.headers} blocks`);
  // on a private chain of our own there are no peers, and a block may be removed by hand
  if (info.headers > info.blocks + 1 && (!own || peers !== 0) && (await manyAreAhead(rpc, info))) {
    return trouble('syncing', info.blocks, `${rpc.name}: ${info.blocks} of ${info.headers} blocks, ${withPeers(peers)}`);
  }
  const isKnown = question.known?.hash === info.hash && question.known.height === info.blocks;
  const tip = isKnown ? question.known : await readTip(rpc, options, info);
  if (tip === null) {
    // it may have lost a reorganisation between two requests: its present answer is about the new tip
    if (question.attempt === 1) return judgeCondition(rpc, options, { ...question, attempt: 2 });
    throw new NodeTrouble(
      'bad_answer',
      `${rpc.name}: it claims ${info.blocks} blocks, and does not have the last one, ${info.hash}, there`,
    );
  }
  if ('condition' in tip) return tip;
  const ageMs = clock.now() - tip.timeMs;
  if (!own && ageMs > stuckAfterMs(utxo.blockSeconds)) {
    return trouble('stuck', info.blocks, `${rpc.name}: the tip is ${Math.round(ageMs / 60_000)} min old, ${withPeers(peers)}`);
  }
  // no peer sends it payments, however young its tip is
  if (!own && peers === 0) return trouble('stuck', info.blocks, `${rpc.name}: it has no peers`);
  const condition = {
    state: 'ready',
    height: info.blocks,
    hash: info.hash,
    tipTimeMs: tip.timeMs,
    peers: peers ?? 0,
    ...(info.pruneHeight === null ? {} : { prunedBelow: info.pruneHeight }),
    ...(mempool === null ? {} : { mempool }),
  } as const;
  return { condition, tip };
}

type Said = {
  readonly info: ChainInfo;
  readonly genesis: unknown;
  readonly peers: number | null;
  readonly mempool: readonly string[] | null;
};

/** One request; the mempool is listed first, so that it is not younger than the rest. */
async function ask(rpc: Rpc, asked: AskedToo): Promise<Said> {
  const questions = [{ method: 'getblockchaininfo' }, { method: 'getblockhash', params: [0] }, { method: 'getconnectioncount' }];
  const first = asked.mempool ? await orTooLarge(rpc.batch([{ method: 'getrawmempool' }, ...questions])) : null;
  const [list, chain, genesis, connections] = first ?? [null, ...(await rpc.batch(questions))];
  for (const answer of [chain, genesis]) if (answer instanceof RpcRefusal) throw answer;
  const listed = first !== null && !(list instanceof RpcRefusal);
  return {
    info: chainInfo(rpc, chain),
    genesis,
    peers: isWhole(connections) ? connections : null,
    mempool: listed ? asTxids(rpc, 'getrawmempool', list) : null,
  };
}

/** Null for an answer that is too large: a mempool that was short has grown, and is listed by itself. */
async function orTooLarge<T>(answers: Promise<T>): Promise<T | null> {
  try {
    return await answers;
  } catch (error) {
    if (error instanceof NodeTrouble && error.cause instanceof TooLarge) return null;
    throw error;
  }
}

/**
 * Whether half of its peers have blocks that it does not have: headers alone may come from one peer that withholds the blocks. Only the
 * peers that the node has chosen itself count, if it has any; a node that does not report its peers' heights is judged by its headers.
 */
async function manyAreAhead(rpc: Rpc, info: ChainInfo): Promise<boolean> {
  const [answer] = await rpc.batch([{ method: 'getpeerinfo' }], MOST_PEERS_BYTES);
  const withHeights = (Array.isArray(answer) ? (answer as { inbound?: unknown; synced_headers?: unknown }[]) : []).filter(
    (peer) => typeof peer?.synced_headers === 'number' && peer.synced_headers >= 0,
  );
  if (withHeights.length === 0) return true;
  const chosen = withHeights.filter((peer) => peer.inbound === false);
  const counted = chosen.length > 0 ? chosen : withHeights;
  const ahead = counted.filter((peer) => (peer.synced_headers as number) > info.blocks + 1).length;
  return ahead * 2 >= counted.length;
}

const withPeers = (peers: number | null): string =>
  peers === 0 ? 'and it has no peers' : `with ${peers ?? 'an unknown number of'} peers`;

/**
 * The tip with its time; null when the node does not have the block that it reports at the height that it reports. Where two chains share
 * their first blocks, the blocks that distinguish them must be ours.
 */
async function readTip(rpc: Rpc, options: ConditionOptions, info: ChainInfo): Promise<KnownTip | Judged | null> {
  const all = options.network === 'mainnet' ? (utxoRow(options.currency).utxo.splits ?? []) : [];
  const splits = all.filter(({ height }) => info.blocks >= height);
  const [header, last, ...parted] = await rpc.batch([
    { method: 'getblockheader', params: [info.hash] },
    { method: 'getblockhash', params: [info.blocks] },
    ...splits.map(({ height }) => ({ method: 'getblockhash', params: [height] })),
  ]);
  for (const [index, { height, hash }] of splits.entries()) {
    const given = parted[index];
    if (given === hash || given instanceof RpcRefusal) continue;
    const reason = `${rpc.name}: its block ${height} is ${plainText(given, HASH_LENGTH)}, the one of ${options.currency} is ${hash}`;
    return trouble('wrong_network', null, reason);
  }
  if (header instanceof RpcRefusal || last instanceof RpcRefusal || last !== info.hash) return null;
  const time = (header as { time?: unknown } | null)?.time;
  if (!isTime(time)) throw new NodeTrouble('bad_answer', `${rpc.name}: getblockheader did not answer a time`);
  return { hash: info.hash, height: info.blocks, timeMs: time * 1000 };
}

function trouble(state: TroubleState, height: number | null, reason: string): Judged {
  return { condition: { state, height, reason: plainText(reason) }, tip: null };
}

type ChainInfo = {
  readonly blocks: number;
  readonly headers: number;
  readonly hash: string;
  readonly initialBlockDownload: boolean;
  /** The lowest block that a pruned node still has; null when it has all. */
  readonly pruneHeight: number | null;
};

function chainInfo(rpc: Rpc, answer: unknown): ChainInfo {
  const { blocks, headers, bestblockhash, initialblockdownload, pruned, pruneheight } = (answer ?? {}) as Record<string, unknown>;
  if (!isHeight(blocks)) {
    throw new NodeTrouble('bad_answer', `${rpc.name}: getblockchaininfo did not answer a height`);
  }
  return {
    blocks,
    headers: isHeight(headers) ? headers : blocks,
    hash: asHash(rpc, 'getblockchaininfo', bestblockhash),
    initialBlockDownload: initialblockdownload === true,
    pruneHeight: pruned === true && isHeight(pruneheight) && pruneheight > 0 ? pruneheight : null,
  };
}
