// A transaction of the simulated chains: its parts, its bytes (BIP144) and its ids.
import {
  type Cursor,
  compactSize,
  hash256,
  i32,
  shown,
  take,
  takeBytes,
  takeCompactSize,
  takeI32,
  takeU32,
  takeU64,
  u32,
  u64,
  wire,
  withLength,
} from './bytes.ts';

export type Input = {
  /** Display form. */
  readonly txid: string;
  readonly vout: number;
  readonly scriptSig: Buffer;
  readonly sequence: number;
  readonly witness: readonly Buffer[];
};
export type Output = { readonly minor: bigint; readonly script: Buffer };
export type Parts = {
  readonly version: number;
  readonly inputs: readonly Input[];
  readonly outputs: readonly Output[];
  readonly lockTime: number;
};
/** A transaction with its bytes and ids. */
export type Transaction = Parts & {
  readonly txid: string;
  /** Hash with the witness (BIP141); equal to txid without one. */
  readonly wtxid: string;
  /** The bytes, with the witness if it has one. */
  readonly raw: Buffer;
  readonly strippedSize: number;
  readonly weight: number;
  readonly vsize: number;
  readonly coinbase: boolean;
};

const NULL_TXID = '00'.repeat(32);
const SEGWIT_MARK = Buffer.from([0, 1]);
export const RBF_SEQUENCE = 0xfffffffd;
export const FINAL_SEQUENCE = 0xffffffff;

/** The key of an output in maps: `txid:vout`. */
export const outpointKey = (input: { readonly txid: string; readonly vout: number }): string => `${input.txid}:${input.vout}`;

/** An outpoint as inputs have it: 32 bytes of txid in wire order, four bytes of index. */
export const outpointBytes = (input: { readonly txid: string; readonly vout: number }): Buffer =>
  Buffer.concat([wire(input.txid), u32(input.vout)]);
/** An output as transactions have it: eight bytes of amount, the script behind its length. */
export const outputBytes = (output: Output): Buffer => Buffer.concat([u64(output.minor), withLength(output.script)]);

const hasWitness = (parts: Parts): boolean => parts.inputs.some((input) => input.witness.length > 0);

/** The bytes of a transaction; its txid is the hash of those without the witness. */
export function transactionBytes(parts: Parts, withWitness: boolean): Buffer {
  const segwit = withWitness && hasWitness(parts);
  return Buffer.concat([
    i32(parts.version),
    ...(segwit ? [SEGWIT_MARK] : []),
    compactSize(parts.inputs.length),
    ...parts.inputs.map((input) => Buffer.concat([outpointBytes(input), withLength(input.scriptSig), u32(input.sequence)])),
    compactSize(parts.outputs.length),
    ...parts.outputs.map(outputBytes),
    ...(segwit
      ? parts.inputs.map((input) => Buffer.concat([compactSize(input.witness.length), ...input.witness.map(withLength)]))
      : []),
    u32(parts.lockTime),
  ]);
}

/** Adds bytes, ids and sizes to the parts of a transaction. */
export function sealed(parts: Parts): Transaction {
  const stripped = transactionBytes(parts, false);
  const raw = hasWitness(parts) ? transactionBytes(parts, true) : stripped;
  const weight = stripped.length * 3 + raw.length;
  return {
    version: parts.version,
    inputs: parts.inputs,
    outputs: parts.outputs,
    lockTime: parts.lockTime,
    txid: shown(hash256(stripped)),
    wtxid: shown(hash256(raw)),
    raw,
    strippedSize: stripped.length,
    weight,
    vsize: Math.ceil(weight / 4),
    coinbase: parts.inputs.length === 1 && parts.inputs[0]?.txid === NULL_TXID,
  };
}

/** The one input of a coinbase. */
export const coinbaseInput = (scriptSig: Buffer, witness: readonly Buffer[]): Input => ({
  txid: NULL_TXID,
  vout: 0xffffffff,
  scriptSig,
  sequence: FINAL_SEQUENCE,
  witness,
});

function takeInput(cursor: Cursor): Input {
  return {
    txid: shown(take(cursor, 32)),
    vout: takeU32(cursor),
    scriptSig: takeBytes(cursor),
    sequence: takeU32(cursor),
    witness: [],
  };
}
const takeOutput = (cursor: Cursor): Output => ({ minor: takeU64(cursor), script: takeBytes(cursor) });
const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

/**
 * Reads one transaction in hex.
 * @returns null for anything but exactly one transaction with at least one input (a node answers -22 then)
 */
export function readTransaction(hex: string): Transaction | null {
  if (hex.length === 0 || hex.length % 2 === 1 || !/^[0-9a-fA-F]+$/.test(hex)) return null;
  const cursor: Cursor = { bytes: Buffer.from(hex, 'hex'), at: 0 };
  try {
    const version = takeI32(cursor);
    const segwit = cursor.bytes.readUInt16BE(cursor.at) === 0x0001;
    if (segwit) cursor.at += 2;
    const inputs = times(takeCompactSize(cursor), () => takeInput(cursor));
    const outputs = times(takeCompactSize(cursor), () => takeOutput(cursor));
    const witnesses = segwit ? inputs.map(() => times(takeCompactSize(cursor), () => takeBytes(cursor))) : inputs.map(() => []);
    const lockTime = takeU32(cursor);
    if (cursor.at !== cursor.bytes.length || inputs.length === 0) return null;
    if (segwit && witnesses.every((witness) => witness.length === 0)) return null;
    return sealed({ version, inputs: inputs.map((input, i) => ({ ...input, witness: witnesses[i] ?? [] })), outputs, lockTime });
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
