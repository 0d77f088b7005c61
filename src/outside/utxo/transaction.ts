// Reads one transaction of Bitcoin's family by hand, in one pass over its bytes: where its parts are, what it touches, its txid. It refuses
// everything unknown (Malformed); it does not judge what the txid proves.

import { isProtected, type UtxoParameters } from '../../core/currencies/utxo.ts';
import type { Outpoint, OutputFacts, TokenOutput, TransactionFacts, WatchList } from '../../core/ports.ts';
import { type Cursor, displayHash, doubleHash, Malformed, readByte, readCount, skip, skipBytes } from './bytes.ts';
import { type PegOut, readMwebTransaction } from './mweb.ts';
import { readToken, TOKEN_PREFIX } from './node/cash-token.ts';

export type Features = UtxoParameters['blockFeatures'];
export type Watched = Pick<WatchList, 'hasScript' | 'hasOutpoint'>;

/** `parent`: in a block of another chain, whose rules are not ours to judge: only where the transaction ends matters. */
type Place = 'mempool' | 'block' | 'parent';

/** Where the parts of the transaction that was just read are. */
export type Scan = {
  readonly cursor: Cursor;
  readonly features: Features;
  readonly watch: Watched;
  readonly place: Place;
  start: number;
  /** From the count of inputs to the end of the outputs. */
  bodyStart: number;
  bodyEnd: number;
  end: number;
  flags: number;
  /** DIP2: above 0 only where the version says that there is a type. */
  special: number;
  coinbase: boolean;
  hit: boolean;
  hogEx: boolean;
  /** Of a transaction in the mempool. */
  pegOuts: readonly PegOut[];
};

const NO_PEG_OUTS: readonly PegOut[] = [];
const WITNESS = 0x01;
const MWEB = 0x08;
/** From this version on the upper half of a Dash transaction's version is its type. */
const SPECIAL_VERSION = 3;

/**
 * One transaction as the mempool has it.
 * @param txid the requested one; null when it was pushed
 * @returns its facts, or null when it touches nothing watched
 * @throws Malformed for anything that is wrong, unknown or left over
 */
export function readTransactionBytes(
  bytes: Buffer,
  txid: string | null,
  features: Features,
  watch: Watched,
): TransactionFacts | null {
  const scan = newScan({ bytes, at: 0 }, features, watch, 'mempool');
  scanTransaction(scan);
  if (scan.cursor.at !== bytes.length) throw new Malformed(`${bytes.length - scan.cursor.at} bytes are left over`);
  // an MWEB-only transaction has neither inputs nor outputs here, and its id is its kernel's: a pushed one has no txid for us
  if ((scan.flags & MWEB) !== 0 && scan.bodyEnd - scan.bodyStart === 2)
    return scan.hit && txid !== null ? factsOf(scan, txid) : null;
  hashTransaction(scan, txidBytes, 0);
  const found = displayHash(txidBytes, 0);
  if (txid !== null && found !== txid) throw new Malformed(`the transaction hashes to ${found}`);
  return scan.hit ? factsOf(scan, found) : null;
}

/** A scan from the cursor on. */
export function newScan(cursor: Cursor, features: Features, watch: Watched, place: Place = 'block'): Scan {
  return {
    cursor,
    features,
    watch,
    place,
    start: 0,
    bodyStart: 0,
    bodyEnd: 0,
    end: 0,
    flags: 0,
    special: 0,
    coinbase: false,
    hit: false,
    hogEx: false,
    pegOuts: NO_PEG_OUTS,
  };
}

/**
 * Moves the cursor over one transaction (BIP 144; LTC's MWEB flag; DASH's special transactions) and notes where its parts are and whether
 * it touches a watched script or outpoint. Throws where the bytes are no transaction.
 */
