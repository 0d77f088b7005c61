// Reads raw blocks of Bitcoin's family: checks the hash against the header and every txid against the Merkle root, and extracts the facts
// of the transactions that touch something watched. Whether a block is valid is not judged here: that is our node's work. A transaction
// that cannot be read from its bytes alone is reported by its position, and can be read with the help of the node's decoded answer
// (verbose-answers.ts).
import type { BlockFacts, TransactionFacts } from '../../core/ports.ts';
import { AUXPOW_VERSION_BIT, readAuxPow } from './auxpow.ts';
import { type Cursor, compactSize, displayHash, doubleHash, foldMerkle, Malformed, readCount, skip } from './bytes.ts';
import { type Features, factsOf, hashTransaction, newScan, type Scan, scanTransaction, type Watched } from './transaction.ts';
import { x11 } from './x11.ts';

const HEADER = 80;
const SMALLEST_TRANSACTION = 10;

/** What the node itself reports of a block, besides its bytes. */
export type KnownBlock = {
  /** Display order; proven by the Merkle root. */
  readonly txids: readonly string[];
  /** For those that could not be read: their bytes, and what they touch. */
  readonly decoded: ReadonlyMap<string, { readonly raw: Buffer; readonly facts: TransactionFacts | null }>;
};

/** A transaction of a block cannot be read. */
export class Unreadable extends Malformed {
  readonly index: number;
  constructor(index: number, reason: string) {
    super(`transaction ${index}: ${reason}`);
    this.index = index;
  }
}

/**
 * A block as `getblock <hash> 0` returns it.
 * @param hash the requested hash, display order; the header must hash to it
 * @param known where more than the bytes was requested from the node
 * @throws Malformed for anything that does not match; Unreadable where the node's decoded answer may help
 */
export function readBlockBytes(
  bytes: Buffer,
  hash: string,
  features: Features,
  watch: Watched,
  known: KnownBlock | null = null,
): BlockFacts {
  checkHeader(bytes, hash, features);
  const cursor: Cursor = { bytes, at: HEADER };
  const scan = newScan(cursor, features, watch);
  const count = findTransactions(scan, known);
  const leaves = leavesFor(count);
  const touched: TransactionFacts[] = [];
  for (let i = 0; i < count; i++) {
    const facts = readOne(scan, i, leaves, known);
    if (facts !== null) touched.push(facts);
  }
  // Litecoin's extension block follows, which the Merkle root does not cover: what leaves it is an output of the HogEx
  const isRest = known !== null || (features.mweb && scan.hogEx);
  if (cursor.at !== bytes.length && !isRest) throw new Unreadable(count - 1, `${bytes.length - cursor.at} bytes are left over`);
  foldMerkle(leaves, count);
  if (leaves.compare(bytes, 36, 68, 0, 32) !== 0) throw new Unreadable(0, 'the transactions do not fit the Merkle root');
  return { hash, previousHash: displayHash(bytes, 4), timeMs: bytes.readUInt32LE(68) * 1000, transactionCount: count, touched };
}

/**
 * The bytes of these transactions of a block, by txid; what is not in it is left out.
 * @param hash the requested hash, display order; the header must hash to it
 * @throws Malformed for anything that cannot be read
 */
export function transactionsIn(
  bytes: Buffer,
  hash: string,
  features: Features,
  txids: ReadonlySet<string>,
): ReadonlyMap<string, Uint8Array> {
  checkHeader(bytes, hash, features);
  const scan = newScan({ bytes, at: HEADER }, features, NOTHING_WATCHED);
  const found = new Map<string, Uint8Array>();
  for (let left = findTransactions(scan, null); left > 0 && found.size < txids.size; left--) {
    scanTransaction(scan);
    hashTransaction(scan, scratch32, 0);
    const txid = displayHash(scratch32, 0);
    if (txids.has(txid)) found.set(txid, Uint8Array.from(bytes.subarray(scan.start, scan.end)));
  }
  return found;
}
const NOTHING_WATCHED: Watched = { hasScript: () => false, hasOutpoint: () => false };

/** @throws Malformed: a decoded answer cannot help when this is not the requested block */
export function checkHeader(bytes: Buffer, hash: string, features: Features): void {
  skip({ bytes, at: 0 }, HEADER);
  if (features.headerHash === 'x11') x11(bytes.subarray(0, HEADER), scratch32);
  else doubleHash(bytes, 0, HEADER, scratch32, 0);
  const found = displayHash(scratch32, 0);
  if (found !== hash) throw new Malformed(`the header hashes to ${found}`);
}

/** Moves to the first transaction; returns how many there are. */
function findTransactions(scan: Scan, known: KnownBlock | null): number {
  const { cursor, features } = scan;
  const { bytes } = cursor;
  const first = known?.decoded.get(known.txids[0] as string);
  if (known !== null && first !== undefined) {
    const count = compactSize(known.txids.length);
    const at = bytes.indexOf(Buffer.concat([count, first.raw]), HEADER);
    if (at < 0) throw new Malformed('the first transaction is not in the block');
    cursor.at = at + count.length;
    return known.txids.length;
  }
  const count = asUnreadable(0, () => {
    if (features.auxpow && bytes.readInt32LE(0) & AUXPOW_VERSION_BIT) {
      readAuxPow(cursor);
    }
    return readCount(cursor);
  });
  if (count === 0 || count > bytes.length / SMALLEST_TRANSACTION || (known !== null && count !== known.txids.length))
    throw new Unreadable(0, `a block of ${count} transactions in ${bytes.length} bytes`);
  return count;
}

function readOne(scan: Scan, index: number, leaves: Buffer, known: KnownBlock | null): TransactionFacts | null {
  const { cursor } = scan;
  const txid = known?.txids[index];
  const decoded = txid === undefined ? undefined : known?.decoded.get(txid);
  if (txid !== undefined && decoded !== undefined) {
    const { at } = cursor;
    skip(cursor, decoded.raw.length);
    if (decoded.raw.compare(cursor.bytes, at, cursor.at) !== 0)
      throw new Malformed(`transaction ${txid} is another one in the block`);
    Buffer.from(txid, 'hex')
      .reverse()
      .copy(leaves, index * 32);
    return decoded.facts;
  }
  return asUnreadable(index, () => {
    scanTransaction(scan);
    if (scan.coinbase !== (index === 0))
      throw new Malformed(index === 0 ? 'the first transaction is no coinbase' : 'a second coinbase');
    hashTransaction(scan, leaves, index * 32);
    if (!scan.hit && txid === undefined) return null;
    const found = displayHash(leaves, index * 32);
    if (txid !== undefined && found !== txid) throw new Malformed(`it hashes to ${found}`);
    return scan.hit ? factsOf(scan, found) : null;
  });
}

function asUnreadable<T>(index: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof Malformed && !(error instanceof Unreadable)) throw new Unreadable(index, error.message);
    throw error;
  }
}

// buffers that are reused for every block: nothing here runs concurrently
const scratch32 = Buffer.alloc(32);
let leavesBuffer = Buffer.alloc(4096 * 32);

function leavesFor(count: number): Buffer {
  if (leavesBuffer.length < count * 32) leavesBuffer = Buffer.alloc(count * 64);
  return leavesBuffer;
}
