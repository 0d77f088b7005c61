// The keys of the simulated chains: one fixed key that holds the faucet's outputs, one for the miners' rewards. They are no secrets: what
// they can spend exists in this process only. Signs the faucet's inputs in the currency's own way.
import { createRequire } from 'node:module';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { hash160, sha256, withLength } from './bytes.ts';
import type { Dialect } from './dialects.ts';
import { keyHashScript, witnessScript } from './scripts.ts';
import { digestOf, sighashType } from './sighash.ts';
import type { Parts } from './transaction.ts';

const key = (name: string): Buffer => sha256(Buffer.from(`bursar sandbox ${name}`));
const publicKey = (secret: Buffer): Buffer => Buffer.from(secp256k1.getPublicKey(secret, true));

type KeyScripts = { readonly witness: Buffer; readonly keyHash: Buffer };
const scriptsOf = (hash: Buffer): KeyScripts => ({ witness: witnessScript(0, hash), keyHash: keyHashScript(hash) });

const FAUCET_SECRET = key('faucet');
const FAUCET_PUBLIC = publicKey(FAUCET_SECRET);
const FAUCET_KEY_HASH = hash160(FAUCET_PUBLIC);
const FAUCET = scriptsOf(FAUCET_KEY_HASH);
const MINER = scriptsOf(hash160(publicKey(key('miner'))));

/** The faucet's output script: P2WPKH, or P2PKH on a chain without segwit. */
export const faucetScript = (dialect: Dialect): Buffer => (dialect.segwit ? FAUCET.witness : FAUCET.keyHash);
/** The miners' output script. */
export const minerScript = (dialect: Dialect): Buffer => (dialect.segwit ? MINER.witness : MINER.keyHash);
/** Hash of the key of the n-th address of the outside world. */
export const outsideKeyHash = (currency: string, index: number): Buffer =>
  hash160(publicKey(key(`outside ${currency} ${index}`)));

/** Signs a digest with ECDSA and RFC 6979's nonce; the result is DER with a low S. All signers return the same bytes. */
export type DigestSigner = { sign(digest: Uint8Array, secret: Uint8Array): Uint8Array };
type NativeSecp256k1 = {
  ecdsaSign(digest: Uint8Array, secret: Uint8Array): { readonly signature: Uint8Array };
  signatureExport(signature: Uint8Array): Uint8Array;
};

/** libsecp256k1 from the prebuilt addon: a fifteenth of the time; null where there is none for this platform. */
export function nativeSigner(): DigestSigner | null {
  try {
    const addon = createRequire(import.meta.url)('secp256k1/bindings.js') as NativeSecp256k1;
    return { sign: (digest, secret) => addon.signatureExport(addon.ecdsaSign(digest, secret).signature) };
  } catch {
    return null;
  }
}
export const nobleSigner: DigestSigner = {
  sign: (digest, secret) => secp256k1.sign(digest, secret, { prehash: false, lowS: true, format: 'der' }),
};
let loaded: DigestSigner | undefined;
function signer(): DigestSigner {
  loaded ??= nativeSigner() ?? nobleSigner;
  return loaded;
}

/** The parts with every input signed by the faucet's key; `spentMinor` are the amounts of the inputs, in their order. */
export function signedByFaucet(dialect: Dialect, parts: Parts, spentMinor: readonly bigint[]): Parts {
  const inputs = parts.inputs.map((input, index) => {
    const spent = { keyHash: FAUCET_KEY_HASH, minor: spentMinor[index] as bigint };
    const digest = digestOf(dialect, parts, index, spent, dialect.segwit);
    const signature = Buffer.concat([signer().sign(digest, FAUCET_SECRET), Buffer.from([sighashType(dialect)])]);
    return dialect.segwit
      ? { ...input, witness: [signature, FAUCET_PUBLIC] }
      : { ...input, scriptSig: Buffer.concat([withLength(signature), withLength(FAUCET_PUBLIC)]) };
  });
  return { ...parts, inputs };
}
