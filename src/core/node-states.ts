// Why a node cannot be used right now, in classes that show an operator what to do.

/** `pruned`: the node works, but has deleted the block that we need. */
export type NodeTroubleState =
  | 'down'
  | 'warming_up'
  | 'busy'
  | 'wrong_network'
  | 'syncing'
  | 'stuck'
  | 'unauthorized'
  | 'bad_answer'
  | 'pruned';
