// What calls of contracts that wait to be mined would pay: they are tried at the node (eth_simulateV1), which shows the events and the ether that
// would be moved. Only those whose call data names an address of ours, a few at a look and not for long: strangers choose how many there are and
// what they cost, and the block shows all of them anyway.
import { evmScript, WAITING_PLACE } from '../../core/currencies/evm.ts';
import type { OutputFacts, TransactionFacts, WatchList } from '../../core/ports.ts';
import { Malformed } from '../utxo/bytes.ts';
import { orRefusal, type Rpc } from '../utxo/node/rpc.ts';
import { NodeTrouble, RpcRefusal } from '../utxo/node/trouble.ts';
import { asFields, asList, type EvmTransaction } from './answers.ts';
import { factsOf, lookup, paidInLog } from './payments.ts';

/** Names a transfer of ether among the events that are shown (ERC-7528). */
const ETHER_ITSELF = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee';
const MOST_TRIED = 16;
const MOST_BYTES = 4 * 1024 * 1024;
const WITHIN_MS = 1_000;
/** After it was silent for so long, or asked to wait. */
const PAUSE_MS = 60_000;
/** A node that does not know how is asked again after this: it may have been another behind the same address. */
const ASKED_AGAIN_MS = 600_000;
const WORD = 64;
const ZEROS = '0'.repeat(24);
/** The place of the first word behind `0x` and the selector. */
const FIRST_WORD = 10;

export type CallTrials = {
  /**
   * What of these would pay addresses of a list, as far as the node says so at once. Never throws: what it does not say is seen in its block.
   * @param contract the token's, lower case; null = ether
   */
  paying(
    transactions: readonly EvmTransaction[],
    watch: Pick<WatchList, 'hasScript' | 'hasOutpoint'>,
    contract: string | null,
  ): Promise<readonly TransactionFacts[]>;
};

/**
 * @param isUnknown whether a refusal says that the node does not have the method
 * @param steadyMs milliseconds of a clock that is never set (default: the process's)
 */
export function createCallTrials(
  rpc: Pick<Rpc, 'batch'>,
  isUnknown: (refusal: RpcRefusal) => boolean,
  steadyMs: () => number = () => performance.now(),
): CallTrials {
  let againMs = Number.NEGATIVE_INFINITY;

  /** The answer to each; null where there is none now. */
  async function tried(transactions: readonly EvmTransaction[]): Promise<readonly unknown[]> {
    const calls = transactions.map(({ from, to, value, input }) => ({
      method: 'eth_simulateV1',
      params: [
        { blockStateCalls: [{ calls: [{ from, to, value: `0x${value.toString(16)}`, input }] }], traceTransfers: true },
        'latest',
      ],
    }));
    const asked = orRefusal(rpc.batch(calls, MOST_BYTES)).catch((error: unknown) => {
      if (error instanceof NodeTrouble) return null;
      throw error;
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => {
      timer = setTimeout(() => resolve(null), WITHIN_MS);
    });
    const said = await Promise.race([asked, late]).finally(() => clearTimeout(timer));
    if (said === null || said instanceof RpcRefusal) {
      againMs = steadyMs() + (said !== null && isUnknown(said) ? ASKED_AGAIN_MS : PAUSE_MS);
      return [];
    }
    const answers = said as readonly unknown[];
    if (answers.some((answer) => answer instanceof RpcRefusal && isUnknown(answer))) againMs = steadyMs() + ASKED_AGAIN_MS;
    return answers;
  }

  return {
    async paying(transactions, watch, contract) {
      if (steadyMs() < againMs) return [];
      const look = lookup(watch);
      const naming: EvmTransaction[] = [];
      for (const one of transactions) {
        if (naming.length === MOST_TRIED) break;
        if (one.to !== null && !look.isOurs(one.to) && namesOne(one.input, look.isOurs)) naming.push(one);
      }
      if (naming.length === 0) return [];
      const answers = await tried(naming);
      return naming.flatMap((one, nth) => {
        const outputs = outputsOf(answers[nth], look.isOurs, contract ?? ETHER_ITSELF);
        return outputs.length === 0 ? [] : [factsOf(one, { outputs, isSpent: look.isSpent(one) })];
      });
    },
  };
}

/** Whether a word of call data is an address of ours. */
function namesOne(input: string, isOurs: (address: string) => boolean): boolean {
  for (let at = FIRST_WORD; at + WORD <= input.length; at += WORD)
    if (input.startsWith(ZEROS, at) && isOurs(`0x${input.slice(at + ZEROS.length, at + WORD)}`)) return true;
  return false;
}

/** What a trial that succeeded has paid addresses of ours in a currency; nothing where the answer is not what it should be. */
function outputsOf(answer: unknown, isOurs: (address: string) => boolean, contract: string): readonly OutputFacts[] {
  if (answer === undefined || answer instanceof RpcRefusal) return [];
  try {
    const [block] = asList(answer, 'the blocks');
    const [call] = asList(asFields(block, 'a block').calls, 'calls');
    const { status, logs } = asFields(call, 'a call');
    if (status !== '0x1') return [];
    return asList(logs, 'logs')
      .flatMap((log) => paidInLog(log, contract) ?? [])
      .filter(({ to, amount }) => amount > 0n && isOurs(to))
      .map(({ to, amount }, nth) => ({ vout: WAITING_PLACE + nth, script: evmScript(to), amountMinor: amount }));
  } catch (error) {
    if (error instanceof Malformed) return [];
    throw error;
  }
}
