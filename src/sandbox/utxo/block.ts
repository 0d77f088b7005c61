// A block of the simulated chains: header, Merkle root, coinbase (BIP34 height, BIP141 commitment) and the work that regtest requires.
import { createRequire } from 'node:module';
import { compactSize, hash256, i32, shown, take, takeI32, takeU32, u32, wire } from './bytes.ts';
import type { Dialect } from './dialects.ts';
import { mergedMiningProof } from './merged-mining.ts';
import { coinbaseInput, type Output, readTransaction, sealed, type Transaction } from './transaction.ts';

export type Header = {
  readonly version: number;
  readonly previousHash: string;
  readonly merkleRoot: string;
  readonly time: number;
  readonly bits: number;
  readonly nonce: number;
};
export type Block = Header & {
  readonly hash: string;
  readonly height: number;
  /** Median time of this block and the ten before it. */
  readonly medianTime: number;
  readonly transactions: readonly Transaction[];
  /** Whether `transactions` is parsed from packed bytes at each access. */
  readonly packed: boolean;
};

const MOST_PACKED_BYTES = 1_000;
const MOST_PLAIN_PUSH = 75;
const OP_PUSHDATA1 = 0x4c;
const WITNESS_RESERVED = Buffer.alloc(32);
const COMMITMENT_HEAD = Buffer.from('6a24aa21a9ed', 'hex');
/** OP_TRUE-like filler: a coinbase's script must have at least two bytes at any height. */
const COINBASE_TAIL = Buffer.from('/bursar sandbox/', 'latin1');

/** The 80 bytes of a block header. */
export function headerBytes(header: Header): Buffer {
  return Buffer.concat([
    i32(header.version),
    wire(header.previousHash),
    wire(header.merkleRoot),
    u32(header.time),
    u32(header.bits),
    u32(header.nonce),
  ]);
}

/** A header from its 80 bytes; hashes as they are shown (reversed). */
export function readHeader(bytes: Buffer): Header {
  const cursor = { bytes, at: 0 };
  return {
    version: takeI32(cursor),
    previousHash: shown(take(cursor, 32)),
    merkleRoot: shown(take(cursor, 32)),
    time: takeU32(cursor),
    bits: takeU32(cursor),
    nonce: takeU32(cursor),
  };
}

/** The Merkle root of hashes in wire order; an odd one is paired with itself. */
export function merkleRoot(hashes: readonly Buffer[]): Buffer {
  let row = hashes;
  while (row.length > 1) {
    const next: Buffer[] = [];
    for (let i = 0; i < row.length; i += 2) {
      const left = row[i] as Buffer;
      next.push(hash256(Buffer.concat([left, row[i + 1] ?? left])));
    }
    row = next;
  }
  return row[0] as Buffer;
}

type X11 = { digest(input: Uint8Array, inputFormat: 1, outputFormat: 1): readonly number[] };
let x11: X11 | undefined;

/** The hash that identifies a block of a chain. */
export function blockHash(dialect: Dialect, header: Header): string {
  const bytes = headerBytes(header);
  if (dialect.headerHash === 'sha256d') return shown(hash256(bytes));
  x11 ??= createRequire(import.meta.url)('@dashevo/x11-hash-js') as X11;
  return shown(Buffer.from(x11.digest(bytes, 1, 1)));
}

const meetsRegtestTarget = (headerHash: Buffer): boolean => (headerHash[31] as number) < 0x80;

/** The header with the first nonce whose hash meets 0x207fffff, on chains that prove their work with the block's hash. */
function withWork(header: Header, dialect: Dialect): Header {
  if (!dialect.workIsBlockHash) return header;
  for (let nonce = header.nonce; ; nonce++) {
    const candidate = { ...header, nonce };
    if (meetsRegtestTarget(hash256(headerBytes(candidate)))) return candidate;
  }
}

/** BIP34: the height as a script number, pushed first. */
function heightPush(height: number): Buffer {
  if (height <= 16) return Buffer.from([0x50 + height, 0x00]);
  const digits: number[] = [];
  for (let rest = height; rest > 0; rest >>>= 8) digits.push(rest & 0xff);
  if ((digits[digits.length - 1] as number) & 0x80) digits.push(0);
  return Buffer.from([digits.length, ...digits]);
}

const commitmentScript = (transactions: readonly Transaction[]): Buffer => {
  const root = merkleRoot([Buffer.alloc(32), ...transactions.map((transaction) => wire(transaction.wtxid))]);
  return Buffer.concat([COMMITMENT_HEAD, hash256(Buffer.concat([root, WITNESS_RESERVED]))]);
};

/**
 * The coinbase of a block at `height` over the other transactions.
 * @param fork makes coinbases of competing branches at one height differ
 */
