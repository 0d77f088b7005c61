// One full node of Bitcoin's family behind ChainPort: its condition, blocks and mempool as raw bytes read with our own scanner, ZMQ as a
// hint where it has it.
import { type Network, type UtxoCode, utxoRow } from '../../../core/currency.ts';
import type {
  BlockFacts,
  ChainPort,
  Clock,
  MempoolEntry,
  PayingPort,
  TransactionFacts,
  UnreadTransaction,
  WatchList,
} from '../../../core/ports.ts';
import { checkHeader, readBlockBytes, transactionsIn } from '../block.ts';
import { displayHash, Malformed } from '../bytes.ts';
import { readRawTransaction, readSpent } from '../outputs.ts';
import { readTransactionBytes } from '../transaction.ts';
import { checkHeaderWork, checkWork, targetIn, targetOf } from '../work.ts';
import { createConditionReader, isHeight, isTime } from './condition.ts';
import { METHOD_NOT_FOUND, readDoubleSpendProofs, readLocks } from './locks-and-proofs.ts';
import { asTrouble, decodedBlock, readTransaction, refusalAsTrouble } from './reading.ts';
import { asHash, asTxids, createRpc, FEW_BYTES, fromHex, orRefusal, type Rpc } from './rpc.ts';
import { readFeeWord, type SaysFees, sendTransaction } from './send.ts';
import { isBeyondTip, NodeTrouble, RpcRefusal } from './trouble.ts';
import { subscribeZmq } from './zmq.ts';

export type UtxoNodeOptions = {
  readonly currency: UtxoCode;
  /** `http://user:password@host:port` of the node's JSON-RPC. */
  readonly url: string;
  readonly network: Network;
  readonly clock: Clock;
  /** No bytes from the node for this long is trouble (default 15 s, and 5 s for calls that cost it nothing). */
  readonly silenceMs?: number;
};

type Closable = {
  /** Host and port, for messages. */
  readonly name: string;
  close(): Promise<void>;
};
/** A node of any chain. */
export type ChainNode = ChainPort & Closable;
export type UtxoNode = PayingPort & Closable;

/** A node by itself, which can be asked to show what it claims. */
export type ReadingNode = ChainNode & {
  /**
   * Reads a whole block and checks it as `readBlock` does, and its proof of work.
   * @param easiest the easiest target that is accepted; null: its work is not looked at
   * @returns the hash of the block before it
   */
  proveBlock(hash: string, easiest: bigint | null): Promise<string>;
  /** The target of a block, and the block before it; null on networks whose blocks prove nothing. */
  targetAt(hash: string): Promise<{ readonly target: bigint; readonly previousHash: string } | null>;
  /** What it said of a block is read anew when it is asked again; absent where nothing of it is kept. */
  forget?(hash: string): void;
};
export type SingleNode = UtxoNode & ReadingNode & SaysFees;

const CONNECTIONS = 4;
/** The entry of a transaction that spends and is spent by thousands in the mempool. */
const MOST_ENTRY_BYTES = 4 * 1024 * 1024;
const MOST_LACKING = 100;
/** A hash in a list. */
const LISTED_BYTES = 70;
const HASH = /^[0-9a-f]{64}$/;
/** RPC_INVALID_ADDRESS_OR_KEY, also of bchd: the node has no such transaction (any more). */
const NOT_THERE = -5;
/** A transaction that the node lists but this often in a row says it does not have: one of the two answers is wrong. */
const DENIED_OFTEN = 4;
/** A node that sends nothing for this long is down: for a request of a block or the mempool, and for one that costs it nothing. */
const SILENCE_MS = 15_000;
const QUICK_SILENCE_MS = 5_000;
/** A search of many blocks' filters sends nothing until it ends. */
const SEARCH_SILENCE_MS = 120_000;
/** `Index is not enabled for filtertype basic` and `Unknown filtertype` of Bitcoin Core and its descendants. */
const NO_FILTERS = /not enabled|unknown filtertype/i;