export function scanTransaction(scan: Scan): void {
  const { cursor, features } = scan;
  const { bytes } = cursor;
  scan.start = cursor.at;
  skip(cursor, 4);
  const typed = features.specialTransactions && bytes.readInt16LE(scan.start) >= SPECIAL_VERSION;
  scan.special = typed ? bytes.readUInt16LE(scan.start + 2) : 0;
  scan.flags = 0;
  scan.hit = false;
  scan.hogEx = false;
  scan.pegOuts = NO_PEG_OUTS;
  if (features.segwit && bytes[cursor.at] === 0) readFlags(scan);
  scan.bodyStart = cursor.at;
  const inputs = scanInputs(scan);
  scanOutputs(scan);
  scan.bodyEnd = cursor.at;
  if (scan.flags & WITNESS) skipWitnesses(cursor, inputs);
  if (scan.flags & MWEB) skipMwebPart(scan);
  skip(cursor, 4);
  // only the quorums need the payload; every type has the same envelope, and the txid covers it
  if (scan.special > 0) skipBytes(cursor);
  scan.end = cursor.at;
}

function readFlags(scan: Scan): void {
  const { cursor, features } = scan;
  skip(cursor, 1);
  scan.flags = readByte(cursor);
  const known = WITNESS | (features.mweb ? MWEB : 0);
  if (scan.flags === 0 || scan.flags & ~known) throw new Malformed(`transaction flags ${scan.flags} at byte ${cursor.at - 1}`);
}

function scanInputs(scan: Scan): number {
  const { cursor, watch } = scan;
  const { bytes } = cursor;
  const count = readCount(cursor);
  scan.coinbase = false;
  for (let i = 0; i < count; i++) {
    const at = cursor.at;
    skip(cursor, 36);
    if (bytes.readUInt32LE(at + 32) === 0xffffffff && bytes.compare(NO_HASH, 0, 32, at, at + 32) === 0) {
      if (count > 1 && scan.place !== 'parent') throw new Malformed(`an input that spends nothing at byte ${at}`);
      scan.coinbase = true;
    } else if (watch.hasOutpoint(bytes, at)) scan.hit = true;
    skipBytes(cursor);
    skip(cursor, 4);
  }
  return count;
}

function scanOutputs(scan: Scan): void {
  const { cursor, watch, features } = scan;
  const { bytes } = cursor;
  const count = readCount(cursor);
  for (let i = 0; i < count; i++) {
    skip(cursor, 8);
    const length = readCount(cursor);
    const script = cursor.at;
    skip(cursor, length);
    if (watch.hasScript(bytes, script, script + length)) scan.hit = true;
    else if (features.tokens && length > 0 && bytes[script] === TOKEN_PREFIX) {
      const token = readToken(bytes, script, script + length);
      if (token !== null && watch.hasScript(bytes, token.scriptStart, script + length)) scan.hit = true;
    }
  }
}

function skipWitnesses(cursor: Cursor, inputs: number): void {
  for (let i = 0; i < inputs; i++) {
    const items = readCount(cursor);
    for (let item = 0; item < items; item++) skipBytes(cursor);
  }
}

/** In a block only the HogEx carries the flag, with nothing after it; in the mempool the extension is between the outputs and the lock time. */
function skipMwebPart(scan: Scan): void {
  const { cursor } = scan;
  const present = readByte(cursor);
  if (present === 0) {
    scan.hogEx = true;
    return;
  }
  // its end is that of all bytes, which in a block are not its own
  if (present !== 1 || scan.place !== 'mempool')
    throw new Malformed(`MWEB marker ${present} in a transaction at byte ${cursor.at - 1}`);
  const end = cursor.bytes.length - 4;
  if (end < cursor.at) throw new Malformed('cut off within an MWEB transaction');
  scan.pegOuts = pegOutsOf({ bytes: cursor.bytes, at: cursor.at }, end);
  if (scan.pegOuts.some(({ start, end }) => scan.watch.hasScript(cursor.bytes, start, end))) scan.hit = true;
  // the txid proves everything outside of it
  cursor.at = end;
}

/** A form that is not known yet hides its peg-outs until they are in a block; that is no trouble of the node. */
function pegOutsOf(cursor: Cursor, end: number): readonly PegOut[] {
  try {
    const found = readMwebTransaction(cursor);
    return cursor.at === end ? found : NO_PEG_OUTS;
  } catch (error) {
    if (error instanceof Malformed) return NO_PEG_OUTS;
    throw error;
  }
}

