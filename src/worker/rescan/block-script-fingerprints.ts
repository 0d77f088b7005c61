// Remembers, by block hash, a print of every output script of the blocks that were read, so that "does this block pay one of these?" needs
// no second reading of a known block, whatever the scripts are. A hash identifies its block's content for ever; which blocks are in the
// best chain is not known here.
import type { WatchList } from '../../core/ports.ts';
import { hashOf } from '../chain/keyed-hash.ts';

/** 32 bits of each different output script under this process's key: no match is ever missed, a few are false. */
export type ScriptFingerprints = Uint32Array;

export type BlockMemory = {
  get(blockHash: string): ScriptFingerprints | undefined;
  set(blockHash: string, prints: ScriptFingerprints): void;
};

/** 16 MB: about two weeks of full Bitcoin blocks. */
const MOST_PRINTS = 4_000_000;
/** The size of an entry besides its prints, in prints. */
const ENTRY = 64;

/** Drops what was used longest ago. */
export function createBlockMemory(mostPrints = MOST_PRINTS): BlockMemory {
  const known = new Map<string, ScriptFingerprints>();
  let held = 0;
  return {
    get(blockHash) {
      const prints = known.get(blockHash);
      if (prints !== undefined) {
        known.delete(blockHash);
        known.set(blockHash, prints);
      }
      return prints;
    },
    set(blockHash, prints) {
      held += ENTRY + prints.length - sizeOf(known.get(blockHash));
      known.delete(blockHash);
      known.set(blockHash, prints);
      for (const [oldest, its] of known) {
        if (held <= mostPrints) return;
        known.delete(oldest);
        held -= sizeOf(its);
      }
    },
  };
}

function sizeOf(prints: ScriptFingerprints | undefined): number {
  return prints === undefined ? 0 : ENTRY + prints.length;
}

/** A watch list that watches nothing and records the print of every output script; `also` is asked about each script too. */
export function createPrinter(also?: WatchList): { readonly watch: WatchList; prints(): ScriptFingerprints } {
  const seen = createPrintSet();
  return {
    watch: {
      hasScript(bytes, start, end) {
        if (end > start) seen.add(hashOf(bytes, start, end));
        return also?.hasScript(bytes, start, end) ?? false;
      },
      hasOutpoint: (bytes, start) => also?.hasOutpoint(bytes, start) ?? false,
      fresh: async () => also?.fresh(),
    },
    prints: seen.values,
  };
}

/** Different numbers of 32 bits, outside the heap: a block can have millions of outputs. */
function createPrintSet() {
  // 0 is an empty slot; whether 0 itself was added is kept apart
  let slots = new Uint32Array(1 << 8);
  let size = 0;
  let hasZero = false;
  function put(print: number): void {
    const mask = slots.length - 1;
    let slot = print & mask;
    while (slots[slot] !== 0 && slots[slot] !== print) slot = (slot + 1) & mask;
    if (slots[slot] === print) return;
    slots[slot] = print;
    size++;
  }
  return {
    add(print: number): void {
      if (print === 0) hasZero = true;
      else put(print);
      if (size * 10 < slots.length * 7) return;
      const old = slots;
      slots = new Uint32Array(old.length * 2);
      size = 0;
      for (const one of old) if (one !== 0) put(one);
    },
    values(): ScriptFingerprints {
      const prints = new Uint32Array(size + (hasZero ? 1 : 0));
      let at = 0;
      for (const print of slots) if (print !== 0) prints[at++] = print;
      return prints;
    },
  };
}

/** Returns a function that tests whether a block's prints may include one of these scripts; false is certain. */
export function printsOf(scripts: readonly Uint8Array[]): (prints: ScriptFingerprints) => boolean {
  const wanted = new Set(scripts.map((script) => hashOf(script, 0, script.length)));
  return (prints) => prints.some((print) => wanted.has(print));
}
