// One Ethereum node as the adapters of ether and its tokens share it: each block, its receipts and traces are asked for once. Which methods
// the node has is found out by asking.
import type { BlockRef } from '../../core/block-ref.ts';
import { FINALIZED_BEHIND } from '../../core/currencies/evm.ts';
import { Malformed } from '../utxo/bytes.ts';
import { createRpc, orRefusal, type Rpc, type RpcCall } from '../utxo/node/rpc.ts';
import { isTooLarge } from '../utxo/node/rpc-body.ts';
import { NodeTrouble, RpcRefusal } from '../utxo/node/trouble.ts';
import {
  asHash,
  type EvmBlock,
  type EvmHeader,
  type EvmReceipt,
  type EvmTransaction,
  readBlock,
  readHeader,
  readReceipts,
} from './answers.ts';
import { type Balances, createBalanceReader } from './balances.ts';
import { createPendingReader } from './pending.ts';
import { createTraceReader, type Shown } from './traces.ts';
import { type CallTrials, createCallTrials } from './waiting-calls.ts';

export type EvmSource = {
  readonly rpc: Rpc;
  /** The header at a height or tag; null where the node has none. */
  header(at: string): Promise<EvmHeader | null>;
  /** The answers to a few calls, each a refusal where it was refused, and the header of the tip, in one request. */
  tipWith(calls: readonly RpcCall[]): Promise<{ readonly answers: readonly unknown[]; readonly tip: EvmHeader | null }>;
  /** A block of any chain by its hash, with its transactions. */
  block(hash: string): Promise<EvmBlock>;
  receipts(block: EvmBlock): Promise<readonly EvmReceipt[]>;
  /** What it said of a block turned out to be wrong: it is asked again. */
  forget(hash: string): void;
  /** The ether that is moved inside the transactions of a block. */
  transfers(block: EvmBlock): Promise<Shown>;
  /** What a block has changed in what addresses hold, of so many in all, in wei; null where the node cannot say. */
  gains(block: EvmBlock, addresses: readonly string[], total: number): Promise<Balances | null>;
  /** What addresses hold after a block, in wei; null where the node cannot say. */
  held(block: BlockRef, addresses: readonly string[]): Promise<Balances | null>;
  /** What it did not show of a block could not be found in another way either. */
  missed(block: EvmBlock, shown: Shown): void;
  /** The highest block that can no longer be replaced; where the node does not know the tag, the one two epochs behind the tip. */
  finalized(): Promise<BlockRef | null>;
  /** What waits to be mined, as far as the node shows it. */
  pending(): Promise<readonly EvmTransaction[]>;
  /** What of that would pay addresses of ours by calls of contracts. */
  readonly trials: CallTrials;
  /** What is unlike a full node's answers, and what follows from it. */
  lacks(): readonly string[];
  close(): Promise<void>;
};

const SILENCE_MS = 15_000;
const CONNECTIONS = 6;
/** Blocks whose answers are kept, for the other currencies of the chain. */
const KEPT_BLOCKS = 6;
/**
 * Many times what a block shows. A stranger can fill one with empty events: 380 gas make 360 bytes, so 160 MB at 170 million gas, which would be
 * too much for one answer. It is read in parts.
 */
const MOST_RECEIPT_BYTES = 32 * 1024 * 1024;
/** JSON-RPC: the method is not there; EIP-1474: it is not supported. */
const NO_METHOD = new Set([-32601, -32004]);
const NO_METHOD_TEXT =
  /(?:method|namespace|module|plan|tier)\b.*not (?:found|available|supported|exist|enabled|whitelisted)|unsupported method|unknown method|upgrade/i;
/** The method is there, and what it needs of this block is not. */
const NO_STATE_TEXT = /\b(?:state|trie|header|historical|history)\b/i;
const NO_TRACES = 'it shows no traces (debug_traceBlockByHash, trace_block): ether that contracts send is';
const BY_BALANCE = `${NO_TRACES} found by what our addresses hold after each block`;
const NOT_SEEN = `${NO_TRACES} not seen`;
/** What a parameter is refused with that is no number of a block: a hash. */
const INVALID_PARAMS = -32602;
const NO_HASH_TEXT = /hex number|hex string|unmarshal|invalid (?:argument|param|block)/i;
/** EIP-1474's code, and what providers say instead. */
const LIMIT_CODE = -32005;
const LIMIT_TEXT = /rate.?limit|too many requests|throttl|compute units|capacity|quota|daily request/i;
/** Errors of a node that has not finalized anything yet, and of one that does not know the tag; any other failure says neither. */
const NOT_YET = /not found|not finalized|unknown block/i;
const NO_TAG = new Set([-32601, -32602]);
const NO_TAG_TEXT = /\btags?\b|not supported|unsupported|invalid (?:argument|param)|hex string|unmarshal/i;

