// What is collected from a block of strangers: each script once, and nothing of it on the heap, however many there are.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createCollector } from '../../../src/worker/rescan/block-collector.ts';
import { createPrinter } from '../../../src/worker/rescan/block-script-fingerprints.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** A block of different scripts of 25 bytes, one behind the other. */
function blockOf(count: number): Buffer {
  const block = Buffer.alloc(count * 25);
  for (let i = 0; i < count; i++) block.writeUInt32LE(i, i * 25 + 3);
  return block;
}

test('each script as long as an address is returned once, in its order, whatever becomes of the block', () => {
  const collector = createCollector();
  const block = blockOf(3_000);
  for (const at of [...Array(3_000).keys(), 7, 8, 9]) collector.watch.hasScript(block, at * 25, at * 25 + 25);
  for (const length of [0, 4, 21, 43, 300]) collector.watch.hasScript(block, 0, length);
  const expected = Array.from({ length: 3_000 }, (_, i) => block.toString('hex', i * 25, i * 25 + 25));
  block.fill(0);
  expect(Array.from(collector.scripts(), (script) => Buffer.from(script).toString('hex'))).toEqual(expected);
  expect(collector.count).toBe(3_000);
});

/** What a block of many scripts leaves: the scripts and prints, and a reference by which it can be seen whether the block is still held. */
function collected(count: number) {
  const block = blockOf(count);
  const collector = createCollector();
  const printer = createPrinter(collector.watch);
  for (let at = 0; at < count * 25; at += 25) printer.watch.hasScript(block, at, at + 25);
  return { collector, prints: printer.prints(), block: new WeakRef(block.buffer) };
}

test('half a million scripts and their prints are not on the heap, and do not hold their block', async () => {
  const count = 500_000;
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const { collector, prints, block } = collected(count);
  await new Promise((resolve) => setImmediate(resolve)); // until then a weak reference holds
  collectGarbage();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(4_000_000);
  expect(block.deref()).toBeUndefined();
  expect(collector.count).toBe(count);
  // of half a million out of 2³² about 30 pairs have the same print by chance
  expect(prints.length).toBeGreaterThan(count - 200);
});
