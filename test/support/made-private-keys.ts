// Every extended key that is derived while a test watches, so that it can ask whether one still has its private half.
import { HDKey } from '@scure/bip32';
import { vi } from 'vitest';

/** Begins to collect the keys that are made, of a seed or as children; `stop` ends it. */
export function watchPrivateKeys(): { readonly made: readonly HDKey[]; stop(): void } {
  const made: HDKey[] = [];
  const derive = HDKey.prototype.deriveChild;
  const fromSeed = HDKey.fromMasterSeed;
  const spies = [
    vi.spyOn(HDKey.prototype, 'deriveChild').mockImplementation(function (this: HDKey, index) {
      const child = derive.call(this, index);
      made.push(child);
      return child;
    }),
    vi.spyOn(HDKey, 'fromMasterSeed').mockImplementation((...given) => {
      const key = fromSeed.apply(HDKey, given);
      made.push(key);
      return key;
    }),
  ];
  return {
    made,
    stop: () => {
      for (const spy of spies) spy.mockRestore();
    },
  };
}
