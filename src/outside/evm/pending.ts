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

export function createPendingReader(asked: Asked): PendingReader {
  let hasPool = true;
  let hasPendingBlock = true;

  async function pool(): Promise<readonly EvmTransaction[] | null> {
    const size = await asked('txpool_status', [], (answer) => asNumber(asFields(answer, 'the pool').pending, 'pending'));
    if (size > SMALL_POOL) return null;
    // what is queued behind a gap in its sender's nonces cannot be mined as it is
    return asked('txpool_content', [], (answer) =>
      Object.values(asFields(asFields(answer, 'the pool').pending, 'pending')).flatMap((ofSender) =>
        Object.values(asFields(ofSender, 'a sender')).map(readTransaction),
      ),
    );
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
