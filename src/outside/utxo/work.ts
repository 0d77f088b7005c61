// The proof of work of a block, by its header's own target (nBits): double SHA-256 or X11 where that hash also identifies the block, scrypt
// on LTC and DOGE, and the parent's header where the block was mined together with another chain's (DOGE).
import { scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import type { UtxoParameters } from '../../core/currencies/utxo.ts';
import { AUXPOW_VERSION_BIT, provenParent } from './auxpow.ts';
import { Malformed } from './bytes.ts';

const HEADER = 80;
const BITS_AT = 72;
/** N=1024, r=1, p=1, the header as password and salt. */
const SCRYPT = { N: 1024, r: 1, p: 1 };
const hashScrypt = promisify(scrypt) as (password: Buffer, salt: Buffer, length: number, options: object) => Promise<Buffer>;

/** The target that a header's nBits stand for (arith_uint256::SetCompact). @throws Malformed for a negative or a zero one, or one above 256 bits */
export function targetOf(bits: number): bigint {
  const exponent = bits >>> 24;
  const mantissa = BigInt(bits & 0x7fffff);
  const target = exponent <= 3 ? mantissa >> BigInt(8 * (3 - exponent)) : mantissa << BigInt(8 * (exponent - 3));
  if ((bits & 0x800000) !== 0 || target === 0n || exponent > 34 || target >> 256n !== 0n)
    throw new Malformed(`nBits ${bits.toString(16)} are no target`);
  return target;
}

/** The target in the header that a block begins with. */
export function targetIn(bytes: Buffer): bigint {
  if (bytes.length < HEADER) throw new Malformed(`a header of ${bytes.length} bytes`);
  return targetOf(bytes.readUInt32LE(BITS_AT));
}

type Work = UtxoParameters['work'];

/**
 * Whether the hash that identifies a block meets the header's target, and the target the chain's limit: for chains whose work is that hash.
 * @param hash display order
 * @param easiest the easiest target that is accepted
 * @throws Malformed
 */
export function checkHeaderWork(bytes: Buffer, hash: string, easiest: bigint): void {
  meet(BigInt(`0x${hash}`), targetIn(bytes), easiest);
}

/** The same for every chain; scrypt takes about a millisecond, on another thread. @throws Malformed */
export async function checkWork(bytes: Buffer, hash: string, work: Work, easiest: bigint): Promise<void> {
  if (work.hash === 'header') return checkHeaderWork(bytes, hash, easiest);
  const target = targetIn(bytes);
  const isMerged = work.merged && (bytes.readInt32LE(0) & AUXPOW_VERSION_BIT) !== 0;
  const header = isMerged ? provenParent(bytes, Buffer.from(hash, 'hex').reverse()) : bytes.subarray(0, HEADER);
  const found = await hashScrypt(header, header, 32, SCRYPT);
  meet(BigInt(`0x${Buffer.from(found).reverse().toString('hex')}`), target, easiest);
}

function meet(found: bigint, target: bigint, easiest: bigint): void {
  if (target > easiest) throw new Malformed('its target is too easy for its chain');
  if (found > target) throw new Malformed('its hash does not meet its own target: no work was done for it');
}
