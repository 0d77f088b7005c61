// Skips the MWEB part of a Litecoin transaction in the mempool, whose peg-outs may be ours (in a block they are outputs of the HogEx, and
// nothing of the extension is read). Feature bits without a field of their own change nothing here, as in the node's own parser. Layout:
// Litecoin Core 0.21.2, src/libmw.
import { type Cursor, Malformed, readByte, readCount, skip, skipBytes } from './bytes.ts';

const HASH = 32;
const KEY = 33;
const SIGNATURE = 64;
const RANGE_PROOF = 675;

/** An output that a mempool transaction takes out of the extension; its script is bytes[start, end). */
export type PegOut = { readonly amountMinor: bigint; readonly start: number; readonly end: number };

/**
 * The MWEB part of a transaction, after its marker.
 * @throws Malformed at the first thing that is not as Litecoin Core writes it
 */
export function readMwebTransaction(cursor: Cursor): PegOut[] {
  const pegOuts: PegOut[] = [];
  skip(cursor, 2 * HASH); // kernel and stealth offset
  skipEach(cursor, skipInput);
  skipEach(cursor, skipOutput);
  skipEach(cursor, () => skipKernel(cursor, pegOuts));
  return pegOuts;
}

function skipEach(cursor: Cursor, one: (cursor: Cursor) => void): void {
  const count = readCount(cursor);
  for (let i = 0; i < count; i++) one(cursor);
}

function skipInput(cursor: Cursor): void {
  const features = readByte(cursor);
  skip(cursor, HASH + KEY + KEY); // output id, commitment, output key
  if (features & 0x01) skip(cursor, KEY); // input key
  if (features & 0x02) skipBytes(cursor);
  skip(cursor, SIGNATURE);
}

function skipOutput(cursor: Cursor): void {
  skip(cursor, 3 * KEY); // commitment, sender, receiver
  const features = readByte(cursor);
  if (features & 0x01) skip(cursor, KEY + 1 + 8 + 16); // key exchange, view tag, masked value and nonce
  if (features & 0x02) skipBytes(cursor);
  skip(cursor, RANGE_PROOF + SIGNATURE);
}

function skipKernel(cursor: Cursor, pegOuts: PegOut[]): void {
  const features = readByte(cursor);
  if (features & 0x01) skipVarInt(cursor); // fee
  if (features & 0x02) skipVarInt(cursor); // peg-in
  if (features & 0x04) skipEach(cursor, () => pegOuts.push(readPegOut(cursor)));
  if (features & 0x08) skipVarInt(cursor); // lock height
  if (features & 0x10) skip(cursor, KEY); // stealth excess
  if (features & 0x20) skipBytes(cursor);
  skip(cursor, KEY + SIGNATURE);
}

function readPegOut(cursor: Cursor): PegOut {
  const amountMinor = readVarInt(cursor);
  const length = readCount(cursor);
  const start = cursor.at;
  skip(cursor, length);
  return { amountMinor, start, end: cursor.at };
}

/** Litecoin Core's own VARINT: base 128, the highest bit means that more follows. */
function skipVarInt(cursor: Cursor): void {
  readVarInt(cursor);
}
/** Each byte but the last adds one to its value, so that no number has two forms. */
function readVarInt(cursor: Cursor): bigint {
  let value = 0n;
  for (let length = 1; length <= 10; length++) {
    const byte = readByte(cursor);
    value = (value << 7n) | BigInt(byte & 0x7f);
    if (byte < 0x80) return value;
    value += 1n;
  }
  throw new Malformed(`a number of more than ten bytes at byte ${cursor.at}`);
}
