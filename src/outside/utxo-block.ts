// Reads raw blocks of Bitcoin's family: the hash against the header, every txid against the Merkle root, and the facts of those transactions
// that touch something watched. What it does not know it refuses (Malformed): the block is read again and shown as trouble, never skipped.
// Called by utxo-node.ts.
import type { BlockFacts, TransactionFacts } from '../core/ports.ts';
import { SEGWIT_BLOCKS } from '../core/utxo-parameters.ts';
import { AUXPOW_VERSION_BIT, skipAuxPow } from './utxo-auxpow.ts';
import { type Cursor, displayHash, doubleHash, foldMerkle, Malformed, readCount, skip } from './utxo-bytes.ts';
import { skipMwebBlock } from './utxo-mweb.ts';
import { type Features, factsOf, hashTransaction, newScan, scanTransaction, type Watched } from './utxo-transaction.ts';
import { x11 } from './utxo-x11.ts';

const HEADER = 80;
const SMALLEST_TRANSACTION = 60;
/** What the parent chain's coinbase may look like: pools leave its witness out, and nobody forbids it. */
const PARENT_FEATURES: Features = { ...SEGWIT_BLOCKS, maxMoney: 2n ** 63n - 1n };
const NOTHING: Watched = { hasScript: () => false, hasOutpoint: () => false };

/**
 * A block as `getblock <hash> 0` gives it.
 * @param hash what was asked for, display order; the header must hash to it
 * @throws Malformed for anything that is wrong, unknown or left over
 */
export function readBlockBytes(bytes: Buffer, hash: string, features: Features, watch: Watched): BlockFacts {
  const cursor: Cursor = { bytes, at: 0 };
  skip(cursor, HEADER);
  if (features.headerHash === 'x11') x11(bytes.subarray(0, HEADER), scratch32);
  else doubleHash(bytes, 0, HEADER, scratch32, 0);
  const found = displayHash(scratch32, 0);
  if (found !== hash) throw new Malformed(`the header hashes to ${found}`);
  if (features.auxpow && bytes.readInt32LE(0) & AUXPOW_VERSION_BIT)
    skipAuxPow(cursor, scratch32, (txid) => readParentCoinbase(cursor, txid));
  const count = readCount(cursor);
  if (count === 0 || count > bytes.length / SMALLEST_TRANSACTION)
    throw new Malformed(`a block of ${count} transactions in ${bytes.length} bytes`);
  const leaves = leavesFor(count);
  const scan = newScan(cursor, features, watch);
  const touched: TransactionFacts[] = [];
  for (let i = 0; i < count; i++) {
    scanTransaction(scan, true);
    if (scan.coinbase !== (i === 0))
      throw new Malformed(i === 0 ? 'the first transaction is no coinbase' : `transaction ${i} is a second coinbase`);
    if (scan.hogEx && i !== count - 1) throw new Malformed('a HogEx that is not the last transaction');
    hashTransaction(scan, leaves, i * 32);
    if (scan.hit) touched.push(factsOf(scan, displayHash(leaves, i * 32)));
  }
  if (scan.hogEx) skipMwebBlock(cursor);
  if (cursor.at !== bytes.length) throw new Malformed(`${bytes.length - cursor.at} bytes are left over`);
  foldMerkle(leaves, count);
  if (leaves.compare(bytes, 36, 68, 0, 32) !== 0) throw new Malformed('the transactions do not fit the Merkle root');
  return { hash, previousHash: displayHash(bytes, 4), timeMs: bytes.readUInt32LE(68) * 1000, transactionCount: count, touched };
}

/** The coinbase of the chain that a merge-mined block got its work from. */
function readParentCoinbase(cursor: Cursor, txid: Buffer): { scriptStart: number; scriptEnd: number } {
  const scan = newScan(cursor, PARENT_FEATURES, NOTHING);
  scanTransaction(scan, false);
  if (!scan.coinbase) throw new Malformed('merged mining: the first transaction of the parent is no coinbase');
  const { at } = cursor;
  cursor.at = scan.bodyStart + 1 + 36;
  const length = readCount(cursor);
  const scriptStart = cursor.at;
  cursor.at = at;
  hashTransaction(scan, txid, 0);
  return { scriptStart, scriptEnd: scriptStart + length };
}

// buffers that are used again for every block: nothing here runs concurrently
const scratch32 = Buffer.alloc(32);
let leavesBuffer = Buffer.alloc(4096 * 32);

function leavesFor(count: number): Buffer {
  if (leavesBuffer.length < count * 32) leavesBuffer = Buffer.alloc(count * 64);
  return leavesBuffer;
}
