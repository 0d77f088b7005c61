/** A block by height and hash (hex). */
export type BlockRef = { readonly height: number; readonly hash: string };
