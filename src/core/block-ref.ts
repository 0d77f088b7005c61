/** A block by height and hash (hex). */
export type BlockRef = { readonly height: number; readonly hash: string };

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
  /** Beside what is denied: what the others cannot show, which stays in `touched`. */
  readonly unseen?: Pick<Unconfirmed, 'reason' | 'scripts'>;
};
