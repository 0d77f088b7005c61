// A block as large as Bitcoin's usual ones, for the scanner: 2,200 transactions with one input and two outputs each (P2WPKH), some of the
// outputs to watched scripts. Only its hash and its Merkle root are right; scripts, keys and signatures are random.
import { createHash, randomBytes } from 'node:crypto';

export const TRANSACTIONS = 2200;
const HITS = 44;

export type BenchBlock = { readonly hash: string; readonly hex: string; readonly hits: number };

function hash256(bytes: Buffer): Buffer {
  return createHash('sha256').update(createHash('sha256').update(bytes).digest()).digest();
}
function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
function u64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return bytes;
}
/** The output script of a P2WPKH address. */
export function witnessScript(program: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x00, 0x14]), program]);
}
function output(script: Buffer, amount: bigint): Buffer {
  return Buffer.concat([u64(amount), Buffer.from([script.length]), script]);
}

/** @returns the bytes with their witness, and the txid in wire order */
export function payment(scripts: readonly Buffer[]): { bytes: Buffer; txid: Buffer } {
  const input = Buffer.concat([Buffer.from([1]), randomBytes(32), u32(1), Buffer.from([0]), u32(0xfffffffd)]);
  const body = Buffer.concat([input, Buffer.from([scripts.length]), ...scripts.map((script) => output(script, 38_462n))]);
  const witness = Buffer.concat([Buffer.from([2, 72]), randomBytes(72), Buffer.from([33]), randomBytes(33)]);
  const [version, lockTime] = [u32(2), u32(0)];
  return {
    bytes: Buffer.concat([version, Buffer.from([0, 1]), body, witness, lockTime]),
    txid: hash256(Buffer.concat([version, body, lockTime])),
  };
}

function coinbase(): { bytes: Buffer; txid: Buffer } {
  const input = Buffer.concat([
    Buffer.from([1]),
    Buffer.alloc(32),
    u32(0xffffffff),
    Buffer.from([4]),
    randomBytes(4),
    u32(0xffffffff),
  ]);
  const bytes = Buffer.concat([u32(2), input, Buffer.from([1]), output(witnessScript(randomBytes(20)), 312_500_000n), u32(0)]);
  return { bytes, txid: hash256(bytes) };
}

function merkleRoot(txids: readonly Buffer[]): Buffer {
  let row = txids;
  while (row.length > 1) {
    row = Array.from({ length: Math.ceil(row.length / 2) }, (_, i) => {
      const left = row[2 * i] as Buffer;
      return hash256(Buffer.concat([left, row[2 * i + 1] ?? left]));
    });
  }
  return row[0] as Buffer;
}

/** @param watched scripts of which some are paid, spread evenly over the block */
export function makeBlock(watched: readonly Buffer[]): BenchBlock {
  const every = Math.floor(TRANSACTIONS / HITS);
  let hits = 0;
  const parts = [coinbase()];
  for (let i = 1; i < TRANSACTIONS; i++) {
    const paid = i % every === 0 ? watched[hits++ % watched.length] : undefined;
    parts.push(payment([paid ?? witnessScript(randomBytes(20)), witnessScript(randomBytes(20))]));
  }
  const root = merkleRoot(parts.map((part) => part.txid));
  const header = Buffer.concat([u32(0x20000000), randomBytes(32), root, u32(1_800_000_000), u32(0x207fffff), u32(0)]);
  const count = Buffer.from([0xfd, TRANSACTIONS & 0xff, TRANSACTIONS >> 8]);
  const bytes = Buffer.concat([header, count, ...parts.map((part) => part.bytes)]);
  return { hash: hash256(header).reverse().toString('hex'), hex: bytes.toString('hex'), hits };
}
