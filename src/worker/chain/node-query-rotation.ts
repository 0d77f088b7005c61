// Which transactions a node is asked about in one pass, where the answer may change at any time and anybody can make very many of them: those
// that were never asked about first, then those that were asked about longest ago.

export type NodeQueryRotation = {
  /** @param open all that must be asked about some time; others are forgotten */
  next(open: Iterable<string>): readonly string[];
};

const MOST_IN_A_PASS = 500;

/** Chooses what a pass asks the node about, when there is more than one pass should: what waits longest comes first. */
export function createNodeQueryRotation(most = MOST_IN_A_PASS): NodeQueryRotation {
  /** In the order in which they were asked about. */
  const asked = new Set<string>();
  return {
    next(open) {
      const all = new Set(open);
      for (const txid of asked) if (!all.has(txid)) asked.delete(txid);
      const turn: string[] = [];
      for (const txid of all) {
        if (turn.length >= most) break;
        if (!asked.has(txid)) turn.push(txid);
      }
      for (const txid of asked) {
        if (turn.length >= most) break;
        turn.push(txid);
      }
      for (const txid of turn) {
        asked.delete(txid);
        asked.add(txid);
      }
      return turn;
    },
  };
}