/**
 * A node of Ethereum's chain behind one URL (execution API, JSON-RPC 2.0). What it answers is checked before it is believed; a limit of the
 * node or a method that it lacks is NodeTrouble.
 * @param options `silenceMs`: how long it may be silent within an answer
 */
export function createEvmSource(options: { readonly url: string; readonly silenceMs?: number }): EvmSource {
  const silenceMs = options.silenceMs ?? SILENCE_MS;
  const rpc = createRpc({ url: options.url, silenceMs, connections: CONNECTIONS, jsonRpc: '2.0' });
  const pending = createPendingReader(asked);
  const traces = createTraceReader(asked, { isUnknown, trouble: (refusal) => trouble(rpc, refusal) });
  let hasBlockReceipts = true;
  /** Why it did not say which block is final. */
  let unsaid: string | null = null;
  const blocks = createKept<EvmBlock>();
  const receiptsOf = createKept<readonly EvmReceipt[]>();
  const transfersOf = createKept<Shown>();
  const balances = createBalanceReader(rpc, isLimit);
  const trials = createCallTrials(rpc, isUnknown);

  /** What a call answers, read; a refusal that is a limit of the node is its trouble. @throws NodeTrouble, RpcRefusal */
  async function asked<T>(
    method: string,
    params: readonly unknown[],
    read: (answer: unknown) => T,
    mostBytes?: number,
  ): Promise<T> {
    const answer = await orRefusal(rpc.call(method, params, mostBytes));
    if (answer instanceof RpcRefusal) throw isLimit(answer) ? new NodeTrouble('busy', `${rpc.name}: ${answer.message}`) : answer;
    return readAs(rpc, method, () => read(answer));
  }

  async function receiptsOneByOne(block: EvmBlock): Promise<readonly unknown[]> {
    const found: unknown[] = [];
    const calls = block.transactions.map(({ hash }) => [hash]);
    for await (const { answers } of rpc.inParts('eth_getTransactionReceipt', calls)) {
      for (const answer of answers) {
        if (answer instanceof RpcRefusal) throw trouble(rpc, answer);
        found.push(answer);
      }
    }
    return found;
  }

  const receiptsAt = (at: string, block: EvmBlock): Promise<readonly EvmReceipt[]> =>
    asked('eth_getBlockReceipts', [at], (answer) => readReceipts(answer, block), MOST_RECEIPT_BYTES);

  /** Some know the receipts of a block by its number only: each receipt names the block that it is of. */
  async function receiptsTogether(block: EvmBlock): Promise<readonly EvmReceipt[]> {
    try {
      return await receiptsAt(block.hash, block);
    } catch (error) {
      if (!(error instanceof RpcRefusal) || !takesNoHash(error)) throw error;
      return receiptsAt(quantity(block.height), block);
    }
  }

  async function readBlockReceipts(block: EvmBlock): Promise<readonly EvmReceipt[]> {
    if (block.transactions.length === 0) return [];
    if (hasBlockReceipts) {
      try {
        return await receiptsTogether(block);
      } catch (error) {
        if (error instanceof RpcRefusal && !isUnknown(error) && !takesNoHash(error)) throw trouble(rpc, error);
        if (!(error instanceof RpcRefusal) && !isTooLarge(error)) throw error;
        hasBlockReceipts = !(error instanceof RpcRefusal && isUnknown(error));
      }
    }
    const answers = await receiptsOneByOne(block);
    return readAs(rpc, 'eth_getTransactionReceipt', () => readReceipts(answers, block));
  }

  const headerIn = (answer: unknown): EvmHeader | null => (answer === null ? null : readHeader(answer));

  async function header(at: string): Promise<EvmHeader | null> {
    return asked('eth_getBlockByNumber', [at, false], headerIn);
  }

  async function tipWith(calls: readonly RpcCall[]): ReturnType<EvmSource['tipWith']> {
    const answers = await rpc.batch([...calls, { method: 'eth_getBlockByNumber', params: ['latest', false] }]);
    const last = answers.at(-1);
    if (last instanceof RpcRefusal) throw trouble(rpc, last);
    return { answers: answers.slice(0, -1), tip: readAs(rpc, 'eth_getBlockByNumber', () => headerIn(last)) };
  }

  async function finalized(): Promise<BlockRef | null> {
    try {
      const final = await header('finalized');
      unsaid = null;
      return final;
    } catch (error) {
      if (!(error instanceof RpcRefusal)) throw error;
      unsaid = null;
      if (NOT_YET.test(error.message)) return null;
      if (!NO_TAG.has(error.code) && !NO_TAG_TEXT.test(error.message)) {
        unsaid = error.message;
        return null;
      }
    }
    const tip = await header('latest');
    const height = (tip?.height ?? 0) - FINALIZED_BEHIND;
    return height < 0 ? null : header(quantity(height));
  }

  return {
    rpc,
    header: (at) => refused(rpc, header(at)),
    tipWith,
    block: (hash) =>
      blocks.get(hash, () =>
        refused(
          rpc,
          asked('eth_getBlockByHash', [hash, true], (answer) => {
            if (answer === null) throw new NodeTrouble('busy', `${rpc.name}: it does not have block ${hash} (any more)`);
            const block = readBlock(answer);
            if (block.hash !== asHash(hash, 'the hash')) throw new Malformed('another block was answered');
            return block;
          }),
        ),
      ),
    receipts: (block) => receiptsOf.get(block.hash, () => refused(rpc, readBlockReceipts(block))),
    transfers: (block) => transfersOf.get(block.hash, () => traces.read(block)),
    gains: balances.gains,
    held: balances.held,
    missed(block, shown) {
      // of a node that never says, saying it once is enough
      if (shown !== null || balances.answers()) traces.missed(block, shown);
    },
    forget(hash) {
      balances.forget();
      for (const kept of [blocks, receiptsOf, transfersOf]) kept.forget(hash);
    },
    finalized: () => refused(rpc, finalized()),
    pending: () => refused(rpc, pending.read()),
    trials,
    lacks: () => [
      ...(traces.hasNone() ? [balances.answers() ? BY_BALANCE : NOT_SEEN] : []),
      ...balances.lacks(),
      ...traces.lacks(),
      ...(unsaid === null ? [] : [`it does not say which block is final (${unsaid}): large payments wait`]),
      ...(pending.isBlind() ? ['it does not show what waits to be mined: a payment is seen once it is in a block'] : []),
    ],
    close: () => rpc.close(),
  };
}