/** Opens nothing until the first call. Every call throws NodeTrouble when the node cannot be used. */
export function createUtxoNode(options: UtxoNodeOptions): SingleNode {
  const { currency } = options;
  const row = utxoRow(currency);
  const features = row.utxo.blockFeatures;
  const { dialect } = row.utxo;
  const provesWork = options.network === 'mainnet';
  const silenceMs = options.silenceMs ?? SILENCE_MS;
  const rpc = createRpc({ url: options.url, silenceMs, connections: CONNECTIONS });
  // calls that every node answers at once: one that does not is noticed soon, also during a large answer
  const quickMs = Math.min(silenceMs, QUICK_SILENCE_MS);
  const quick = createRpc({
    url: options.url,
    silenceMs: quickMs,
    mostMs: quickMs,
    connections: 2,
    mostBytes: FEW_BYTES,
  });
  const patient = createRpc({ url: options.url, silenceMs: Math.max(silenceMs, SEARCH_SILENCE_MS), connections: 1 });
  const readCondition = createConditionReader(quick, options);
  /** Listed at the last look but not available: how often in a row. */
  let denied = new Map<string, number>();
  /** The height that it reported last, and how often in a row it did not have a block up to there. */
  let claimed = -1;
  const lacking = new Map<number, number>();
  function noteListing(listing: readonly string[]): void {
    if (denied.size > 0) denied = stillListed(denied, listing);
  }

  async function minedTransactions(hash: string, txids: ReadonlySet<string>): Promise<ReadonlyMap<string, Uint8Array>> {
    const bytes = await refusalAsTrouble(rpc, rpc.callHex('getblock', [hash, dialect.rawBlock]), `block ${hash}`);
    return asTrouble(rpc, hash, () => transactionsIn(bytes, hash, features, txids));
  }

  async function readBlockOf(
    bytes: Buffer,
    hash: string,
    list: Pick<WatchList, 'hasScript' | 'hasOutpoint'>,
  ): Promise<BlockFacts> {
    // where the work is the hash that we compute anyway; scrypt takes too long for every block
    if (provesWork && row.utxo.work.hash === 'header')
      await asTrouble(rpc, hash, () => checkHeaderWork(bytes, hash, targetOf(row.utxo.work.limitBits)));
    try {
      return readBlockBytes(bytes, hash, features, list);
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      const asked = { rpc, features, watch: list };
      return decodedBlock(error, asked, { hash, bytes, listed: dialect.rawBlock === 0 ? 1 : true });
    }
  }

  return {
    currency,
    name: rpc.name,
    async condition(asked) {
      const condition = await readCondition(asked);
      if (condition.state === 'ready') {
        claimed = condition.height;
        for (const height of lacking.keys()) if (height > claimed) lacking.delete(height);
        if (condition.mempool !== undefined) noteListing(condition.mempool);
      }
      return condition;
    },
    async hashAt(height) {
      const answer = await orRefusal(quick.call('getblockhash', [height]));
      if (!(answer instanceof RpcRefusal)) {
        lacking.delete(height);
        return asHash(rpc, 'getblockhash', answer);
      }
      if (isBeyondTip(answer)) {
        if (height <= claimed) countLack(rpc, lacking, { height, claimed });
        return null;
      }
      throw new NodeTrouble('bad_answer', `${rpc.name}: ${answer.message}`, { cause: answer });
    },
    async readBlock(hash, watch) {
      const bytes = await refusalAsTrouble(rpc, rpc.callHex('getblock', [hash, dialect.rawBlock]), `block ${hash}`);
      await watch.fresh();
      return readBlockOf(bytes, hash, watch);
    },
    minedTransactions,
    async proveBlock(hash, easiest) {
      const bytes = await refusalAsTrouble(rpc, rpc.callHex('getblock', [hash, dialect.rawBlock]), `block ${hash}`);
      const { previousHash } = await readBlockOf(bytes, hash, NOTHING);
      if (easiest !== null) await asTrouble(rpc, hash, () => checkWork(bytes, hash, row.utxo.work, easiest));
      return previousHash;
    },
    async targetAt(hash) {
      if (!provesWork) return null;
      const answer = fromHex(await refusalAsTrouble(rpc, quick.call('getblockheader', [hash, false]), `header ${hash}`));
      return asTrouble(rpc, hash, () => {
        if (answer === null) throw new Malformed('its header is no hex');
        checkHeader(answer, hash, features);
        return { target: targetIn(answer), previousHash: displayHash(answer, 4) };
      });
    },
    async mempool() {
      const listing = asTxids(rpc, 'getrawmempool', await refusalAsTrouble(rpc, rpc.callList('getrawmempool')));
      noteListing(listing);
      return listing;
    },
    async readMempoolTransactions(txids, watch) {
      const missing: string[] = [];
      const unread: UnreadTransaction[] = [];
      const touched: TransactionFacts[] = [];
      for await (const raws of fetchTransactions(rpc, txids)) {
        await watch.fresh();
        for (const [txid, raw] of raws) {
          if (raw === null) {
            missing.push(txid);
            countDenial(rpc, denied, txid);
            continue;
          }
          denied.delete(txid);
          try {
            const facts = await readTransaction({ rpc, features, watch }, txid, raw);
            if (facts !== null) touched.push(facts);
          } catch (error) {
            if (!(error instanceof Malformed)) throw error;
            unread.push({ txid, reason: `${rpc.name}: transaction ${txid} cannot be read: ${error.message}` });
          }
        }
      }
      return { missing, touched, unread };
    },
    readRaw(raw, watch) {
      try {
        return readTransactionBytes(Buffer.from(raw), null, features, watch);
      } catch (error) {
        if (error instanceof Malformed) return null; // the whole list brings it again, with its txid
        throw error;
      }
    },
    mempoolEntries: (txids) => readEntries(quick, txids),
    locks: async (txids) => (dialect.locks ? readLocks(rpc, txids) : new Map()),
    doubleSpendProofs: dialect.doubleSpendProofs ? (txids) => readDoubleSpendProofs(rpc, txids) : null,
    async blocksPaying(scripts, fromHeight, toHeight) {
      const wanted = scripts.map((script) => `raw(${Buffer.from(script).toString('hex')})`);
      const most = FEW_BYTES + (toHeight - fromHeight + 1) * LISTED_BYTES;
      const answer = await orRefusal(patient.call('scanblocks', ['start', wanted, fromHeight, toHeight, 'basic'], most));
      if (answer instanceof RpcRefusal) {
        if (answer.code === METHOD_NOT_FOUND || NO_FILTERS.test(answer.message)) return null;
        throw new NodeTrouble('bad_answer', `${rpc.name}: ${answer.message}`, { cause: answer });
      }
      const { relevant_blocks: hashes } = (answer ?? {}) as { relevant_blocks?: unknown };
      if (!Array.isArray(hashes) || !hashes.every((hash) => typeof hash === 'string' && HASH.test(hash)))
        throw new NodeTrouble('bad_answer', `${rpc.name}: scanblocks did not answer a list of blocks`);
      return hashes;
    },
    send: (raw) => sendTransaction(rpc, raw),
    feeRate: async () => (await readFeeWord(quick))?.rate ?? null,
    feeWord: () => readFeeWord(quick),
    spentOf: (outpoints) => readSpent(rpc, outpoints),
    rawTransaction: (txid, blockHash) => readRawTransaction(rpc, { txid, blockHash }, features.segwit ? null : minedTransactions),
    subscribe: (push) => subscribeZmq(rpc, new URL(options.url).hostname, push),
    close: async () => {
      await Promise.all([rpc.close(), quick.close(), patient.close()]);
    },
  };
}

