// Ether, or one token, of an Ethereum node behind ChainPort.
import type { BlockRef } from '../../core/block-ref.ts';
import { FINAL_AT_LEAST_BEHIND } from '../../core/currencies/evm.ts';
import { chainNetwork, type EvmCode, evmRow, type Network } from '../../core/currency.ts';
import type { EvmPort } from '../../core/evm/port.ts';
import type { AskedToo, BlockFacts, Clock, MempoolEntry, NodeCondition, TransactionFacts, WatchList } from '../../core/ports.ts';
import { Malformed } from '../utxo/bytes.ts';
import { stuckAfterMs } from '../utxo/node/condition.ts';
import type { ReadingNode } from '../utxo/node/node.ts';
import { NodeTrouble, RpcRefusal } from '../utxo/node/trouble.ts';
import { asNumber, type EvmBlock, type EvmTransaction } from './answers.ts';
import { restByBalance } from './by-balance.ts';
import type { Heads } from './heads.ts';
import { blocksWithTransfers } from './logs.ts';
import { createEvmSending } from './paying.ts';
import { etherIn, tokensIn, waitingIn } from './payments.ts';
import { type EvmSource, isLimit, quantity } from './source.ts';

export type EvmNodeOptions = {
  readonly currency: EvmCode;
  readonly source: EvmSource;
  readonly network: Network;
  readonly clock: Clock;
  /** The token's contract, lower case; null for ether. */
  readonly contract: string | null;
  /** What announces new blocks, besides polling (default: nothing). */
  readonly heads?: readonly Heads[];
};

const NOTHING = { hasScript: () => false, hasOutpoint: () => false };
/** The selectors of decimals() and of deprecated(). */
const DECIMALS = '0x313ce567';
const DEPRECATED = '0x0e136b19';
/** How often a token's contract is looked at again: its owner may put another one in its place. */
const TOKEN_EVERY_MS = 60_000;
const WORD = /^0x[0-9a-f]{64}$/i;
const CALLS_AT_ONCE = 100;
/** The code of geth and its relatives for a call that reverts. */
const REVERTED = 3;
/** Slots without a block are rare: a tip this many times older than such a wait would be is not followed any more. */
const LEAST_STUCK_MS = 10 * 60_000;

type EvmNode = ReadingNode & EvmPort;

