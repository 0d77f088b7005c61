// The proof of another chain's work that a merge-mined block carries after its header (CAuxPow of Dogecoin Core 1.14): a parent block,
// computed from the block's hash, whose coinbase commits to it. Nobody mined it.
import { compactSize, hash256, i32, u32, wire } from './bytes.ts';
import { keyHashScript } from './scripts.ts';
import { coinbaseInput, sealed } from './transaction.ts';

const MERGED_MINING = Buffer.from('fabe6d6d', 'hex');
const PARENT_VERSION = 0x20000000;
const PARENT_BITS = 0x207fffff;
const PARENT_SUBSIDY = 6_2500_0000n;
const NO_BRANCH = Buffer.concat([compactSize(0), u32(0)]);

/** @param hash of the block, in display form */
export function mergedMiningProof(hash: string): Buffer {
  // one chain only: its hash is the root, in display order
  const commitment = Buffer.concat([MERGED_MINING, Buffer.from(hash, 'hex'), u32(1), u32(0)]);
  const coinbase = sealed({
    version: 1,
    inputs: [coinbaseInput(Buffer.concat([Buffer.from([commitment.length]), commitment]), [])],
    outputs: [{ minor: PARENT_SUBSIDY, script: keyHashScript(Buffer.alloc(20)) }],
    lockTime: 0,
  });
  const parent = Buffer.concat([i32(PARENT_VERSION), hash256(wire(hash)), wire(coinbase.txid), u32(0), u32(PARENT_BITS), u32(0)]);
  return Buffer.concat([coinbase.raw, hash256(parent), NO_BRANCH, NO_BRANCH, parent]);
}
