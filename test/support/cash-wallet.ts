// Keys and signed transactions of Bitcoin Cash for tests, by libauth: bchd has no wallet.
import {
  cashAddressToLockingBytecode,
  deriveHdPath,
  deriveHdPrivateNodeFromSeed,
  deriveSeedFromBip39Mnemonic,
  encodeCashAddress,
  encodeTransaction,
  generateTransaction,
  hash160,
  hexToBin,
  importWalletTemplate,
  secp256k1,
  walletTemplateP2pkhNonHd,
  walletTemplateToCompilerBCH,
} from '@bitauth/libauth';
import { hash256 } from './raw-bytes.ts';

export type CashKey = { readonly privateKey: Uint8Array; readonly address: string; readonly script: Buffer };
export type UnspentOutput = { readonly txid: string; readonly vout: number; readonly minor: bigint };

/** The n-th key of account m/44'/145'/0'/0 of the public test mnemonic. */
export function cashKey(index: number): CashKey {
  const root = deriveHdPrivateNodeFromSeed(deriveSeedFromBip39Mnemonic(`${'abandon '.repeat(11)}about`), {
    assumeValidity: true,
  });
  const { privateKey } = deriveHdPath(root, `m/44'/145'/0'/0/${index}`);
  const publicKey = secp256k1.derivePublicKeyCompressed(privateKey);
  if (typeof publicKey === 'string') throw new Error(publicKey);
  const { address } = encodeCashAddress({ prefix: 'bchreg', type: 'p2pkh', payload: hash160(publicKey), throwErrors: true });
  const locking = cashAddressToLockingBytecode(address);
  if (typeof locking === 'string') throw new Error(locking);
  return { privateKey, address, script: Buffer.from(locking.bytecode) };
}

const template = importWalletTemplate(walletTemplateP2pkhNonHd);
if (typeof template === 'string') throw new Error(template);
const compiler = walletTemplateToCompilerBCH(template);

/** A transaction that spends unspent of one key (Schnorr, SIGHASH_ALL with FORKID) to these outputs. */
export function signedPayment(
  key: CashKey,
  unspent: readonly UnspentOutput[],
  outputs: readonly { readonly script: Buffer; readonly minor: bigint }[],
): { hex: string; txid: string } {
  const made = generateTransaction({
    version: 2,
    locktime: 0,
    inputs: unspent.map((output) => ({
      outpointIndex: output.vout,
      outpointTransactionHash: hexToBin(output.txid),
      sequenceNumber: 0xffffffff,
      unlockingBytecode: {
        compiler,
        data: { keys: { privateKeys: { key: key.privateKey } } },
        script: 'unlock',
        valueSatoshis: output.minor,
      },
    })),
    outputs: outputs.map((output) => ({ lockingBytecode: Uint8Array.from(output.script), valueSatoshis: output.minor })),
  });
  if (!made.success) throw new Error(JSON.stringify(made.errors));
  const bytes = Buffer.from(encodeTransaction(made.transaction));
  return { hex: bytes.toString('hex'), txid: hash256(bytes).reverse().toString('hex') };
}
