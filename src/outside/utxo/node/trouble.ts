// Why a node cannot be read right now, in classes that show an operator what to do. The watchers see only an Error with a `state` of
// NodeCondition.
import type { NodeTroubleState } from '../../../core/ports.ts';

export type TroubleState = NodeTroubleState;

const MOST_TEXT = 1_000;

/** What a node says, as part of a message that is stored and logged: one line, printable, of bounded length. */
export function plainText(said: unknown, most = MOST_TEXT): string {
  if (typeof said !== 'string') return said === null || typeof said !== 'object' ? String(said) : 'an object';
  const line = said.slice(0, most).replace(/[\p{C}\s]+/gu, ' ');
  return said.length > most ? `${line}…` : line;
}

/** The node as a whole cannot be used: `state` is its condition, the message names the node (without its password) and the reason. */
export class NodeTrouble extends Error {
  readonly state: TroubleState;
  /** What the node does not say is done without soon, if it goes on: nobody has to do anything. */
  readonly isPassing: boolean;
  constructor(state: TroubleState, message: string, options: ErrorOptions & { readonly isPassing?: boolean } = {}) {
    super(plainText(message), options);
    this.name = 'NodeTrouble';
    this.state = state;
    this.isPassing = options.isPassing === true;
  }
}

/** The node works but refuses this one call: its JSON-RPC error code and text. */
export class RpcRefusal extends Error {
  readonly code: number;
  readonly method: string;
  constructor(method: string, code: number, message: string) {
    super(`${method}: ${plainText(message, 300)} (${code})`);
    this.name = 'RpcRefusal';
    this.code = code;
    this.method = method;
  }
}

/** Whether this is a node's refusal of getblockhash for a height above its tip: -8 of Bitcoin Core and its descendants, -1 of bchd. */
export const isBeyondTip = ({ code, message }: RpcRefusal): boolean =>
  code === -8 || (code === -1 && message.includes('out of range'));
