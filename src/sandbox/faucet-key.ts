// The keys of the simulated world: one fixed key that holds the faucet's coins, one that miners are paid to. They are no secrets: their coins
// exist in this process only. Signs the faucet's inputs as BIP143 says.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { hash160, hash256, i32, sha256, u32, u64, withLength } from './bytes.ts';
import { type Input, outpointBytes, outputBytes, type Parts } from './transaction.ts';

const SIGHASH_ALL = 1;
const key = (name: string): Buffer => sha256(Buffer.from(`bursar sandbox ${name}`));
const publicKey = (secret: Buffer): Buffer => Buffer.from(secp256k1.getPublicKey(secret, true));
const witnessScript = (keyHash: Uint8Array): Buffer => Buffer.concat([Buffer.from([0, 20]), keyHash]);

const FAUCET_SECRET = key('faucet');
const FAUCET_PUBLIC = publicKey(FAUCET_SECRET);
/** P2WPKH of the faucet. */
export const FAUCET_SCRIPT = witnessScript(hash160(FAUCET_PUBLIC));
/** P2WPKH of the miners. */
export const MINER_SCRIPT = witnessScript(hash160(publicKey(key('miner'))));
/** Hash of the key of the n-th place of the outside world. */
export const outsideKeyHash = (currency: string, index: number): Buffer =>
  hash160(publicKey(key(`outside ${currency} ${index}`)));

/** What a P2WPKH input's signature signs (BIP143, SIGHASH_ALL). */
export function witnessDigest(parts: Parts, index: number, spent: { readonly keyHash: Buffer; readonly minor: bigint }): Buffer {
  const input = parts.inputs[index] as Input;
  const scriptCode = Buffer.concat([Buffer.from('76a914', 'hex'), spent.keyHash, Buffer.from('88ac', 'hex')]);
  return hash256(
    Buffer.concat([
      i32(parts.version),
      hash256(Buffer.concat(parts.inputs.map(outpointBytes))),
      hash256(Buffer.concat(parts.inputs.map((each) => u32(each.sequence)))),
      outpointBytes(input),
      withLength(scriptCode),
      u64(spent.minor),
      u32(input.sequence),
      hash256(Buffer.concat(parts.outputs.map(outputBytes))),
      u32(parts.lockTime),
      u32(SIGHASH_ALL),
    ]),
  );
}

/** The parts with every input signed by the faucet's key; `spentMinor` are what the inputs hold, in their order. */
export function signedByFaucet(parts: Parts, spentMinor: readonly bigint[]): Parts {
  const keyHash = FAUCET_SCRIPT.subarray(2);
  const inputs = parts.inputs.map((input, index) => {
    const digest = witnessDigest(parts, index, { keyHash, minor: spentMinor[index] as bigint });
    const signature = secp256k1.sign(digest, FAUCET_SECRET, { prehash: false, lowS: true, format: 'der' });
    const der = Buffer.concat([signature, Buffer.from([SIGHASH_ALL])]);
    return { ...input, witness: [der, FAUCET_PUBLIC] };
  });
  return { ...parts, inputs };
}

/** Whether a P2WPKH witness is a valid signature of SIGHASH_ALL for the key hash. */
export function witnessIsValid(
  parts: Parts,
  index: number,
  spent: { readonly keyHash: Buffer; readonly minor: bigint },
): boolean {
  const [der, publicBytes, ...rest] = (parts.inputs[index] as Input).witness;
  if (der === undefined || publicBytes === undefined || rest.length > 0 || publicBytes.length !== 33) return false;
  if (der[der.length - 1] !== SIGHASH_ALL || !hash160(publicBytes).equals(spent.keyHash)) return false;
  try {
    const options = { prehash: false, lowS: true, format: 'der' } as const;
    return secp256k1.verify(der.subarray(0, -1), witnessDigest(parts, index, spent), publicBytes, options);
  } catch {
    return false;
  }
}
