// The modules of a QR code as a PNG of one bit a pixel, compressed by hand: such a picture has four kinds of data bytes, and after each
// line three that repeat it, so one fixed Huffman code takes a few microseconds where zlib takes twenty, at the same size.
import { crc32 } from 'node:zlib';
import type { Modules } from './modules.ts';

const PIXELS_PER_MODULE = 4;
const LARGEST_SIDE = 185;
const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const IEND = chunk('IEND', Buffer.alloc(0));
const ADLER_MODULUS = 65_521;
const FILTER_UP = 2;

/** Bits in DEFLATE's order: the first is the lowest. */
type Bits = { readonly value: number; readonly count: number };

// The code (RFC 1951 §3.2.2, canonical): lengths 2 for 00 and FF, 3 for 02, 0F and F0, 4 for the first repetition, 5 for the end and the second
const CODE = {
  black: { value: 0b00, count: 2 },
  filterUp: { value: 0b001, count: 3 },
  firstRepeat: { value: 0b0111, count: 4 },
  end: { value: 0b01111, count: 5 },
  secondRepeat: { value: 0b11111, count: 5 },
} as const satisfies Record<string, Bits>;
// two modules of four pixels are one byte, 0 is black: both black, the right one white, the left one white, both white
const BYTES = [0x00, 0x0f, 0xf0, 0xff] as const;
const BYTE_CODES = [0b00, 0b101, 0b011, 0b10] as const;
const BYTE_CODE_LENGTHS = [2, 3, 3, 2] as const;
// the same for two bytes, that is four modules, the first of them the highest bit of the index
const TWO_CODES = Uint8Array.from({ length: 16 }, (_, four) => {
  const [first, second] = [(four >> 2) as 0 | 1 | 2 | 3, (four & 3) as 0 | 1 | 2 | 3];
  return BYTE_CODES[first] | (BYTE_CODES[second] << BYTE_CODE_LENGTHS[first]);
});
const TWO_LENGTHS = Uint8Array.from(
  { length: 16 },
  (_, four) => (BYTE_CODE_LENGTHS[four >> 2] as number) + (BYTE_CODE_LENGTHS[four & 3] as number),
);

/** Everything that depends on the number of modules a side alone. */
type Shape = {
  readonly ihdr: Buffer;
  /** Bytes of a line without its filter byte. */
  readonly bytes: number;
  /** zlib's two bytes, the block's head and the code lengths; the bits that do not fill a byte are in `headRest`. */
  readonly head: Buffer;
  readonly headRest: Bits;
  /** The first line that repeats the one above, and the other two. */
  readonly repeats: readonly [Bits, Bits];
};
const shapes = new Map<number, Shape>();

/**
 * A greyscale PNG of bit depth 1 (W3C PNG 3rd edition) in one DEFLATE block with a code of its own (RFC 1950, 1951), four pixels a module.
 * @param modules a square of 20 to 185 a side
 */
export function qrPng(modules: Modules): Buffer {
  let shape = shapes.get(modules.side);
  if (shape === undefined) {
    shape = shapeOf(modules.side);
    shapes.set(modules.side, shape);
  }
  return Buffer.concat([SIGNATURE, shape.ihdr, chunk('IDAT', compress(modules, shape)), IEND]);
}

function compress({ side, black }: Modules, shape: Shape): Buffer {
  const { bytes, head, repeats } = shape;
  // three bits a data byte, and not more than seven bytes for what else a row of modules needs
  const out = Buffer.allocUnsafe(head.length + 16 + Math.ceil((side * bytes * 3) / 8) + side * 7);
  let at = head.copy(out);
  let { value: bits, count } = shape.headRest;
  let a = 1;
  let b = 0;
  for (let line = 0; line < side; line++) {
    // filter None is a zero byte too
    bits |= CODE.black.value << count;
    count += CODE.black.count;
    b += a;
    const end = (line + 1) * side;
    let module = line * side;
    for (; module + 3 < end; module += 4) {
      const left = 3 - 2 * (black[module] as number) - (black[module + 1] as number);
      const right = 3 - 2 * (black[module + 2] as number) - (black[module + 3] as number);
      const four = (left << 2) | right;
      bits |= (TWO_CODES[four] as number) << count;
      count += TWO_LENGTHS[four] as number;
      for (; count >= 8; count -= 8, bits >>>= 8) out[at++] = bits;
      a += BYTES[left] as number;
      b += a;
      a += BYTES[right] as number;
      b += a;
    }
    for (; module < end; module += 2) {
      const right = module + 1 < end ? (black[module + 1] as number) : 0;
      const kind = 3 - 2 * (black[module] as number) - right;
      bits |= (BYTE_CODES[kind] as number) << count;
      count += BYTE_CODE_LENGTHS[kind] as number;
      for (; count >= 8; count -= 8, bits >>>= 8) out[at++] = bits;
      a += BYTES[kind] as number;
      b += a;
    }
    for (const repeat of repeats) {
      bits |= repeat.value << count;
      count += repeat.count;
      for (; count >= 8; count -= 8, bits >>>= 8) out[at++] = bits;
    }
    for (let repeat = 1; repeat < PIXELS_PER_MODULE; repeat++) {
      a += FILTER_UP;
      b += a * (bytes + 1);
    }
    a %= ADLER_MODULUS;
    b %= ADLER_MODULUS;
  }
  bits |= CODE.end.value << count;
  for (count += CODE.end.count; count > 0; count -= 8, bits >>>= 8) out[at++] = bits;
  at = out.writeUInt32BE(((b << 16) | a) >>> 0, at);
  return out.subarray(0, at);
}

