// The trouble that a simulated node or bank can be in (`/sandbox/node`, behaviour §6).

export type Fault = 'lose_answers' | 'hang' | 'reject' | 'forgets' | 'no_locks';
export type Trouble = {
  readonly down: boolean;
  readonly fault: Fault | null;
  /** For how many more calls the fault lasts; null = until it is ended. */
  readonly left: number | null;
};

export const NO_TROUBLE: Trouble = { down: false, fault: null, left: null };

/** Counts one of the calls that the fault lasts for; after the last one it is over. A fault without a number stays. */
export function countDown(node: { setTrouble(after: Trouble): void }, trouble: Trouble): void {
  if (trouble.left === null) return;
  const left = trouble.left - 1;
  node.setTrouble(left > 0 ? { ...trouble, left } : { ...trouble, fault: null, left: null });
}