/** A number as Ethereum's JSON-RPC wants it: `0x` and hexadecimal, without leading zeros. */
export function quantity(number: number): string {
  return `0x${number.toString(16)}`;
}

/** A refusal of what every node can answer is the node's trouble. */
async function refused<T>(rpc: Rpc, call: Promise<T>): Promise<T> {
  try {
    return await call;
  } catch (error) {
    throw error instanceof RpcRefusal ? trouble(rpc, error) : error;
  }
}

function trouble(rpc: Rpc, refusal: RpcRefusal): NodeTrouble {
  return new NodeTrouble(isLimit(refusal) ? 'busy' : 'bad_answer', `${rpc.name}: ${refusal.message}`, { cause: refusal });
}

/**
 * Whether a refusal says that the node gives no more now, or not so much at once: EIP-1474's -32005, 429, or what providers write instead.
 */
export const isLimit = ({ code, message }: RpcRefusal): boolean =>
  code === LIMIT_CODE || code === 429 || LIMIT_TEXT.test(message);
const takesNoHash = ({ code, message }: RpcRefusal): boolean => code === INVALID_PARAMS || NO_HASH_TEXT.test(message);
const isUnknown = ({ code, message }: RpcRefusal): boolean =>
  NO_METHOD.has(code) || (NO_METHOD_TEXT.test(message) && !NO_STATE_TEXT.test(message));

/** What is wrong with the text of an answer is the node's trouble. */
export function readAs<T>(rpc: Rpc, method: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Malformed)) throw error;
    throw new NodeTrouble('bad_answer', `${rpc.name}: ${method}: ${error.message}`, { cause: error });
  }
}

/** Remembers the last few answers, also while they are on their way; a failed one is asked for again. */
function createKept<T>() {
  const kept = new Map<string, Promise<T>>();
  return {
    get(hash: string, read: () => Promise<T>): Promise<T> {
      const known = kept.get(hash);
      if (known !== undefined) return known;
      const reading = read();
      kept.set(hash, reading);
      reading.catch(() => kept.delete(hash));
      const [oldest] = kept.keys();
      if (kept.size > KEPT_BLOCKS && oldest !== undefined) kept.delete(oldest);
      return reading;
    },
    forget: (hash: string): void => void kept.delete(hash),
  };
}
