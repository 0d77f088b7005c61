// Moves over the proof of another chain's work that stands behind the header of a merge-mined block (DOGE), and checks that it belongs to this
// block. The block is named by its own 80 bytes; the work itself (scrypt of the parent's header) is our node's matter. Layout: Dogecoin Core
// 1.14, src/auxpow.h. Called by utxo-block.ts.
import { type Cursor, doubleHash, Malformed, readCount, skip } from './utxo-bytes.ts';

/** The bit of a block's version that says that a proof follows the header. */
export const AUXPOW_VERSION_BIT = 0x100;

const HASH = 32;
const HEADER = 80;
const MERKLE_ROOT = 36;
/** The consensus' limit of the chain branch; a coinbase's own branch is as deep as a block can be wide. */
const DEEPEST_BRANCH = 30;

/**
 * @param cursor behind the header
 * @param blockHash the header's double SHA-256, wire order
 * @param readParentCoinbase moves over the parent's coinbase, puts its txid into `txid` (wire order) and answers where its script lies
 * @throws Malformed when it is cut off, or when the parent's work is not for this block
 */
export function skipAuxPow(
  cursor: Cursor,
  blockHash: Buffer,
  readParentCoinbase: (txid: Buffer) => { readonly scriptStart: number; readonly scriptEnd: number },
): void {
  const { bytes } = cursor;
  const coinbase = readParentCoinbase(coinbaseTxid);
  skip(cursor, HASH); // hash of the parent block: told by its header below, and not relied upon by anybody
  foldBranch(cursor, coinbaseTxid);
  blockHash.copy(chainRoot, 0, 0, HASH);
  foldBranch(cursor, chainRoot);
  const parent = cursor.at;
  skip(cursor, HEADER);
  if (coinbaseTxid.compare(bytes, parent + MERKLE_ROOT, parent + MERKLE_ROOT + HASH, 0, HASH) !== 0) {
    throw new Malformed('merged mining: the coinbase is not in the parent block');
  }
  chainRoot.reverse(); // the commitment is in display order
  const script = bytes.subarray(coinbase.scriptStart, coinbase.scriptEnd);
  if (!script.includes(chainRoot)) throw new Malformed('merged mining: the parent does not commit to this block');
}

/** Reads a Merkle branch with its index, and replaces `node` by the root that they lead to. */
function foldBranch(cursor: Cursor, node: Buffer): void {
  const { bytes } = cursor;
  const depth = readCount(cursor);
  if (depth > DEEPEST_BRANCH) throw new Malformed(`merged mining: a Merkle branch of ${depth} hashes`);
  const first = cursor.at;
  skip(cursor, depth * HASH);
  let index = bytes.readUInt32LE(skipped(cursor, 4));
  for (let level = 0; level < depth; level++) {
    const sibling = first + level * HASH;
    node.copy(pair, index & 1 ? HASH : 0, 0, HASH);
    bytes.copy(pair, index & 1 ? 0 : HASH, sibling, sibling + HASH);
    doubleHash(pair, 0, 2 * HASH, node, 0);
    index >>>= 1;
  }
}

function skipped(cursor: Cursor, length: number): number {
  const { at } = cursor;
  skip(cursor, length);
  return at;
}

// used again for every block: nothing here runs concurrently
const coinbaseTxid = Buffer.alloc(HASH);
const chainRoot = Buffer.alloc(HASH);
const pair = Buffer.alloc(2 * HASH);
