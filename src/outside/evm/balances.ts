// What addresses of ours hold after a block, hundreds of them in one call, of a node that does not show what contracts send: code that makes
// no contract (eth_call without a payee) reads their balances. It says itself in which block it ran: a provider that has answered from
// another one would show a payment twice, there and in its own block.
import type { BlockRef } from '../../core/block-ref.ts';
import { MOST_ADDRESSES } from '../../core/evm/port.ts';
import { orRefusal, type Rpc } from '../utxo/node/rpc.ts';
import { NodeTrouble, RpcRefusal } from '../utxo/node/trouble.ts';
import type { EvmBlock } from './answers.ts';
import { createPatience } from './patience.ts';

/**
 * Assembled by hand. Answers the number of the block in which it runs and the hash of the one before, then the balance of each of the
 * addresses that are appended to it, 20 bytes each; 32 bytes for each of these.
 */
const CODE =
  '43600052600143034060205260406035' + '5b38811015603057601481600c84013981513182526014019060200190601056' + '5b506000f3';
/** What a call answers is taken for a contract's code, which has at most 24,576 bytes (EIP-170). */
const ADDRESSES_AT_ONCE = 700;
/** Blocks whose balances are kept for the next ones: some are read ahead. */
const KEPT_BLOCKS = 4;
/** The node has not got the block yet (another one behind the same address has), or no longer the state after it. */
const NO_STATE = /\b(?:header|block|state|trie|histor)/i;
/** What these say is of the node as a whole. */
const OF_THE_NODE = new Set(['busy', 'unauthorized', 'warming_up']);
const WORD = 64;

export type Balances = ReadonlyMap<string, bigint>;

export type BalanceReader = {
  /**
   * What a block has brought to addresses (0x and 40 digits) or taken from them, in wei; null where the node cannot say.
   * @param total how many there are besides, where these are the newest only
   * @throws NodeTrouble
   */
  gains(block: EvmBlock, addresses: readonly string[], total: number): Promise<Balances | null>;
  /**
   * What addresses hold after a block, in wei; null where the node cannot say.
   * @throws NodeTrouble
   */
  held(block: BlockRef, addresses: readonly string[]): Promise<Balances | null>;
  /** Whether it has answered as it should when it was asked last. */
  answers(): boolean;
  /** What is not looked at, and what follows from it. */
  lacks(): readonly string[];
  /** What it has said is not believed any more. */
  forget(): void;
};

type Place = { readonly height: number; readonly hash: string; readonly previousHash: string | null };

/**
 * @param isLimit whether a refusal says that the node gives no more now
 * @param steadyMs milliseconds of a clock that is never set (default: the process's)
 */
export function createBalanceReader(
  rpc: Pick<Rpc, 'name' | 'batch'>,
  isLimit: (refusal: RpcRefusal) => boolean,
  steadyMs: () => number = () => performance.now(),
): BalanceReader {
  /** By block: what the next one is compared with. */
  const kept = new Map<string, Balances>();
  let answers = false;
  const patience = createPatience(steadyMs);
  /** How many addresses there were when they were too many last; 0 = they never were. */
  let tooMany = 0;

  /** What addresses hold after a block; null where the node cannot say. @throws NodeTrouble */
  async function balancesAt(place: Place, addresses: readonly string[]): Promise<Balances | null> {
    const parts: (readonly string[])[] = [];
    for (let at = 0; at < addresses.length; at += ADDRESSES_AT_ONCE) parts.push(addresses.slice(at, at + ADDRESSES_AT_ONCE));
    const calls = parts.map((part) => ({
      method: 'eth_call',
      params: [{ data: `0x${CODE}${part.map((address) => address.slice(2)).join('')}` }, { blockHash: place.hash }],
    }));
    const answered = await orRefusal(rpc.batch(calls));
    const said = answered instanceof RpcRefusal ? [answered] : (answered as readonly unknown[]);
    const balances = new Map<string, bigint>();
    for (const [nth, answer] of said.entries()) {
      if (answer instanceof RpcRefusal && isLimit(answer)) throw new NodeTrouble('busy', `${rpc.name}: ${answer.message}`);
      const part = parts[nth] as readonly string[];
      const words = wordsOf(answer, part.length + 2);
      if (words === null || !isOf(place, words)) return notSaid(place, answer);
      for (const [at, address] of part.entries()) balances.set(address, words[at + 2] as bigint);
    }
    return balances;
  }

  /** One that has said it before, or has only this block not, is asked again; one that does not know how cannot say it at all. */
  function notSaid({ height }: Place, answer: unknown): null {
    const why = answer instanceof RpcRefusal ? answer.message : 'not what was asked for, or of another block';
    if (!answers && !(answer instanceof RpcRefusal && NO_STATE.test(why))) return null;
    throw new NodeTrouble('bad_answer', `${rpc.name}: balances after block ${height}: ${why}`, { isPassing: true });
  }

  async function read(block: EvmBlock, addresses: readonly string[]): Promise<Balances | null> {
    const after = await balancesAt(block, addresses);
    if (after === null) return null;
    const known = kept.get(block.previousHash);
    const others = addresses.filter((address) => known?.has(address) !== true);
    const parent = { height: block.height - 1, hash: block.previousHash, previousHash: null };
    const before = others.length === 0 ? null : await balancesAt(parent, others);
    if (before === null && others.length > 0) return null;
    keep(block.hash, after);
    return new Map(
      addresses.map((address) => {
        const had = known?.get(address) ?? (before?.get(address) as bigint);
        return [address, (after.get(address) as bigint) - had];
      }),
    );
  }

  function keep(hash: string, after: Balances): void {
    kept.set(hash, new Map([...(kept.get(hash) ?? []), ...after]));
    const [oldest] = kept.keys();
    if (kept.size > KEPT_BLOCKS && oldest !== undefined) kept.delete(oldest);
  }

  return {
    async gains(block, addresses, total) {
      if (addresses.length === 0) return new Map();
      if (total > MOST_ADDRESSES) tooMany = total;
      try {
        const gained = await read(block, addresses);
        answers = gained !== null;
        if (answers) patience.answered(block);
        return gained;
      } catch (error) {
        if (!(error instanceof NodeTrouble) || OF_THE_NODE.has(error.state) || !patience.isOver(block)) throw error;
        answers = false;
        return null;
      }
    },
    held: ({ height, hash }, addresses) =>
      addresses.length === 0 ? Promise.resolve(new Map()) : balancesAt({ height, hash, previousHash: null }, addresses),
    answers: () => answers,
    lacks: () =>
      tooMany === 0
        ? []
        : [
            `ether that contracts send is looked for at the newest ${MOST_ADDRESSES} of ${tooMany} addresses only, since it shows no calls`,
          ],
    forget: () => kept.clear(),
  };
}

/** The words of an answer; null for anything else. */
function wordsOf(answer: unknown, count: number): readonly bigint[] | null {
  if (typeof answer !== 'string' || answer.length !== 2 + count * WORD || !/^0x[0-9a-f]*$/i.test(answer)) return null;
  return Array.from({ length: count }, (_, at) => BigInt(`0x${answer.slice(2 + at * WORD, 2 + (at + 1) * WORD)}`));
}

/** Whether it ran in this block, by its number and by the one before. */
function isOf({ height, previousHash }: Place, [number, before]: readonly bigint[]): boolean {
  return number === BigInt(height) && (previousHash === null || before === BigInt(previousHash));
}
