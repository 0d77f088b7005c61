// The body of a node's answer while it arrives: bounded in bytes and in time, and one long hex string decoded on the way, so that a block
// is never held as text.

/** The body is larger than the limit; `bytes` is its size as far as it is known. */
export class TooLarge extends Error {
  readonly bytes: number;
  constructor(bytes: number, most: number) {
    super(`an answer is larger than ${most} bytes`);
    this.bytes = bytes;
  }
}
/** Whether trouble with a node is that its answer was too large. */
export const isTooLarge = (error: unknown): boolean => (error as Error | null)?.cause instanceof TooLarge;
/** The body arrives more slowly than any line we wait for. */
export class TooSlow extends Error {}

export type BodySink = {
  /** The largest number of bytes accepted. */
  readonly most: number;
  take(part: Buffer): void;
};

/** What a long answer takes besides: the largest block arrives through a slow line, a trickle does not. */
const SLOWEST_BYTES_PER_SECOND = 256 * 1024;

/**
 * Reads a body to its end.
 * @param length the size in its header, bytes; null when it has none
 * @param mostMs how long a short answer may take as a whole
 * @throws TooLarge (at once when the header gives the size), TooSlow
 */
export async function readBody(
  body: AsyncIterable<Buffer>,
  sink: BodySink,
  { length, mostMs }: { readonly length: number | null; readonly mostMs: number },
): Promise<void> {
  const beganMs = performance.now();
  let size = 0;
  for await (const part of body) {
    size += part.length;
    const known = Math.max(size, length ?? 0);
    if (known > sink.most) throw new TooLarge(known, sink.most);
    sink.take(part);
    const tookMs = performance.now() - beganMs;
    if (tookMs > mostMs + (size / SLOWEST_BYTES_PER_SECOND) * 1000)
      throw new TooSlow(`an answer does not end: ${size} bytes in ${Math.round(tookMs / 1000)} s`);
  }
}

export type AnswerSink = BodySink & { bytes(): Buffer; size(): number };

/** Keeps everything. */
export function bytesSink(most: number): AnswerSink {
  const parts: Buffer[] = [];
  let size = 0;
  return {
    most,
    take(part) {
      parts.push(part);
      size += part.length;
    },
    bytes: () => Buffer.concat(parts, size),
    size: () => size,
  };
}

const RESULT = /^\{[^"]{0,16}(?:"(?:jsonrpc|id|error)":[^,"]{0,16}(?:"[^"]{0,16}")?,\s*){0,3}"result":\s*"/;
const QUOTE = 0x22;
const LONGEST_HEAD = 128;

/**
 * Decodes the answer `{"result":"<hex>",…}`. `decoded` is null for any other answer; `bytes` is the answer without the decoded part, to be
 * read as JSON.
 */
export function hexSink(most: number): BodySink & { bytes(): Buffer; decoded(): Buffer | null } {
  const around: Buffer[] = [];
  let phase: 'head' | 'hex' | 'other' = 'head';
  let target = Buffer.alloc(1 << 16);
  let used = 0;
  let half = '';
  let isHex = true;

  function decode(part: Buffer): void {
    const text = half + part.toString('latin1');
    const whole = text.length - (text.length % 2);
    half = text.slice(whole);
    const needed = used + whole / 2;
    if (needed > target.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, Math.min(target.length * 2, most / 2)));
      target.copy(larger, 0, 0, used);
      target = larger;
    }
    const written = target.write(text.slice(0, whole), used, 'hex');
    isHex &&= written * 2 === whole;
    used += written;
  }
  function inHex(part: Buffer): void {
    const end = part.indexOf(QUOTE);
    decode(end < 0 ? part : part.subarray(0, end));
    if (end < 0) return;
    phase = 'other';
    around.push(part.subarray(end));
  }
  function inHead(part: Buffer): void {
    const head = Buffer.concat([...around.splice(0), part]);
    const start = RESULT.exec(head.toString('latin1', 0, LONGEST_HEAD))?.[0].length;
    if (start === undefined) {
      if (head.length > LONGEST_HEAD) phase = 'other';
      around.push(head);
      return;
    }
    phase = 'hex';
    around.push(head.subarray(0, start));
    inHex(head.subarray(start));
  }
  return {
    most,
    take(part) {
      if (phase === 'head') inHead(part);
      else if (phase === 'hex') inHex(part);
      else around.push(part);
    },
    bytes: () => Buffer.concat(around),
    decoded: () => (used > 0 && isHex && half === '' ? target.subarray(0, used) : null),
  };
}
