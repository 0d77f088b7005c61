// X11, the hash that identifies Dash's blocks: eleven hash functions one after the other, by the library of the Dash developers; it takes
// about a millisecond, once per block.
import { createRequire } from 'node:module';

type Library = { digest(input: Uint8Array, inputFormat: 1, outputFormat: 1): readonly number[] };
let library: Library | undefined;

/** X11 of the bytes, written to `target`, in wire order. */
export function x11(bytes: Uint8Array, target: Buffer): void {
  library ??= createRequire(import.meta.url)('@dashevo/x11-hash-js') as Library;
  target.set(library.digest(bytes, 1, 1));
}