function shapeOf(side: number): Shape {
  if (side < 20 || side > LARGEST_SIDE)
    throw new RangeError(`a QR code of ${side} modules a side; accepted are 20 to ${LARGEST_SIDE}`);
  const pixels = side * PIXELS_PER_MODULE;
  const bytes = Math.ceil(pixels / 8);
  const header = Buffer.alloc(13);
  header.writeUInt32BE(pixels, 0);
  header.writeUInt32BE(pixels, 4);
  header[8] = 1; // bit depth; colour type 0, deflate, adaptive filters, no interlace
  // filter Up and zeros: the first zero as it is, the others repeat it; then twice the whole line
  const first = lookUp(LENGTHS, bytes - 1);
  const second = lookUp(LENGTHS, 2 * (bytes + 1));
  const distance = lookUp(DISTANCES, bytes + 1);
  const repeats = [
    joined(CODE.filterUp, CODE.black, CODE.firstRepeat, first.extra, { value: 0, count: 1 }),
    joined(CODE.secondRepeat, second.extra, { value: 1, count: 1 }, distance.extra),
  ] as const;
  return { ihdr: chunk('IHDR', header), bytes, repeats, ...headOf(257 + first.code, 257 + second.code, distance.code) };
}

/** RFC 1951 §3.2.5: the smallest value of each code; the extra bits are those that reach the next. */
const LENGTHS = [
  3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 259,
];
const DISTANCES = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129];

function lookUp(starts: readonly number[], value: number): { code: number; extra: Bits } {
  const code = starts.findLastIndex((start) => start <= value);
  const [start, next] = [starts[code] as number, starts[code + 1] as number];
  return { code, extra: { value: value - start, count: Math.log2(next - start) } };
}

function joined(...parts: readonly Bits[]): Bits {
  let value = 0;
  let count = 0;
  for (const part of parts) {
    value |= part.value << count;
    count += part.count;
  }
  return { value, count };
}

/** The codes of code lengths, three bits each, in the order in which §3.2.7 lists them; used are 0 to 5, 17 and 18. */
const LISTED = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1];
const LENGTH_CODES: ReadonlyMap<number, number> = new Map([0, 1, 2, 3, 4, 5, 17, 18].map((symbol, code) => [symbol, code]));

function headOf(firstRepeat: number, secondRepeat: number, distance: number): { head: Buffer; headRest: Bits } {
  const lengths = Array.from({ length: secondRepeat + 1 + distance + 1 }, () => 0);
  const used = [
    [0x00, 2],
    [0xff, 2],
    [FILTER_UP, 3],
    [0x0f, 3],
    [0xf0, 3],
    [256, 5],
    [firstRepeat, 4],
    [secondRepeat, 5],
  ];
  for (const [symbol, length] of used) lengths[symbol as number] = length as number;
  lengths[secondRepeat + 1] = 1;
  lengths[secondRepeat + 1 + distance] = 1;

  const all: number[] = [];
  const write = (value: number, count: number) => {
    for (let bit = 0; bit < count; bit++) all.push((value >> bit) & 1);
  };
  const writeCode = (symbol: number) => {
    const code = LENGTH_CODES.get(symbol) as number;
    for (const bit of [2, 1, 0]) all.push((code >> bit) & 1);
  };
  write(0x0178, 16); // zlib: window of 32 KiB, fastest
  write(0b101, 3); // the last block, with a code of its own
  write(secondRepeat + 1 - 257, 5);
  write(distance, 5);
  write(LISTED.length - 4, 4);
  for (const symbol of LISTED) write(LENGTH_CODES.has(symbol) ? 3 : 0, 3);
  for (let i = 0; i < lengths.length; ) {
    const zeros = Math.min(
      138,
      lengths.slice(i).findIndex((length) => length !== 0),
    );
    if (zeros < 3) {
      writeCode(lengths[i] as number);
      i += 1;
      continue;
    }
    writeCode(zeros < 11 ? 17 : 18);
    write(zeros < 11 ? zeros - 3 : zeros - 11, zeros < 11 ? 3 : 7);
    i += zeros;
  }
  const whole = all.length - (all.length % 8);
  const byte = (from: number, to: number) => all.slice(from, to).reduce((sum, bit, index) => sum | (bit << index), 0);
  const head = Buffer.from(Array.from({ length: whole / 8 }, (_, index) => byte(index * 8, index * 8 + 8)));
  return { head, headRest: { value: byte(whole, all.length), count: all.length - whole } };
}

function chunk(type: string, data: Buffer): Buffer {
  const framed = Buffer.allocUnsafe(data.length + 12);
  framed.writeUInt32BE(data.length, 0);
  framed.write(type, 4, 'latin1');
  data.copy(framed, 8);
  framed.writeUInt32BE(crc32(framed.subarray(4, 8 + data.length)), 8 + data.length);
  return framed;
}
