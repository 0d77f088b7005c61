// A separate serialiser for transactions and blocks of all five chains, with what each has besides plain ones: AuxPoW, special
// transactions, tokens, witnesses. Written from the currencies' specifications and not from our scanner, which it tests (and loads, in
// bench/currencies.ts). Signatures are random bytes; hashes, Merkle roots and commitments are right.
import { createHash, randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { compactSize, hash256, i32, reversed, u32, u64, varBytes } from './raw-bytes.ts';

export type RawInput = {
  readonly txid: string;
  readonly vout: number;
  readonly script?: Buffer;
  readonly witness?: readonly Buffer[];
};
export type RawOutput = { readonly minor: bigint; readonly script: Buffer; readonly token?: Buffer };
export type RawTransaction = {
  readonly version?: number;
  readonly inputs: readonly RawInput[];
  readonly outputs: readonly RawOutput[];
  /** Dash: behind the lock time, with its length before it. */
  readonly payload?: Buffer;
};
export type Sealed = { readonly bytes: Buffer; readonly txid: string };

/** The bytes of a transaction and its txid in display order. */
export function rawTransaction(parts: RawTransaction): Sealed {
  const head = i32(parts.version ?? 2);
  const witness = parts.inputs.some((input) => (input.witness ?? []).length > 0);
  const inputs = parts.inputs.map((input) =>
    Buffer.concat([reversed(input.txid), u32(input.vout), varBytes(input.script ?? Buffer.alloc(0)), u32(0xfffffffd)]),
  );
  const outputs = parts.outputs.map((output) =>
    Buffer.concat([u64(output.minor), varBytes(Buffer.concat([output.token ?? Buffer.alloc(0), output.script]))]),
  );
  const body = Buffer.concat([compactSize(inputs.length), ...inputs, compactSize(outputs.length), ...outputs]);
  const stacks = parts.inputs.map((input) =>
    Buffer.concat([compactSize((input.witness ?? []).length), ...(input.witness ?? []).map(varBytes)]),
  );
  const tail = Buffer.concat([u32(0), parts.payload === undefined ? Buffer.alloc(0) : varBytes(parts.payload)]);
  const bytes = Buffer.concat([head, ...(witness ? [Buffer.from([0, 1])] : []), body, ...(witness ? stacks : []), tail]);
  return {
    bytes,
    txid: hash256(Buffer.concat([head, body, tail]))
      .reverse()
      .toString('hex'),
  };
}

const NO_TXID = '00'.repeat(32);

/** A coinbase that pays `outputs`; `tag` makes it differ from others. */
export function rawCoinbase(
  outputs: readonly RawOutput[],
  how: { tag?: Buffer; version?: number; payload?: Buffer } = {},
): Sealed {
  const script = Buffer.concat([Buffer.from([4]), how.tag ?? randomBytes(4)]);
  return rawTransaction({ ...how, inputs: [{ txid: NO_TXID, vout: 0xffffffff, script }], outputs });
}

/** Root over txids in display order, in wire order. */
export function merkleRoot(txids: readonly string[]): Buffer {
  let row = txids.map(reversed);
  while (row.length > 1) {
    const up: Buffer[] = [];
    for (let i = 0; i < row.length; i += 2) up.push(hash256(Buffer.concat([row[i] as Buffer, row[i + 1] ?? (row[i] as Buffer)])));
    row = up;
  }
  return row[0] as Buffer;
}

export type RawBlockOptions = {
  readonly version?: number;
  readonly previousHash?: string;
  readonly time?: number;
  readonly headerHash?: 'sha256d' | 'x11';
  /** Puts a proof of another chain's work behind the header (its version must have bit 0x100 then). */
  readonly auxpow?: (headerHash: Buffer) => Buffer;
};

/** A block of these transactions, the coinbase first. */
export function rawBlock(transactions: readonly Sealed[], options: RawBlockOptions = {}): { bytes: Buffer; hash: string } {
  const header = Buffer.concat([
    i32(options.version ?? 0x20000000),
    reversed(options.previousHash ?? '11'.repeat(32)),
    merkleRoot(transactions.map((one) => one.txid)),
    u32(options.time ?? 1_800_000_000),
    u32(0x207fffff),
    u32(7),
  ]);
  const named = nameOfHeader(header, options.headerHash ?? 'sha256d');
  const proof = options.auxpow?.(named) ?? Buffer.alloc(0);
  const bytes = Buffer.concat([header, proof, compactSize(transactions.length), ...transactions.map((one) => one.bytes)]);
  return { bytes, hash: Buffer.from(named).reverse().toString('hex') };
}

/** The hash that identifies a block of a chain, in wire order. */
export function nameOfHeader(header: Buffer, kind: 'sha256d' | 'x11'): Buffer {
  if (kind === 'sha256d') return hash256(header);
  const library = createRequire(import.meta.url)('@dashevo/x11-hash-js') as { digest(i: Buffer, a: 1, b: 1): number[] };
  return Buffer.from(library.digest(header, 1, 1));
}

export type AuxPowOptions = {
  /** Other chains merge-mined beside ours: the depth of the chain branch. */
  readonly chainBranch?: readonly Buffer[];
  readonly chainIndex?: number;
  /** Siblings of the coinbase in the parent block. */
  readonly coinbaseBranch?: readonly Buffer[];
  /** The parent's coinbase with its witness, as some pools send it. */
  readonly witness?: boolean;
};

/** CAuxPow for a block hash in wire order, committed to by a made-up parent block. */
export function rawAuxPow(headerHash: Buffer, options: AuxPowOptions = {}): Buffer {
  const [chainBranch, coinbaseBranch] = [options.chainBranch ?? [], options.coinbaseBranch ?? [randomBytes(32), randomBytes(32)]];
  const chainIndex = options.chainIndex ?? 0;
  const chainRoot = Buffer.from(fold(headerHash, chainBranch, chainIndex)).reverse();
  const marker = Buffer.concat([Buffer.from('fabe6d6d', 'hex'), chainRoot, u32(2 ** chainBranch.length), u32(0)]);
  const script = Buffer.concat([Buffer.from([3, 1, 2, 3]), marker, Buffer.from('/pool/', 'latin1')]);
  const input: RawInput = {
    txid: NO_TXID,
    vout: 0xffffffff,
    script,
    ...(options.witness ? { witness: [Buffer.alloc(32)] } : {}),
  };
  const coinbase = rawTransaction({
    version: 1,
    inputs: [input],
    outputs: [{ minor: 25_0000_0000n, script: p2pkh(randomBytes(20)) }],
  });
  const parentRoot = fold(reversed(coinbase.txid), coinbaseBranch, 0);
  const parent = Buffer.concat([i32(0x20000000), randomBytes(32), parentRoot, u32(1_800_000_000), u32(0x1a01cd2d), u32(99)]);
  return Buffer.concat([
    coinbase.bytes,
    hash256(parent),
    ...[compactSize(coinbaseBranch.length), ...coinbaseBranch, u32(0)],
    ...[compactSize(chainBranch.length), ...chainBranch, u32(chainIndex)],
    parent,
  ]);
}

function fold(leaf: Buffer, branch: readonly Buffer[], index: number): Buffer {
  return branch.reduce(
    (node, sibling, level) => hash256(Buffer.concat((index >> level) & 1 ? [sibling, node] : [node, sibling])),
    leaf,
  );
}

export const p2pkh = (keyHash: Buffer): Buffer =>
  Buffer.concat([Buffer.from('76a914', 'hex'), keyHash, Buffer.from('88ac', 'hex')]);
export const p2wpkh = (keyHash: Buffer): Buffer => Buffer.concat([Buffer.from([0, 20]), keyHash]);

/** A payment as wallets make them, one input and two outputs, with signature and key of the usual length. */
export function rawPayment(
  segwit: boolean,
  paid: Buffer,
  how: { version?: number; payload?: Buffer; token?: Buffer } = {},
): Sealed {
  const unlock = [randomBytes(72), randomBytes(33)];
  const input = { txid: randomBytes(32).toString('hex'), vout: 1 };
  const inputs = segwit ? [{ ...input, witness: unlock }] : [{ ...input, script: Buffer.concat(unlock.map(varBytes)) }];
  const change = (segwit ? p2wpkh : p2pkh)(randomBytes(20));
  const { token, ...rest } = how;
  return rawTransaction({
    ...rest,
    inputs,
    outputs: [
      { minor: 38_462n, script: paid, ...(token === undefined ? {} : { token }) },
      { minor: 1_000_000n, script: change },
    ],
  });
}

/** A script that belongs to nobody, the same for the same name. */
export const someScript = (name: string): Buffer => p2pkh(createHash('ripemd160').update(name).digest());