/** Opens nothing until the first call. Every call throws NodeTrouble when the node cannot be used. */
export function createEvmNode({ currency, source, network, clock, contract, heads = [] }: EvmNodeOptions): EvmNode {
  const { evm, decimals } = evmRow(currency);
  const { rpc } = source;
  const chainId = evm.chainId[chainNetwork(network)];
  const own = chainNetwork(network) === 'regtest';
  /** The contract was looked at on this connection, and is what it should be. */
  let isTokenKnown = contract === null;
  let tokenLookedMs = 0;
  /** Of the tip that it reported last. */
  let tipHeight = 0;
  let waiting: ReadonlyMap<string, EvmTransaction> = new Map();

  async function readFacts(
    block: EvmBlock,
    watch: Pick<WatchList, 'hasScript' | 'hasOutpoint' | 'scripts'>,
  ): Promise<Pick<BlockFacts, 'touched' | 'inner'>> {
    if (contract !== null) return { touched: tokensIn(block, watch, contract, await source.receipts(block)) };
    const shown = await source.transfers(block);
    const touched = await etherIn(block, watch, shown, () => source.receipts(block));
    if (shown !== null && !shown.includes(null)) return { touched };
    const rest = await restByBalance(source, block, watch, shown);
    if (rest === 'unseen') return { touched, inner: rest };
    return { touched: rest === null ? touched : [...touched, rest], inner: 'by_balance' };
  }

  async function facts(hash: string, watch: WatchList): Promise<BlockFacts> {
    const block = await source.block(hash);
    // asked for before the list is loaded: what comes from the node afterwards is remembered
    await (contract === null ? source.transfers(block) : source.receipts(block));
    await watch.fresh();
    try {
      const { previousHash, timeMs, transactions } = block;
      return { hash, previousHash, timeMs, transactionCount: transactions.length, ...(await readFacts(block, watch)) };
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      source.forget(hash);
      throw new NodeTrouble('bad_answer', `${rpc.name}: block ${hash}: ${error.message}`, { cause: error });
    }
  }

  /** Why the token cannot be read here; null when its contract is there, and is the one in use. */
  async function tokenProblem(): Promise<string | null> {
    const agoMs = clock.now() - tokenLookedMs;
    if (contract === null || (isTokenKnown && agoMs >= 0 && agoMs < TOKEN_EVERY_MS)) return null;
    isTokenKnown = false;
    const [code, answered, replaced] = await rpc.batch([
      { method: 'eth_getCode', params: [contract, 'latest'] },
      { method: 'eth_call', params: [{ to: contract, data: DECIMALS }, 'latest'] },
      { method: 'eth_call', params: [{ to: contract, data: DEPRECATED }, 'latest'] },
    ]);
    for (const one of [code, answered, replaced]) if (one instanceof RpcRefusal && isLimit(one)) throw one;
    if (code instanceof RpcRefusal) throw code;
    if (code === '0x') return `there is no contract at ${contract}`;
    if (typeof answered !== 'string' || !WORD.test(answered) || BigInt(answered) !== BigInt(decimals))
      return `the contract at ${contract} does not have ${decimals} decimals`;
    // a token that nothing can replace does not know the question
    if (typeof replaced === 'string' && WORD.test(replaced) && BigInt(replaced) !== 0n)
      return `the contract at ${contract} is deprecated: another one has taken its place, and what is paid there is not read`;
    isTokenKnown = true;
    tokenLookedMs = clock.now();
    return null;
  }

  /** Without what would fail if it were mined now: a call of a token may ask for more than its sender has. */
  async function withoutFailing(touched: readonly TransactionFacts[]): Promise<readonly TransactionFacts[]> {
    const paying = touched.filter(({ outputs }) => outputs.length > 0);
    const failing = new Set<string>();
    for (let at = 0; at < paying.length; at += CALLS_AT_ONCE) {
      const part = paying.slice(at, at + CALLS_AT_ONCE);
      const calls = part.map(({ txid }) => {
        const { from, to, input } = waiting.get(txid) as EvmTransaction;
        return { method: 'eth_call', params: [{ from, to, data: input }, 'latest'] };
      });
      const answers = await rpc.batch(calls);
      for (const [nth, { txid }] of part.entries()) {
        const answer = answers[nth];
        const isFalse = typeof answer === 'string' && /^0x0{64}$/.test(answer);
        if (isFalse || (answer instanceof RpcRefusal && (answer.code === REVERTED || /revert/i.test(answer.message))))
          failing.add(txid);
      }
    }
    return touched.map((facts) => (failing.has(facts.txid) ? { ...facts, outputs: [] } : facts));
  }

  /** Announcements that do not come, once for all currencies of the chain. */
  const unheard = (): string[] => (contract === null ? heads.flatMap((one) => one.trouble() ?? []) : []);

  async function listed(): Promise<readonly string[]> {
    waiting = new Map((await source.pending()).map((one) => [one.hash, one]));
    return [...waiting.keys()];
  }

  async function finalized(): Promise<BlockRef | null> {
    const said = await source.finalized();
    if (said === null || said.height <= tipHeight - FINAL_AT_LEAST_BEHIND) return said;
    // another process may watch this chain: then the tip that was reported here is old
    tipHeight = (await source.header('latest'))?.height ?? tipHeight;
    const most = tipHeight - FINAL_AT_LEAST_BEHIND;
    if (said.height <= most) return said;
    return most < 0 ? null : source.header(quantity(most));
  }

  async function judged(asked: AskedToo): Promise<NodeCondition> {
    // listed first, so that the list is not younger than the tip
    const mempool = asked.mempool ? await listed() : null;
    const { answers, tip } = await source.tipWith([
      { method: 'eth_chainId' },
      { method: 'eth_syncing' },
      { method: 'net_peerCount' },
    ]);
    const [said, syncing, peers] = answers;
    if (said instanceof RpcRefusal) throw said;
    const id = asNumber(said, 'eth_chainId', Number.MAX_SAFE_INTEGER);
    const trouble = (
      state: 'wrong_network' | 'syncing' | 'stuck',
      reason: string,
      height: number | null = null,
    ): NodeCondition => ({
      state,
      reason: `${rpc.name}: ${reason}`,
      height,
    });
    if (id !== chainId) return trouble('wrong_network', `its chain id is ${id}, that of ${network} is ${chainId}`);
    if (tip === null) throw new NodeTrouble('bad_answer', `${rpc.name}: it has no latest block`);
    const { height, hash, previousHash, timeMs } = tip;
    if (!own && syncing !== false && !(syncing instanceof RpcRefusal)) return trouble('syncing', `at block ${height}`, height);
    const ageMs = clock.now() - timeMs;
    if (!own && ageMs > Math.max(LEAST_STUCK_MS, stuckAfterMs(evm.blockSeconds)))
      return trouble('stuck', `the tip is ${Math.round(ageMs / 60_000)} min old`, height);
    const problem = await tokenProblem();
    if (problem !== null) return trouble('wrong_network', problem, height);
    tipHeight = height;
    const lacks = [...source.lacks().map((what) => `${rpc.name}: ${what}`), ...unheard()];
    return {
      state: 'ready',
      height,
      hash,
      previousHash,
      tipTimeMs: timeMs,
      peers: typeof peers === 'string' ? asNumber(peers, 'net_peerCount') : 0,
      ...(lacks.length === 0 ? {} : { others: lacks }),
      ...(mempool === null ? {} : { mempool }),
    };
  }

  return {
    currency,
    name: rpc.name,
    async condition(asked = { mempool: false }) {
      try {
        return await judged(asked);
      } catch (error) {
        isTokenKnown = contract === null;
        if (error instanceof NodeTrouble) return { state: error.state, reason: error.message, height: null };
        if (error instanceof RpcRefusal || error instanceof Malformed)
          return { state: 'bad_answer', reason: `${rpc.name}: ${error.message}`, height: null };
        throw error;
      }
    },
    async hashAt(height) {
      return (await source.header(quantity(height)))?.hash ?? null;
    },
    isTip: async ({ hash }) => (await source.header('latest'))?.hash === hash,
    readBlock: facts,
    mempool: listed,
    async readMempoolTransactions(txids, watch) {
      await watch.fresh();
      const listed = txids.flatMap((txid) => waiting.get(txid) ?? []);
      const missing = txids.filter((txid) => !waiting.has(txid));
      const touched = waitingIn(listed, watch, contract);
      const asked = contract === null ? touched : await withoutFailing(touched);
      // a list that cannot name what it watches only collects what it is asked about
      if (watch.scripts === undefined) return { missing, unread: [], touched: asked };
      const known = new Set(touched.map(({ txid }) => txid));
      const others = listed.filter(({ hash }) => !known.has(hash));
      return { missing, unread: [], touched: [...asked, ...(await source.trials.paying(others, watch, contract))] };
    },
    readRaw: () => null,
    mempoolEntries: async () => new Map<string, MempoolEntry>(),
    locks: async () => new Map(),
    doubleSpendProofs: null,
    blocksPaying: (scripts, fromHeight, toHeight) =>
      contract === null ? Promise.resolve(null) : blocksWithTransfers(source, { contract, scripts, fromHeight, toHeight }),
    async subscribe({ onHint }) {
      const ends = heads.map((one) => one.listen(onHint));
      // never live: waiting payments are not announced, and whether blocks are is nothing to rely on
      if (ends.length === 0) return null;
      const close = async (): Promise<void> => {
        for (const end of ends) end();
      };
      return { isLive: () => false, close };
    },
    finalized,
    async proveBlock(hash) {
      const { previousHash } = await facts(hash, { ...NOTHING, fresh: async () => undefined });
      return previousHash;
    },
    targetAt: async () => null,
    forget: (hash) => source.forget(hash),
    ...createEvmSending(source, contract, { finalized }),
    close: () => source.close(),
  };
}
