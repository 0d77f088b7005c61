// What waits to be mined: the whole pool where that is small, otherwise the block that the node would make now. A provider that shows
// neither leaves payments unseen until they are in a block.
import { isTooLarge } from '../utxo/node/rpc-body.ts';
import { RpcRefusal } from '../utxo/node/trouble.ts';
import { type Asked, asFields, asList, asNumber, type EvmTransaction, readTransaction } from './answers.ts';

export type PendingReader = {
  read(): Promise<readonly EvmTransaction[]>;
  /** The node has refused every way. */
  isBlind(): boolean;
};

/** A pool of the main chain has many thousands, in an answer of as many kilobytes. */
const SMALL_POOL = 2_000;
/** One that was this small a moment ago is read without asking how large it is now. */
const SURELY_SMALL_POOL = 200;

/** Its transactions may have 128 KB each, and cost nothing while they wait: more than this is not read, nor asked for again so soon. */
const MOST_POOL_BYTES = 16 * 1024 * 1024;
const HEAVY_POOL_MS = 60_000;

/** @param steadyMs milliseconds of a clock that is never set */
export function createPendingReader(asked: Asked, steadyMs: () => number = () => performance.now()): PendingReader {
  let hasPool = true;
  let hasPendingBlock = true;
  /** How many waited when the pool was read last; a pool whose size is not known is asked for its size first. */
  let lastSize = Number.POSITIVE_INFINITY;

  let isHeavyUntilMs = Number.NEGATIVE_INFINITY;

  async function pool(): Promise<readonly EvmTransaction[] | null> {
    if (steadyMs() < isHeavyUntilMs) return null;
    if (lastSize > SURELY_SMALL_POOL) {
      const size = await asked('txpool_status', [], (answer) => asNumber(asFields(answer, 'the pool').pending, 'pending'));
      if (size > SMALL_POOL) return null;
    }
    lastSize = Number.POSITIVE_INFINITY;
    // what is queued behind a gap in its sender's nonces cannot be mined as it is
    const all = await wholePool();
    if (all === null) isHeavyUntilMs = steadyMs() + HEAVY_POOL_MS;
    else lastSize = all.length;
    return all;
  }

  /** Null where it is too much. */
  async function wholePool(): Promise<readonly EvmTransaction[] | null> {
    try {
      const read = (answer: unknown): readonly EvmTransaction[] =>
        Object.values(asFields(asFields(answer, 'the pool').pending, 'pending')).flatMap((ofSender) =>
          Object.values(asFields(ofSender, 'a sender')).map(readTransaction),
        );
      return await asked('txpool_content', [], read, MOST_POOL_BYTES);
    } catch (error) {
      if (isTooLarge(error)) return null;
      throw error;
    }
  }

  async function read(): Promise<readonly EvmTransaction[]> {
    if (hasPool) {
      try {
        const all = await pool();
        if (all !== null) return all;
      } catch (error) {
        if (!(error instanceof RpcRefusal)) throw error;
        hasPool = false;
      }
    }
    if (!hasPendingBlock) return [];
    try {
      return await asked('eth_getBlockByNumber', ['pending', true], (answer) =>
        answer === null ? [] : asList(asFields(answer, 'the pending block').transactions, 'transactions').map(readTransaction),
      );
    } catch (error) {
      if (!(error instanceof RpcRefusal)) throw error;
      hasPendingBlock = false;
      return [];
    }
  }

  return {
    read,
    isBlind: () => !hasPool && !hasPendingBlock,
  };
}
