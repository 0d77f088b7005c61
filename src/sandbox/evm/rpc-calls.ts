// Calls of the simulated Ethereum node that change nothing (eth_call, eth_simulateV1), at the blocks that its methods name.
import { accountsAfter, accountsOf, type EvmBlock, type EvmState } from './chain-state.ts';
import { type Accounts, callOnly, execute, type Frame, type Log, transferLog } from './contracts.ts';

export type Json = unknown;

/** An error answer of JSON-RPC 2.0, with geth's codes. */
export class EvmRpcError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export const INVALID_PARAMS = -32602;
export const SERVER_ERROR = -32000;
const REVERTED = 3;
/** Blocks behind the tip that `finalized` names: behaviour §6. */
const FINALIZED_BEHIND = 64;
const SAFE_BEHIND = 32;
/** Names ether among the events of a trial (ERC-7528). */
const ETHER_ITSELF = '0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee';

/** A number as Ethereum's JSON-RPC writes it. */
export const hex = (value: number | bigint): string => `0x${value.toString(16)}`;

/** The block of the active chain at a height or tag; null where there is none. @throws EvmRpcError for anything else */
export function blockAt({ active }: EvmState, tag: string): EvmBlock | null {
  const last = active.length - 1;
  if (tag === 'latest' || tag === 'pending') return active[last] ?? null;
  if (tag === 'earliest') return active[0] ?? null;
  if (tag === 'finalized') return active[last - FINALIZED_BEHIND] ?? null;
  if (tag === 'safe') return active[last - SAFE_BEHIND] ?? null;
  if (!/^0x[0-9a-f]{1,8}$/.test(tag)) throw new EvmRpcError(INVALID_PARAMS, `invalid argument 0: block ${tag}`);
  return active[Number(tag)] ?? null;
}

/** What accounts hold after a block. @throws EvmRpcError */
export function accountsAt(state: EvmState, given: unknown): Pick<Accounts, 'get'> {
  const tag = typeof given === 'string' ? given.toLowerCase() : 'latest';
  if (tag === 'latest' || tag === 'pending') return accountsOf(state);
  const block = blockAt(state, tag);
  if (block === null) throw new EvmRpcError(SERVER_ERROR, 'header not found');
  return accountsAfter(state, block.number);
}

/** What eth_call answers. @throws EvmRpcError for a call that reverts */
export function called(state: EvmState, params: readonly unknown[]): Json {
  const at = accountsAt(state, params[1]);
  const result = callOnly({ get: at.get, set: () => undefined }, asCall(params[0]));
  if (result === null) throw new EvmRpcError(REVERTED, 'execution reverted');
  return result;
}

function asCall(asked: unknown): { readonly from: string; readonly to: string; readonly value: bigint; readonly input: string } {
  const { from = `0x${'0'.repeat(40)}`, to = '', value = '0x0', data, input } = (asked ?? {}) as Record<string, string>;
  return {
    from: from.toLowerCase(),
    to: to.toLowerCase(),
    value: BigInt(value),
    input: (input ?? data ?? '0x').toLowerCase(),
  };
}

/** What eth_simulateV1 answers to one call by itself: its events, and what ether it would move as events of ether itself. */
export function simulated(state: EvmState, params: readonly unknown[]): Json {
  const { blockStateCalls = [] } = (params[0] ?? {}) as {
    readonly blockStateCalls?: readonly { readonly calls?: readonly unknown[] }[];
  };
  const at = accountsAt(state, params[1]);
  return blockStateCalls.map(({ calls = [] }) => ({
    number: hex(state.active.length),
    calls: calls.map((asked) => {
      const scratch = new Map<string, bigint>();
      const accounts: Accounts = {
        get: (key) => scratch.get(key) ?? at.get(key),
        set: (key, value) => void scratch.set(key, value),
      };
      const { succeeded, logs, frame } = execute(accounts, asCall(asked));
      return { status: succeeded ? '0x1' : '0x0', logs: succeeded ? [...movedIn(frame), ...logs] : [] };
    }),
  }));
}

/** The ether that a frame and those below it have moved. */
function movedIn({ error, from, to, value, calls = [] }: Frame): readonly Log[] {
  if (error !== undefined) return [];
  const own = value > 0n ? [transferLog(ETHER_ITSELF, from, { to, minor: value })] : [];
  return [...own, ...calls.flatMap(movedIn)];
}
