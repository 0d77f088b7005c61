// Scripts that a stranger can choose to make a database slow: all different, with one value of PostgreSQL's hash of bytes, which has no key (Jenkins'
// lookup3, hash_bytes).
import { randomBytes } from 'node:crypto';
import { p2pkh } from './raw-blocks.ts';

const TARGET = [0x11111111, 0x22222222, 0x33333333] as const;
const LENGTH = 25;
const START = (0x9e3779b9 + LENGTH + 3923095) | 0;
const rotated = (x: number, by: number): number => (x << by) | (x >>> (32 - by));

/** P2PKH scripts whose first 24 bytes leave lookup3 in one state. */
export function sameHashScripts(count: number): Buffer[] {
  const scripts: Buffer[] = [];
  const head = p2pkh(randomBytes(20)).subarray(0, 8);
  for (let counter = 0; scripts.length < count; counter++) {
    let a = (START + head.readInt32LE(0)) | 0;
    let b = (START + head.readInt32LE(4)) | 0;
    let c = (START + counter) | 0;
    for (const [first, second, third] of [
      [4, 6, 8],
      [16, 19, 4],
    ] as const) {
      a = ((a - c) | 0) ^ rotated(c, first);
      c = (c + b) | 0;
      b = ((b - a) | 0) ^ rotated(a, second);
      a = (a + c) | 0;
      c = ((c - b) | 0) ^ rotated(b, third);
      b = (b + a) | 0;
    }
    const last = (TARGET[2] - c) | 0;
    if (last >>> 24 !== 0x88) continue;
    const script = Buffer.alloc(LENGTH);
    head.copy(script);
    for (const [at, word] of [
      [8, counter],
      [12, TARGET[0] - a],
      [16, TARGET[1] - b],
      [20, last],
    ] as const)
      script.writeInt32LE(word | 0, at);
    script[24] = 0xac;
    scripts.push(script);
  }
  return scripts;
}
