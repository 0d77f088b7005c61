// The result of a watcher's pass: the node's condition, how far the chain was read, and what an operator must know.
import type { ChainPort, NodeCondition } from '../../core/ports.ts';

export type PassResult = {
  /** `standby`: another worker watches this chain. */
  readonly role: 'watching' | 'standby';
  /** The node's condition; null on standby. */
  readonly state: NodeCondition['state'] | null;
  readonly reason: string | null;
  /** What an operator must know although a node can be read: nodes that contradict each other, nodes that could not take over. */
  readonly alarms: readonly string[];
  /** Height of the cursor after the pass. */
  readonly height: number | null;
  readonly blocksRead: number;
  /** All that the node knew at the pass's beginning has been recorded. */
  readonly caughtUp: boolean;
  /** There is more to read at once. */
  readonly more: boolean;
  /** The node has fewer blocks than were read from it (restored, or still syncing): what it does not show may exist all the same. */
  readonly behind: boolean;
};

export const STANDBY: PassResult = {
  role: 'standby',
  state: null,
  reason: null,
  alarms: [],
  height: null,
  blocksRead: 0,
  caughtUp: false,
  more: false,
  behind: false,
};

type Ready = Extract<NodeCondition, { state: 'ready' }>;

/** The condition of the node that is read, where its tip is the block that was read last. */
export async function atTip(port: ChainPort, cursor: { readonly height: number; readonly hash: string }): Promise<Ready | null> {
  const said = await port.condition();
  return said.state === 'ready' && said.height === cursor.height && said.hash === cursor.hash ? said : null;
}

/** The result of a pass over a node in this condition; `part` says what the pass has done. */
export function passResult(condition: NodeCondition, part: Partial<PassResult>): PassResult {
  const reason = condition.state === 'ready' ? null : condition.reason;
  return {
    role: 'watching',
    state: condition.state,
    reason,
    alarms: alarmsOf(condition),
    height: null,
    blocksRead: 0,
    caughtUp: false,
    more: false,
    behind: false,
    ...part,
  };
}

/** What is shown of a node that has fewer blocks than were read. */
export function behindReason(node: { readonly height: number | null }, read: { readonly height: number | null }): string {
  return `behind what was read: node ${node.height}, read ${read.height}`;
}

/** Whether our nodes of this chain hold different blocks at the same height: nothing large is booked then. */
export function isContested(condition: NodeCondition): boolean {
  return condition.state === 'ready' && condition.agreement?.state === 'contested';
}

/** What an operator must know of the nodes of a chain, one sentence each. */
export function alarmsOf(condition: NodeCondition): string[] {
  if (condition.state !== 'ready') return [];
  const { agreement, others = [] } = condition;
  return [...(agreement?.state === 'contested' ? [`the nodes contradict each other: ${agreement.reason}`] : []), ...others];
}

/** Whether what a node does not say is done without soon (outside/utxo/node/trouble). */
export const isPassing = (error: unknown): boolean =>
  troubleOf(error) !== null && (error as { readonly isPassing?: boolean }).isPassing === true;

/** The node's trouble that a call of the port threw (outside/utxo/node/trouble), or null for any other error. */
export function troubleOf(error: unknown): Exclude<NodeCondition, Ready> | null {
  if (!(error instanceof Error) || error.name !== 'NodeTrouble') return null;
  const { state } = error as Error & { state: Exclude<NodeCondition['state'], 'ready'> };
  return { state, reason: error.message, height: null };
}

/** What a call of the port answers; null when the node cannot be used: nothing is known then. */
export async function reachable<T>(asked: () => Promise<T>): Promise<T | null> {
  try {
    return await asked();
  } catch (error) {
    if (troubleOf(error) === null) throw error;
    return null;
  }
}