/** The txid: double SHA-256 over everything but marker, flags, witnesses and MWEB. */
export function hashTransaction(scan: Scan, target: Buffer, offset: number): void {
  const { bytes } = scan.cursor;
  if (scan.flags === 0) {
    doubleHash(bytes, scan.start, scan.end, target, offset);
    return;
  }
  const body = scan.bodyEnd - scan.bodyStart;
  const plain = plainFor(body + 8);
  bytes.copy(plain, 0, scan.start, scan.start + 4);
  bytes.copy(plain, 4, scan.bodyStart, scan.bodyEnd);
  bytes.copy(plain, 4 + body, scan.end - 4, scan.end);
  doubleHash(plain, 0, body + 8, target, offset);
}

/** Second look at a transaction that touches something: only these are turned into objects. */
export function factsOf(scan: Scan, txid: string): TransactionFacts {
  const { watch, features } = scan;
  const { bytes } = scan.cursor;
  const cursor: Cursor = { bytes, at: scan.bodyStart };
  const inputs: Outpoint[] = [];
  const spends: Outpoint[] = [];
  for (let left = readCount(cursor); left > 0; left--) {
    const at = cursor.at;
    skip(cursor, 36);
    if (!scan.coinbase && !scan.hogEx) {
      const outpoint = { txid: displayHash(bytes, at), vout: bytes.readUInt32LE(at + 32) };
      inputs.push(outpoint);
      if (watch.hasOutpoint(bytes, at)) spends.push(outpoint);
    }
    skipBytes(cursor);
    skip(cursor, 4);
  }
  const outputs: OutputFacts[] = [];
  const unprotectedOutputs: OutputFacts[] = [];
  const pay = (output: OutputFacts): void => {
    // MoneyRange, the rule of every node of the family: an impossible value is no amount
    if (output.amountMinor < 0n) throw new Malformed('a negative amount');
    if (output.amountMinor > features.maxMoney) throw new Malformed('an amount above MAX_MONEY');
    (isProtected(features, output.script) ? outputs : unprotectedOutputs).push(output);
  };
  const leaves = scan.hogEx ? ({ pegOut: true } as const) : {};
  const tokenOutputs: TokenOutput[] = [];
  const count = readCount(cursor);
  for (let vout = 0; vout < count; vout++) {
    const amountMinor = bytes.readBigInt64LE(cursor.at);
    skip(cursor, 8);
    const length = readCount(cursor);
    const start = cursor.at;
    skip(cursor, length);
    if (watch.hasScript(bytes, start, start + length))
      pay({ vout, script: bytes.toString('hex', start, start + length), amountMinor, ...leaves });
    else if (features.tokens && length > 0 && bytes[start] === TOKEN_PREFIX) {
      const token = readToken(bytes, start, start + length);
      if (token === null || !watch.hasScript(bytes, token.scriptStart, start + length)) continue;
      const script = bytes.toString('hex', token.scriptStart, start + length);
      tokenOutputs.push({ vout, script, amountMinor, category: token.category, tokens: token.tokens, nft: token.nft });
    }
  }
  scan.pegOuts.forEach(({ amountMinor, start, end }, index) => {
    if (!watch.hasScript(bytes, start, end)) return;
    pay({ vout: count + index, script: bytes.toString('hex', start, end), amountMinor, pegOut: true });
  });
  return {
    txid,
    coinbase: scan.coinbase,
    inputs,
    outputs,
    spends,
    ...(tokenOutputs.length === 0 ? {} : { tokenOutputs }),
    ...(unprotectedOutputs.length === 0 ? {} : { unprotectedOutputs }),
  };
}

// buffers that are reused for every transaction: nothing here runs concurrently
const NO_HASH = Buffer.alloc(32);
const txidBytes = Buffer.alloc(32);
let plainBuffer = Buffer.alloc(64 * 1024);

function plainFor(length: number): Buffer {
  if (plainBuffer.length < length) plainBuffer = Buffer.alloc(length * 2);
  return plainBuffer;
}
