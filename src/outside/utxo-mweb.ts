// Moves over a Litecoin MWEB block: the extension that follows the transactions of a block whose last one is a HogEx. Nothing in it is
// ours to book (a peg-out to us is an output of the HogEx), but it must be understood to its last byte. Layout: Litecoin Core 0.21.2,
// src/libmw. Called by utxo-block.ts.
import { type Cursor, Malformed, readByte, readCount, skip, skipBytes } from './utxo-bytes.ts';

const HASH = 32;
const KEY = 33;
const SIGNATURE = 64;
const RANGE_PROOF = 675;

/** @throws Malformed at the first thing that is not as Litecoin Core writes it */
export function skipMwebBlock(cursor: Cursor): void {
  const present = readByte(cursor);
  if (present === 0) return;
  if (present !== 1) throw new Malformed(`MWEB marker ${present} at byte ${cursor.at - 1}`);
  skipHeader(cursor);
  skipEach(cursor, skipInput);
  skipEach(cursor, skipOutput);
  skipEach(cursor, skipKernel);
}

function skipEach(cursor: Cursor, one: (cursor: Cursor) => void): void {
  const count = readCount(cursor);
  for (let i = 0; i < count; i++) one(cursor);
}

function skipHeader(cursor: Cursor): void {
  skipVarInt(cursor); // height
  skip(cursor, 5 * HASH); // roots of outputs, kernels and leaf set, kernel and stealth offset
  skipVarInt(cursor); // outputs and
  skipVarInt(cursor); // kernels so far
}

function skipInput(cursor: Cursor): void {
  const features = readFeatures(cursor, 0x03);
  skip(cursor, HASH + KEY + KEY); // output id, commitment, output key
  if (features & 0x01) skip(cursor, KEY); // input key
  if (features & 0x02) skipBytes(cursor);
  skip(cursor, SIGNATURE);
}

function skipOutput(cursor: Cursor): void {
  skip(cursor, 3 * KEY); // commitment, sender, receiver
  const features = readFeatures(cursor, 0x03);
  if (features & 0x01) skip(cursor, KEY + 1 + 8 + 16); // key exchange, view tag, masked value and nonce
  if (features & 0x02) skipBytes(cursor);
  skip(cursor, RANGE_PROOF + SIGNATURE);
}

function skipKernel(cursor: Cursor): void {
  const features = readFeatures(cursor, 0x3f);
  if (features & 0x01) skipVarInt(cursor); // fee
  if (features & 0x02) skipVarInt(cursor); // peg-in
  if (features & 0x04) skipEach(cursor, skipPegOut);
  if (features & 0x08) skipVarInt(cursor); // lock height
  if (features & 0x10) skip(cursor, KEY); // stealth excess
  if (features & 0x20) skipBytes(cursor);
  skip(cursor, KEY + SIGNATURE);
}

function skipPegOut(cursor: Cursor): void {
  skipVarInt(cursor); // amount
  skipBytes(cursor); // script
}

function readFeatures(cursor: Cursor, known: number): number {
  const features = readByte(cursor);
  if (features & ~known) throw new Malformed(`MWEB feature bits ${features} at byte ${cursor.at - 1}`);
  return features;
}

/** Litecoin Core's own VARINT: base 128, the highest bit says that more follows. */
function skipVarInt(cursor: Cursor): void {
  for (let length = 1; length <= 10; length++) if (readByte(cursor) < 0x80) return;
  throw new Malformed(`a number of more than ten bytes at byte ${cursor.at}`);
}
