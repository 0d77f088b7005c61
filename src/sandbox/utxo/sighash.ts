// What the signatures of the simulated currencies sign, and whether they are valid: BIP143 for witnesses, the digest before segwit, and
// Bitcoin Cash's (BIP143 with SIGHASH_FORKID, ECDSA or its own Schnorr). Only SIGHASH_ALL.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { hash160, hash256, i32, sha256, u32, u64, withLength } from './bytes.ts';
import type { Dialect } from './dialects.ts';
import { keyHashScript } from './scripts.ts';
import { type Input, outpointBytes, outputBytes, type Parts, transactionBytes } from './transaction.ts';

const SIGHASH_ALL = 0x01;
const SIGHASH_FORKID = 0x40;
const NO_SCRIPT = Buffer.alloc(0);

/** The output that an input spends, as far as its signature covers it. */
export type Spent = { readonly keyHash: Buffer; readonly minor: bigint };

/** The last byte of a currency's signatures. */
export const sighashType = (dialect: Dialect): number =>
  dialect.sighash === 'forkid' ? SIGHASH_ALL | SIGHASH_FORKID : SIGHASH_ALL;

/** What the input at `index` signs when it spends P2WPKH (`witness`) or P2PKH. */
export function digestOf(dialect: Dialect, parts: Parts, index: number, spent: Spent, witness: boolean): Buffer {
  if (witness || dialect.sighash === 'forkid') return segwitDigest(parts, index, spent, sighashType(dialect));
  const inputs = parts.inputs.map((input, i) => ({
    ...input,
    scriptSig: i === index ? keyHashScript(spent.keyHash) : NO_SCRIPT,
    witness: [],
  }));
  return hash256(Buffer.concat([transactionBytes({ ...parts, inputs }, false), u32(SIGHASH_ALL)]));
}

function segwitDigest(parts: Parts, index: number, spent: Spent, type: number): Buffer {
  const input = parts.inputs[index] as Input;
  return hash256(
    Buffer.concat([
      i32(parts.version),
      hash256(Buffer.concat(parts.inputs.map(outpointBytes))),
      hash256(Buffer.concat(parts.inputs.map((each) => u32(each.sequence)))),
      outpointBytes(input),
      withLength(keyHashScript(spent.keyHash)),
      u64(spent.minor),
      u32(input.sequence),
      hash256(Buffer.concat(parts.outputs.map(outputBytes))),
      u32(parts.lockTime),
      u32(type),
    ]),
  );
}

/** The unlocking items of an input: its witness, or the pushes of its script; null for a script that does more than push. */
function itemsOf(input: Input, witness: boolean): readonly Buffer[] | null {
  if (witness) return input.witness;
  const items: Buffer[] = [];
  for (let at = 0; at < input.scriptSig.length; ) {
    const length = input.scriptSig[at] as number;
    const end = at + 1 + length;
    if (length === 0 || length > 75 || end > input.scriptSig.length) return null;
    items.push(input.scriptSig.subarray(at + 1, end));
    at = end;
  }
  return items;
}

/** Whether an input holds the key of the key hash and its valid signature of SIGHASH_ALL. */
export function isSigned(dialect: Dialect, parts: Parts, index: number, spent: Spent, witness: boolean): boolean {
  const [signature, publicKey, ...rest] = itemsOf(parts.inputs[index] as Input, witness) ?? [];
  if (signature === undefined || publicKey === undefined || rest.length > 0 || publicKey.length !== 33) return false;
  if (signature[signature.length - 1] !== sighashType(dialect) || !hash160(publicKey).equals(spent.keyHash)) return false;
  const digest = digestOf(dialect, parts, index, spent, witness);
  const bare = signature.subarray(0, -1);
  try {
    if (dialect.sighash === 'forkid' && bare.length === 64) return isCashSchnorr(bare, digest, publicKey);
    return secp256k1.verify(bare, digest, publicKey, { prehash: false, lowS: true, format: 'der' });
  } catch {
    return false;
  }
}

/** Bitcoin Cash's Schnorr (2019-05-15): R = s·G − e·P must have the x coordinate r and a y that is a square. */
function isCashSchnorr(signature: Buffer, digest: Buffer, publicKey: Buffer): boolean {
  const { Fp, Fn, BASE } = secp256k1.Point;
  const r = signature.subarray(0, 32);
  const s = BigInt(`0x${signature.subarray(32).toString('hex')}`);
  if (s >= Fn.ORDER) return false;
  const e = Fn.create(BigInt(`0x${sha256(Buffer.concat([r, publicKey, digest])).toString('hex')}`));
  const point = BASE.multiplyUnsafe(s).subtract(secp256k1.Point.fromBytes(publicKey).multiplyUnsafe(e));
  if (point.is0()) return false;
  const { x, y } = point.toAffine();
  return x === BigInt(`0x${r.toString('hex')}`) && Fp.eql(Fp.pow(y, (Fp.ORDER - 1n) / 2n), Fp.ONE);
}