/** The raw bytes of each, part by part; null for one that the node does not have (any more). */
async function* fetchTransactions(
  rpc: Rpc,
  txids: readonly string[],
): AsyncGenerator<readonly (readonly [string, Buffer | null])[]> {
  const params = txids.map((txid) => [txid]);
  for await (const { from, answers } of rpc.inParts('getrawtransaction', params))
    yield answers.map(
      (answer, i) => [txids[from + i] as string, rawTransaction(rpc, txids[from + i] as string, answer)] as const,
    );
}

function rawTransaction(rpc: Rpc, txid: string, answer: unknown): Buffer | null {
  if (answer instanceof RpcRefusal) {
    if (answer.code === NOT_THERE) return null;
    throw new NodeTrouble('bad_answer', `${rpc.name}: ${answer.message} (transaction ${txid})`, { cause: answer });
  }
  const bytes = fromHex(answer);
  if (bytes === null) throw new NodeTrouble('bad_answer', `${rpc.name}: getrawtransaction did not answer a hex string`);
  return bytes;
}

async function readEntries(rpc: Rpc, txids: readonly string[]): Promise<Map<string, MempoolEntry>> {
  const entries = new Map<string, MempoolEntry>();
  const params = txids.map((txid) => [txid]);
  for await (const { from, answers } of rpc.inParts('getmempoolentry', params, MOST_ENTRY_BYTES)) {
    for (const [i, answer] of answers.entries()) {
      if (answer instanceof RpcRefusal) continue; // no longer there, or a node that does not report it
      const { time, height } = (answer ?? {}) as { time?: unknown; height?: unknown };
      if (!isTime(time) || time === 0) continue;
      entries.set(txids[from + i] as string, { atMs: time * 1000, height: isHeight(height) ? height : null });
    }
  }
  return entries;
}

function stillListed(denied: ReadonlyMap<string, number>, listing: readonly string[]): Map<string, number> {
  const listed = new Set(listing);
  return new Map([...denied].filter(([txid]) => listed.has(txid)));
}

function countDenial(rpc: Rpc, denied: Map<string, number>, txid: string): void {
  const times = (denied.get(txid) ?? 0) + 1;
  denied.set(txid, times);
  if (times < DENIED_OFTEN) return;
  const reason = `${rpc.name}: its mempool lists transaction ${txid}, and ${times} times in a row it said that it does not have it`;
  throw new NodeTrouble('bad_answer', reason);
}

const NOTHING = { hasScript: () => false, hasOutpoint: () => false };

/** Blocks may be lost between two answers, but not again and again while the height stays. */
function countLack(rpc: Rpc, lacking: Map<number, number>, at: { readonly height: number; readonly claimed: number }): void {
  const times = (lacking.get(at.height) ?? 0) + 1;
  if (lacking.size < MOST_LACKING) lacking.set(at.height, times);
  if (times < DENIED_OFTEN) return;
  const reason = `${rpc.name}: it claims ${at.claimed} blocks, and ${times} times in a row it said that it does not have block ${at.height}`;
  throw new NodeTrouble('bad_answer', reason);
}
