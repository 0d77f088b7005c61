// The proof of another chain's work after the header of a merge-mined block (DOGE). For reading it is moved over, whatever it holds: the
// block is identified by its own 80 bytes, and its transactions by their Merkle root. Where a node's word is not enough, it is checked as the
// reference node does. Layout and rules: Dogecoin Core 1.14, src/auxpow.cpp.
import { type Cursor, doubleHash, Malformed, readCount, skip } from './bytes.ts';
import { type Features, hashTransaction, newScan, type Scan, scanTransaction, type Watched } from './transaction.ts';

/** The bit of a block's version that says that a proof follows the header. */
export const AUXPOW_VERSION_BIT = 0x100;

const HASH = 32;
const INDEX = 4;
const HEADER = 80;
const ROOT_AT = 36;
/** Before the root in the parent's coinbase; without it the root must be among its first bytes. */
const MARKER = Buffer.from('fabe6d6d', 'hex');
const MOST_BEFORE_ROOT = 20;
const DEEPEST_CHAINS = 30;
const NOTHING: Watched = { hasScript: () => false, hasOutpoint: () => false };

/** A parent chain's first transaction may have a witness, or none. */
const PARENT_FEATURES: Features = {
  segwit: true,
  mweb: false,
  auxpow: false,
  specialTransactions: false,
  tokens: false,
  maxMoney: 0n,
  protectedScripts: [],
  headerHash: 'sha256d',
};

type Branch = { readonly hashes: readonly Buffer[]; readonly index: number };
type AuxPow = { readonly coinbase: Scan; readonly coinbaseBranch: Branch; readonly chainBranch: Branch; readonly parent: Buffer };

/**
 * @param cursor after the header; moved behind the proof
 * @throws Malformed when it is cut off
 */
export function readAuxPow(cursor: Cursor): AuxPow {
  const coinbase = newScan(cursor, PARENT_FEATURES, NOTHING, 'parent');
  scanTransaction(coinbase);
  skip(cursor, HASH); // of the parent block
  const coinbaseBranch = readBranch(cursor);
  const chainBranch = readBranch(cursor);
  const { at } = cursor;
  skip(cursor, HEADER);
  return { coinbase, coinbaseBranch, chainBranch, parent: cursor.bytes.subarray(at, cursor.at) };
}

function readBranch(cursor: Cursor): Branch {
  const count = readCount(cursor);
  const { at, bytes } = cursor;
  skip(cursor, count * HASH + INDEX);
  return {
    hashes: Array.from({ length: count }, (_, n) => bytes.subarray(at + n * HASH, at + (n + 1) * HASH)),
    index: bytes.readInt32LE(at + count * HASH),
  };
}

/**
 * The parent's header, once it is shown to commit to this block and to no other of its chain (CAuxPow::check).
 * @param bytes of the block
 * @param hash that identifies it, wire order
 * @throws Malformed
 */
export function provenParent(bytes: Buffer, hash: Buffer): Buffer {
  const { coinbase, coinbaseBranch, chainBranch, parent } = readAuxPow({ bytes, at: HEADER });
  const leaf = Buffer.alloc(HASH);
  hashTransaction(coinbase, leaf, 0);
  if (coinbaseBranch.index !== 0 || !fold(leaf, coinbaseBranch).equals(parent.subarray(ROOT_AT, ROOT_AT + HASH)))
    throw new Malformed('the work of its parent is of another coinbase');
  if (chainBranch.hashes.length > DEEPEST_CHAINS) throw new Malformed('the branch of its parent is too long');
  const root = Buffer.from(fold(hash, chainBranch)).reverse();
  checkCommitment(scriptOf(coinbase), root, { chain: bytes.readInt32LE(0) >>> 16, branch: chainBranch });
  return parent;
}

/** Of the first input. */
function scriptOf(coinbase: Scan): Buffer {
  const cursor: Cursor = { bytes: coinbase.cursor.bytes, at: coinbase.bodyStart };
  if (readCount(cursor) === 0) throw new Malformed('the coinbase of its parent has no input');
  skip(cursor, HASH + INDEX);
  const length = readCount(cursor);
  const { at } = cursor;
  skip(cursor, length);
  return cursor.bytes.subarray(at, at + length);
}

function checkCommitment(
  script: Buffer,
  root: Buffer,
  { chain, branch }: { readonly chain: number; readonly branch: Branch },
): void {
  const at = script.indexOf(root);
  const marker = script.indexOf(MARKER);
  const isPlaced = marker >= 0 ? marker + MARKER.length === at && script.indexOf(MARKER, marker + 1) < 0 : at <= MOST_BEFORE_ROOT;
  const end = at + HASH;
  if (at < 0 || !isPlaced || script.length < end + 2 * INDEX) throw new Malformed('the work of its parent is for another block');
  const height = branch.hashes.length;
  const slot = slotOf(script.readUInt32LE(end + INDEX), chain, height);
  if (script.readUInt32LE(end) !== 2 ** height || branch.index !== slot)
    throw new Malformed('the work of its parent is not at the place of its chain');
}

/** CAuxPow::getExpectedIndex: one place for each chain, so that one parent's work counts once. */
function slotOf(nonce: number, chain: number, height: number): number {
  const step = (value: number): number => (Math.imul(value, 1103515245) + 12345) >>> 0;
  return step((step(nonce) + chain) >>> 0) % 2 ** height;
}

function fold(leaf: Buffer, { hashes, index }: Branch): Buffer {
  let found = leaf;
  for (const [level, other] of hashes.entries()) {
    const pair = Buffer.concat((index >> level) & 1 ? [other, found] : [found, other]);
    found = Buffer.alloc(HASH);
    doubleHash(pair, 0, 2 * HASH, found, 0);
  }
  return found;
}
