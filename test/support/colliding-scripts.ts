// Scripts that a stranger can make for the price of their outputs: all different, all with one value of the hash without a key (FNV-1a) that the
// watchers once used. What they cost now is compared with what as many others cost.
import { randomBytes } from 'node:crypto';
import { p2pkh } from './raw-blocks.ts';

const PRIME = 0x01000193;
/** PRIME times this is 1, modulo 2³². */
const INVERSE = 0x359c449b;
const TARGET = 0x12345678;
const SLOTS = 1 << 25;

/** Different P2PKH scripts with the same FNV-1a: from both ends, the last three bytes of the key hash out of a table. */
export function collidingScripts(count: number): Buffer[] {
  const table = backwards();
  const scripts: Buffer[] = [];
  while (scripts.length < count) {
    const script = p2pkh(Buffer.concat([randomBytes(16), Buffer.alloc(4)]));
    let state = 0x811c9dc5;
    for (let i = 0; i < 19; i++) state = Math.imul(state ^ (script[i] as number), PRIME);
    for (let byte = 0; byte < 256; byte++) {
      const last = find(table, Math.imul(state ^ byte, PRIME) >>> 0);
      if (last === null) continue;
      script[19] = byte;
      script.writeUIntBE(last, 20, 3);
      scripts.push(script);
      break;
    }
  }
  return scripts;
}

export function randomScripts(count: number): Buffer[] {
  return Array.from({ length: count }, () => p2pkh(randomBytes(20)));
}

/** The state before the three bytes from which they lead to the target. */
function before(bytes: number): number {
  let state = Math.imul(TARGET, INVERSE) ^ (bytes & 255);
  state = Math.imul(state, INVERSE) ^ ((bytes >> 8) & 255);
  state = Math.imul(state, INVERSE) ^ (bytes >> 16);
  return state >>> 0;
}

/** Three bytes, plus one, by the state before them. */
function backwards(): Uint32Array {
  const table = new Uint32Array(SLOTS);
  for (let bytes = 0; bytes < 1 << 24; bytes++) {
    let slot = slotOf(before(bytes));
    while (table[slot] !== 0) slot = (slot + 1) & (SLOTS - 1);
    table[slot] = bytes + 1;
  }
  return table;
}

function find(table: Uint32Array, state: number): number | null {
  for (let slot = slotOf(state); table[slot] !== 0; slot = (slot + 1) & (SLOTS - 1)) {
    const bytes = (table[slot] as number) - 1;
    if (before(bytes) === state) return bytes;
  }
  return null;
}

const slotOf = (state: number): number => Math.imul(state, 0x9e3779b1) >>> 7;
