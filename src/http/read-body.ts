// From the socket to one checked JSON object: size, media type, UTF-8, JSON, depth and keys, in this order (behaviour §1).
import { isAscii, isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { Refusal } from '../core/refusal.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export const MAX_BYTES = 65_536;
/** How much is read and discarded after a refusal, so that the client gets to read the answer; after that the connection is cut. */
const MAX_DISCARDED = 32 * 1024 * 1024;
const MAX_DEPTH = 5;
const JSON_TYPE = /^application\/json[ \t]*(;|$)/i;
const CHARSET = /;[ \t]*charset[ \t]*=[ \t]*"?([^";, \t]*)/i;

/**
 * The whole body, or the refusal `payload_too_large`. Nothing comes when the client goes away first. A body in one chunk stays as it is;
 * chunks of other bodies are copied together as they come, because a client may make them as small as a byte, and each would cost more than
 * a hundred bytes and keep what was read with it.
 */
export function readBytes(raw: IncomingMessage): Promise<Buffer | Refusal> {
  let bytes: Buffer = EMPTY;
  let length = 0;
  let refused = false;
  return new Promise((done) => {
    function refuse(): void {
      refused = true;
      bytes = EMPTY;
      done(new Refusal('payload_too_large'));
    }
    function keep(chunk: Buffer): void {
      const before = length - chunk.length;
      if (before === 0) {
        bytes = chunk;
        return;
      }
      if (length > bytes.length) bytes = grown(bytes, before, length);
      chunk.copy(bytes, before);
    }
    raw.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (refused) {
        if (length > MAX_DISCARDED) raw.destroy();
      } else if (length > MAX_BYTES) refuse();
      else keep(chunk);
    });
    raw.on('end', () => {
      if (!refused) done(bytes.length === length ? bytes : bytes.subarray(0, length));
    });
    raw.on('error', () => undefined); // the client went away: there is nobody to answer
    if (Number(raw.headers['content-length']) > MAX_BYTES) refuse();
  });
}
const EMPTY = Buffer.alloc(0);
const LEAST_GROWN = 1_024;

/** A copy of the first bytes with space for `needed`, at least twice as large as before: a body is copied a few times at most. */
function grown(bytes: Buffer, used: number, needed: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(Math.min(MAX_BYTES, Math.max(LEAST_GROWN, 2 * bytes.length, needed)));
  bytes.copy(copy, 0, 0, used);
  return copy;
}

/** What was read as one JSON object. Refused: what {@link readBytes} refused, any other media type, coding or form. */
export function parseBody(raw: IncomingMessage, read: Buffer | Refusal): JsonObject {
  if (read instanceof Refusal) throw read;
  checkMediaType(raw);
  return parseObject(read);
}

/** Refuses every media type but JSON in UTF-8, and every content coding. */
function checkMediaType(raw: IncomingMessage): void {
  const type = raw.headers['content-type'];
  if (type !== 'application/json' && (type === undefined || !isJson(type))) throw new Refusal('unsupported_media_type');
  const coding = raw.headers['content-encoding'];
  if (coding !== undefined && coding.toLowerCase() !== 'identity') {
    throw new Refusal('unsupported_media_type', { message: 'The body must be sent without a Content-Encoding.' });
  }
}

/** JSON with any parameters; a charset may only be the one that JSON has anyway (RFC 8259 §8.1). */
function isJson(type: string): boolean {
  return JSON_TYPE.test(type) && (CHARSET.exec(type)?.[1] ?? 'utf-8').toLowerCase() === 'utf-8';
}

/** One JSON object (RFC 8259) in strict UTF-8, at most 5 levels deep; of duplicate keys the last counts. */
function parseObject(bytes: Buffer): JsonObject {
  const value = parse(bytes);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Refusal('invalid_json');
  checkObject(value, 1);
  return value as JsonObject;
}

function parse(bytes: Buffer): unknown {
  let text: string;
  if (isAscii(bytes)) text = bytes.toString('latin1');
  else if (isUtf8(bytes)) text = bytes.toString('utf8');
  else throw new Refusal('invalid_json', { message: 'The body is not valid UTF-8.' });
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal('invalid_json');
  }
}

function checkObject(value: object, depth: number): void {
  if (depth > MAX_DEPTH) throw new Refusal('invalid_json', { message: 'The body may be nested at most 5 levels deep.' });
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object' && item !== null) checkObject(item, depth + 1);
    return;
  }
  for (const key in value) {
    if (key === '__proto__' || key === 'constructor' || key === 'prototype') {
      throw new Refusal('invalid_request', { message: `${key} cannot be the name of a field.`, param: key });
    }
    const item = (value as Record<string, unknown>)[key];
    if (typeof item === 'object' && item !== null) checkObject(item, depth + 1);
  }
}
