// Skips the proof of another chain's work after the header of a merge-mined block (DOGE). Our node checks what it proves: the block is
// identified by its own 80 bytes, and its transactions by their Merkle root. Layout: Dogecoin Core 1.14, src/auxpow.h.
import { type Cursor, readCount, skip } from './bytes.ts';

/** The bit of a block's version that says that a proof follows the header. */
export const AUXPOW_VERSION_BIT = 0x100;

const HASH = 32;
const INDEX = 4;
const HEADER = 80;

/**
 * @param cursor after the header
 * @param skipParentCoinbase skips the first transaction of the parent block, whatever it holds
 * @throws Malformed when it is cut off
 */
export function skipAuxPow(cursor: Cursor, skipParentCoinbase: () => void): void {
  skipParentCoinbase();
  skip(cursor, HASH); // of the parent block
  skipBranch(cursor); // of the parent's transactions
  skipBranch(cursor); // of the chains that are mined together
  skip(cursor, HEADER);
}

function skipBranch(cursor: Cursor): void {
  skip(cursor, readCount(cursor) * HASH + INDEX);
}
