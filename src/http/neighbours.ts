// Limits hold across all servers of one database: each tells the others what it counted, and counts what they tell. The words travel by the
// database's notifications (main/neighbours.ts); a server alone tells nobody and pays nothing.

export type Neighbours = {
  /** Something was counted here: `n` more of `key` in `list`. */
  counted(list: string, key: string): void;
  /** Called back for what the others counted. */
  onCounted(list: string, count: (key: string, n: number) => void): void;
};

/** A server that is alone. */
export const NO_NEIGHBOURS: Neighbours = { counted: () => undefined, onCounted: () => undefined };
