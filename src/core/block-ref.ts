/** A block by height and hash (hex). */
export type BlockRef = { readonly height: number; readonly hash: string };

/** How much ether contracts have sent to a script (hex) in one block, as a node shows it that can see it. */
export type InnerWord = { readonly node: string; readonly script: string; readonly amountMinor: bigint };

/**
 * Why only one node's word stands for what a block pays. `denied`: another one does not show a part of it, which is left out of `touched`;
 * `hidden`: only another one shows it, and the rest is confirmed; `silent`: no other could say.
 */
export type Unconfirmed = {
  readonly state: 'denied' | 'hidden' | 'silent';
  /** Names the nodes, and what it is about. */
  readonly reason: string;
  /** Hex: the scripts that it is about. */
  readonly scripts: readonly string[];
  /** Where it is `silent`: others have answered, and what this is about is only what they cannot see. */
  readonly isOnlyUnseen?: true;
  /** Beside what is denied: what the others cannot show, which stays in `touched`. */
  readonly unseen?: Pick<Unconfirmed, 'reason' | 'scripts' | 'isOnlyUnseen'>;
};
