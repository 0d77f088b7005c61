// Blocks that are read ahead: in their order, a few at a time, and with all readings of the process within one limit of memory.
import { expect, test } from 'vitest';
import { createReadingMemory, heights, readAhead } from '../../../src/worker/chain/read-ahead.ts';

const MB = 1_000_000;

/** Reads blocks that arrive when the test says so. */
function slowReader() {
  const waiting = new Map<number, (height: number) => void>();
  const read = (height: number): Promise<number> => new Promise((resolve) => waiting.set(height, resolve));
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    read,
    /** The heights that are being read. */
    async begun() {
      await settle();
      return [...waiting.keys()];
    },
    async arrive(height: number) {
      waiting.get(height)?.(height);
      waiting.delete(height);
      await settle();
    },
  };
}

test('blocks come in their order, and three are read at a time', async () => {
  const reader = slowReader();
  const memory = createReadingMemory(64 * MB);
  const blocks = readAhead(heights(1, 5), reader.read, { currency: 'BTC', heldBytes: () => 0, memory });
  const first = blocks.next();
  expect(await reader.begun()).toEqual([1, 2, 3]);
  await reader.arrive(2);
  await reader.arrive(1);
  expect((await first).value).toEqual([1, 1]);
  const second = blocks.next();
  expect((await second).value).toEqual([2, 2]);
  expect(await reader.begun()).toEqual([3, 4]);
  await blocks.return(undefined);
  for (const height of [3, 4]) await reader.arrive(height);
  expect(memory.bytes).toBe(0);
});

test('of blocks of 32 MB two jobs read one in advance, and each job goes on', async () => {
  const memory = createReadingMemory(64 * MB);
  const options = { currency: 'BCH', heldBytes: () => 20 * MB, memory } as const;
  const [one, other] = [slowReader(), slowReader()];
  const jobs = [readAhead(heights(1, 4), one.read, options), readAhead(heights(1, 4), other.read, options)] as const;
  const firsts = jobs.map((job) => job.next());
  expect([await one.begun(), await other.begun()]).toEqual([[1, 2], [1]]);
  // what was read still counts until the next one is requested
  for (const height of [1, 2]) await one.arrive(height);
  await other.arrive(1);
  await Promise.all(firsts);
  expect(memory.bytes).toBe(60 * MB);
  const seconds = jobs.map((job) => job.next());
  expect([await one.begun(), await other.begun()]).toEqual([[], [2]]);
  await other.arrive(2);
  expect((await Promise.all(seconds)).map(({ value }) => value)).toEqual([
    [2, 2],
    [2, 2],
  ]);
  await Promise.all(jobs.map((job) => job.return(undefined)));
  expect(memory.bytes).toBe(0);
});

test('a reading that fails ends the blocks with its error, and occupies nothing', async () => {
  const memory = createReadingMemory(64 * MB);
  const read = async (height: number): Promise<number> => {
    if (height === 2) throw new Error('block 2 cannot be read');
    return height;
  };
  const blocks = readAhead(heights(1, 3), read, { currency: 'BTC', heldBytes: () => MB, memory });
  expect((await blocks.next()).value).toEqual([1, 1]);
  await expect(blocks.next()).rejects.toThrow('block 2 cannot be read');
  await new Promise((resolve) => setImmediate(resolve));
  expect(memory.bytes).toBe(0);
});
