// Builds and signs a transaction: version 2, lock time 0, every input replaceable (BIP125), SIGHASH_ALL, deterministic signatures (RFC 6979)
// with low S and low R. P2WPKH and P2PKH by @scure/btc-signer; Bitcoin Cash (FORKID) by @bitauth/libauth's serialisation.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import type { HDKey } from '@scure/bip32';
import { Transaction } from '@scure/btc-signer';
import { sha256, signECDSA } from '@scure/btc-signer/utils.js';
import { type UtxoCode, utxoRow } from '../core/currency.ts';
import { type EvmCall, signedBytes, unsignedBytes } from '../core/evm/transaction.ts';

export type TransactionParts = {
  readonly inputs: readonly {
    readonly txid: string;
    readonly vout: number;
    readonly amount: bigint;
    readonly script: Uint8Array;
  }[];
  readonly outputs: readonly { readonly script: Uint8Array; readonly amount: bigint }[];
};
export type Signed = { readonly raw: string; readonly txid: string; readonly vbytes: number };

const REPLACEABLE = 0xfffffffd;
const VERSION = 2;
const SIGHASH_ALL = 0x01;
const SIGHASH_FORKID = 0x40;

export type InputSigner = {
  /** The compressed key of an input. */
  publicKey(input: number): Uint8Array;
  /** Runs the work with an input's private key, which is wiped afterwards. */
  withPrivateKey<T>(input: number, work: (privateKey: Uint8Array) => T): T;
};

/** Loads what signing this currency needs; then signing itself waits for nothing, so that keys are in memory for as short as possible. */
export async function transactionSigner(currency: UtxoCode): Promise<(parts: TransactionParts, keys: InputSigner) => Signed> {
  switch (utxoRow(currency).utxo.addressKind) {
    case 'p2wpkh':
    case 'p2pkh':
      return plainSigner;
    case 'cashaddr-p2pkh':
      return cashSigner();
  }
}

function plainSigner(parts: TransactionParts, keys: InputSigner): Signed {
  const transaction = new Transaction({
    version: VERSION,
    lockTime: 0,
    lowR: true,
    allowLegacyWitnessUtxo: true,
    allowUnknownOutputs: true,
  });
  for (const { txid, vout, amount, script } of parts.inputs)
    transaction.addInput({ txid, index: vout, sequence: REPLACEABLE, witnessUtxo: { amount, script } });
  for (const { script, amount } of parts.outputs) transaction.addOutput({ script, amount });
  for (const index of parts.inputs.keys()) {
    keys.withPrivateKey(index, (privateKey) => transaction.signIdx(privateKey, index, [SIGHASH_ALL]));
  }
  transaction.finalize();
  return { raw: transaction.hex, txid: transaction.id, vbytes: transaction.vsize };
}

async function cashSigner(): Promise<(parts: TransactionParts, keys: InputSigner) => Signed> {
  const { encodeTransactionBCH, generateSigningSerializationBCH, hashTransaction, hexToBin } = await import('@bitauth/libauth');
  const signingSerializationType = Uint8Array.of(SIGHASH_ALL | SIGHASH_FORKID);
  return (parts, keys) => {
    const sourceOutputs = parts.inputs.map(({ script, amount }) => ({ lockingBytecode: script, valueSatoshis: amount }));
    const unsigned = {
      version: VERSION,
      locktime: 0,
      inputs: parts.inputs.map(({ txid, vout }) => ({
        outpointIndex: vout,
        outpointTransactionHash: hexToBin(txid),
        sequenceNumber: REPLACEABLE,
        unlockingBytecode: new Uint8Array(),
      })),
      outputs: parts.outputs.map(({ script, amount }) => ({ lockingBytecode: script, valueSatoshis: amount })),
    };
    const inputs = unsigned.inputs.map((input, inputIndex) => {
      const coveredBytecode = sourceOutputs[inputIndex]?.lockingBytecode as Uint8Array;
      const context = { inputIndex, sourceOutputs, transaction: unsigned };
      const serialization = generateSigningSerializationBCH(context, { coveredBytecode, signingSerializationType });
      const digest = sha256(sha256(serialization));
      const signature = keys.withPrivateKey(inputIndex, (privateKey) => signECDSA(digest, privateKey, true));
      const publicKey = keys.publicKey(inputIndex);
      const push = [signature.length + 1, ...signature, ...signingSerializationType, publicKey.length, ...publicKey];
      return { ...input, unlockingBytecode: Uint8Array.from(push) };
    });
    const raw = encodeTransactionBCH({ ...unsigned, inputs });
    return { raw: Buffer.from(raw).toString('hex'), txid: hashTransaction(raw), vbytes: raw.length };
  };
}

const number = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`);

/** A transaction of EIP-1559, with a deterministic signature (RFC 6979, low s) over Keccak-256 of its bytes. */
export function signEvm(call: EvmCall, keys: Pick<InputSigner, 'withPrivateKey'>): Signed {
  const digest = keccak_256(unsignedBytes(call));
  const signature = keys.withPrivateKey(0, (privateKey) =>
    secp256k1.sign(digest, privateKey, { prehash: false, lowS: true, format: 'recovered' }),
  );
  const raw = signedBytes(call, {
    yParity: signature[0] as number,
    r: number(signature.subarray(1, 33)),
    s: number(signature.subarray(33, 65)),
  });
  return { raw: raw.toString('hex'), txid: `0x${Buffer.from(keccak_256(raw)).toString('hex')}`, vbytes: call.gas };
}

/** Derives each input's key when it is needed, and wipes it at once. */
export function inputSigner(
  account: HDKey,
  request: { readonly inputs: readonly { readonly chain: 0 | 1; readonly index: number }[] },
): InputSigner {
  function withKey<T>(at: number, work: (key: HDKey) => T): T {
    const { chain, index } = request.inputs[at] as (typeof request.inputs)[number];
    const parent = account.deriveChild(chain);
    const key = parent.deriveChild(index);
    parent.wipePrivateData();
    try {
      return work(key);
    } finally {
      key.wipePrivateData();
    }
  }
  return {
    publicKey: (at) => withKey(at, (key) => key.publicKey as Uint8Array),
    withPrivateKey: (at, work) =>
      withKey(at, (key) => {
        const privateKey = key.privateKey as Uint8Array;
        try {
          return work(privateKey);
        } finally {
          privateKey.fill(0);
        }
      }),
  };
}
