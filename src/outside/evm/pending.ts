// What waits to be mined: the whole pool where that is small, otherwise the block that the node would make now. A provider that shows
// neither leaves payments unseen until they are in a block.
import { RpcRefusal } from '../utxo/node/trouble.ts';
import { asFields, asList, asNumber, type EvmTransaction, readTransaction } from './answers.ts';

type Asked = <T>(method: string, params: readonly unknown[], read: (answer: unknown) => T) => Promise<T>;

export type PendingReader = {
  read(): Promise<readonly EvmTransaction[]>;
  /** The node has refused every way. */
  isBlind(): boolean;
};

/** A pool of the main chain has many thousands, in an answer of as many kilobytes. */
const SMALL_POOL = 2_000;
/** One that was this small a moment ago is read without asking how large it is now. */
const SURELY_SMALL_POOL = 200;

export function createPendingReader(asked: Asked): PendingReader {
  let hasPool = true;
  let hasPendingBlock = true;
  /** How many waited when the pool was read last; a pool whose size is not known is asked for its size first. */
  let lastSize = Number.POSITIVE_INFINITY;

  async function pool(): Promise<readonly EvmTransaction[] | null> {
    if (lastSize > SURELY_SMALL_POOL) {
      const size = await asked('txpool_status', [], (answer) => asNumber(asFields(answer, 'the pool').pending, 'pending'));
      if (size > SMALL_POOL) return null;
    }
    lastSize = Number.POSITIVE_INFINITY;
    // what is queued behind a gap in its sender's nonces cannot be mined as it is
    const all = await asked('txpool_content', [], (answer) =>
      Object.values(asFields(asFields(answer, 'the pool').pending, 'pending')).flatMap((ofSender) =>
        Object.values(asFields(ofSender, 'a sender')).map(readTransaction),
      ),
    );
    lastSize = all.length;
    return all;
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