export function coinbase(
  dialect: Dialect,
  options: {
    readonly height: number;
    readonly fork: number;
    readonly outputs: readonly Output[];
    readonly transactions: readonly Transaction[];
  },
): Transaction {
  const forkMark = options.fork === 0 ? Buffer.alloc(0) : Buffer.concat([Buffer.from([4]), u32(options.fork)]);
  const scriptSig = Buffer.concat([heightPush(options.height), forkMark, Buffer.from([COINBASE_TAIL.length]), COINBASE_TAIL]);
  if (!dialect.segwit) {
    const inputs = [coinbaseInput(scriptSig, [])];
    return sealed({ version: dialect.transactionVersion, inputs, outputs: options.outputs, lockTime: 0 });
  }
  return sealed({
    version: 2,
    inputs: [coinbaseInput(scriptSig, [WITNESS_RESERVED])],
    outputs: [...options.outputs, { minor: 0n, script: commitmentScript(options.transactions) }],
    lockTime: 0,
  });
}

/** The middle one of the last eleven times, ending with `times`' last. */
export function median(times: readonly number[]): number {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] as number;
}

/**
 * A block of a header, its height and hash, and its transactions. A block with nothing but a coinbase is packed and parsed again when
 * needed: a sandbox makes tens of thousands of them a day, and objects would take seven times the memory.
 */
export function blockOf(
  header: Header,
  { height, medianTime, hash }: { readonly height: number; readonly medianTime: number; readonly hash: string },
  transactions: readonly Transaction[],
): Block {
  const [only] = transactions;
  if (only === undefined || transactions.length > 1 || only.raw.length > MOST_PACKED_BYTES) {
    return { ...header, hash, height, medianTime, transactions, packed: false };
  }
  const bytes = only.raw.toString('latin1');
  return {
    ...header,
    merkleRoot: only.txid,
    hash,
    height,
    medianTime,
    packed: true,
    get transactions() {
      return [readTransaction(Buffer.from(bytes, 'latin1').toString('hex')) as Transaction];
    },
  };
}

/** The header of a new block on top of `previousHash`, with its work done. */
export function mineHeader(
  dialect: Dialect,
  on: { readonly previousHash: string; readonly time: number },
  transactions: readonly Transaction[],
): Header {
  const root = merkleRoot(transactions.map((transaction) => wire(transaction.txid)));
  const header = {
    version: dialect.blockVersion,
    previousHash: on.previousHash,
    merkleRoot: shown(root),
    time: on.time,
    bits: dialect.genesis.bits,
    nonce: 0,
  };
  return withWork(header, dialect);
}

/** Block 0 of the currency's regtest, byte for byte. */
export function genesisBlock(dialect: Dialect): Block {
  const { genesis } = dialect;
  const text = Buffer.from(genesis.coinbaseText, 'utf8');
  const key = Buffer.from(genesis.coinbaseKey, 'hex');
  const push = text.length <= MOST_PLAIN_PUSH ? [text.length] : [OP_PUSHDATA1, text.length];
  const scriptSig = Buffer.concat([Buffer.from('04ffff001d0104', 'hex'), Buffer.from(push), text]);
  const script = Buffer.concat([Buffer.from([key.length]), key, Buffer.from([0xac])]);
  const transaction = sealed({
    version: 1,
    inputs: [coinbaseInput(scriptSig, [])],
    outputs: [{ minor: genesis.minor, script }],
    lockTime: 0,
  });
  const header = {
    version: genesis.version,
    previousHash: '00'.repeat(32),
    merkleRoot: transaction.txid,
    time: genesis.time,
    bits: genesis.bits,
    nonce: genesis.nonce,
  };
  return blockOf(header, { height: 0, medianTime: genesis.time, hash: blockHash(dialect, header) }, [transaction]);
}

/** The header as the chain's nodes exchange it: followed by the proof of the parent's work where the block is merge-mined. */
export function headBytes(dialect: Dialect, block: Block): Buffer {
  const header = headerBytes(block);
  return dialect.mergeMined && block.height > 0 ? Buffer.concat([header, mergedMiningProof(block.hash)]) : header;
}

/** A whole block as the chain's nodes exchange it. */
export function blockBytes(dialect: Dialect, block: Block): Buffer {
  return Buffer.concat([
    headBytes(dialect, block),
    compactSize(block.transactions.length),
    ...block.transactions.map((transaction) => transaction.raw),
  ]);
}

/** Size without witnesses, with them, and weight. */
export function blockSizes(block: Block): { strippedSize: number; size: number; weight: number } {
  const head = 80 + compactSize(block.transactions.length).length;
  const strippedSize = block.transactions.reduce((total, transaction) => total + transaction.strippedSize, head);
  const size = block.transactions.reduce((total, transaction) => total + transaction.raw.length, head);
  return { strippedSize, size, weight: strippedSize * 3 + size };
}
