// Ether that code moves inside the transactions of a block, from what a node shows of their calls. Strangers choose how much that is: a
// transaction of some cents can make a node show gigabytes of it, or be silent for minutes. What cannot be had never stops the chain: it is
// told, and what those transactions themselves pay counts all the same.
import { isTooLarge } from '../utxo/node/rpc-body.ts';
import { NodeTrouble, RpcRefusal } from '../utxo/node/trouble.ts';
import {
  type Asked,
  type EvmBlock,
  type EvmTransaction,
  type InternalTransfer,
  readCallTraces,
  readFlatTraces,
} from './answers.ts';
import { createPatience } from './patience.ts';

type Transfers = readonly InternalTransfer[];
/** For each transaction of a block the ether moved inside it; null, in the whole or for one of them, where the node does not show it. */
export type Shown = readonly (Transfers | null)[] | null;

/** How a node shows ether that contracts move; `none`: it does not. */
type Tracing = 'callTracer' | 'trace_block' | 'none';

export type TraceReader = {
  /** @throws NodeTrouble */
  read(block: EvmBlock): Promise<Shown>;
  /** The node shows none at all. */
  hasNone(): boolean;
  /** What of a block was not shown could not be found in another way either. */
  missed(block: EvmBlock, shown: Shown): void;
  /** What the node does not show, and what follows from it. */
  lacks(): readonly string[];
};

/** Several times what a full block shows; what is parsed at once holds up the other work of this process. */
const MOST_BYTES = 32 * 1024 * 1024;
/** Of one transaction by itself: a thousand payees fit, and a block full of those that do not is still read. */
const MOST_OF_ONE_BYTES = 1024 * 1024;
/** After this many transactions of a block that it is silent about, it is not asked for the rest. */
const MOST_SILENT = 3;
/** A node without traces is asked again after this: it may have been another behind the same address. */
const ASKED_AGAIN_MS = 600_000;
/** What these say is of the node as a whole. */
const OF_THE_NODE = new Set(['busy', 'unauthorized', 'warming_up']);
const CALLS = { tracer: 'callTracer' };

/**
 * @param options.isUnknown whether a refusal says that the node does not have the method
 * @param options.trouble a refusal as the node's trouble
 * @param options.steadyMs milliseconds of a clock that is never set (default: the process's)
 */
export function createTraceReader(
  asked: Asked,
  options: {
    readonly isUnknown: (refusal: RpcRefusal) => boolean;
    readonly trouble: (refusal: RpcRefusal) => NodeTrouble;
    readonly steadyMs?: () => number;
  },
): TraceReader {
  const { isUnknown, trouble, steadyMs = () => performance.now() } = options;
  let tracing: Tracing | null = null;
  let noneSinceMs = 0;
  const patience = createPatience(steadyMs);
  let unseen: { count: number; last: string } | null = null;
  /** Why it did not show the last transaction that it did not show. */
  let why = 'no traces';

  function wholeBlock(how: Exclude<Tracing, 'none'>, block: EvmBlock): Promise<readonly Transfers[]> {
    return how === 'callTracer'
      ? asked('debug_traceBlockByHash', [block.hash, CALLS], (answer) => readCallTraces(answer, block), MOST_BYTES)
      : asked('trace_block', [`0x${block.height.toString(16)}`], (answer) => readFlatTraces(answer, block), MOST_BYTES);
  }

  async function oneTransaction(how: Exclude<Tracing, 'none'>, block: EvmBlock, one: EvmTransaction): Promise<Transfers> {
    const alone = { ...block, transactions: [one] };
    const [found = []] = await (how === 'callTracer'
      ? asked('debug_traceTransaction', [one.hash, CALLS], (result) => readCallTraces([{ result }], alone), MOST_OF_ONE_BYTES)
      : asked('trace_transaction', [one.hash], (answer) => readFlatTraces(answer, alone), MOST_OF_ONE_BYTES));
    return found;
  }

  /** Each transaction by itself: one of them is too much, or the node cannot show the block. */
  async function oneByOne(how: Exclude<Tracing, 'none'>, block: EvmBlock, first: Error): Promise<Shown> {
    const isGiven = isTooLarge(first) ? null : patience.isOver(block);
    if (isGiven === false) throw asTrouble(first);
    const found: (Transfers | null)[] = [];
    let silent = 0;
    for (const one of block.transactions) {
      try {
        if (silent >= MOST_SILENT) throw first;
        found.push(await oneTransaction(how, block, one));
      } catch (error) {
        if (isOfTheNode(error) || !isFailure(error)) throw error;
        if (!isTooLarge(error) && isGiven === null && !patience.isOver(block)) throw asTrouble(error);
        if (error instanceof NodeTrouble && error.state === 'down') silent++;
        why = first.message;
        found.push(null);
      }
    }
    return found;
  }

  /** It is asked again, and done without when nothing can be traced for long. */
  const asTrouble = (error: Error): NodeTrouble => {
    const { state, message } = error instanceof RpcRefusal ? trouble(error) : (error as NodeTrouble);
    return new NodeTrouble(state, message, { cause: error, isPassing: true });
  };

  async function read(block: EvmBlock): Promise<Shown> {
    if (block.transactions.length === 0) return [];
    if (tracing === 'none' && steadyMs() - noneSinceMs < ASKED_AGAIN_MS) return null;
    const known = tracing === 'none' ? null : tracing;
    for (const how of known === null ? (['callTracer', 'trace_block'] as const) : [known]) {
      try {
        const found = await wholeBlock(how, block);
        tracing = how;
        patience.answered(block);
        return found;
      } catch (error) {
        if (isOfTheNode(error) || !isFailure(error)) throw error;
        if (!(error instanceof RpcRefusal) || !isUnknown(error)) return oneByOne(how, block, error);
        // it has had the method: another node may have answered once, behind the same address
        if (known !== null && !patience.isOver(block)) throw asTrouble(error);
      }
    }
    tracing = 'none';
    noneSinceMs = steadyMs();
    patience.clear();
    return null;
  }

  return {
    read,
    hasNone: () => tracing === 'none',
    missed({ transactions, height }, shown) {
      const hidden = transactions.filter((_, at) => shown === null || shown[at] === null);
      const [first] = hidden;
      if (first === undefined) return;
      unseen = { count: (unseen?.count ?? 0) + hidden.length, last: `${first.hash} in block ${height} (${why})` };
    },
    lacks: () => [
      ...(unseen === null
        ? []
        : [
            `ether that contracts sent inside ${unseen.count} ${unseen.count === 1 ? 'transaction' : 'transactions'} was not seen, the last one ${unseen.last}: read the block again with a node that shows it (chain rescan)`,
          ]),
    ],
  };
}

type Failure = NodeTrouble | RpcRefusal;
const isFailure = (error: unknown): error is Failure => error instanceof NodeTrouble || error instanceof RpcRefusal;
const isOfTheNode = (error: unknown): boolean => error instanceof NodeTrouble && OF_THE_NODE.has(error.state);
