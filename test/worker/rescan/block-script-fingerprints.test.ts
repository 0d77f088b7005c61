// What is remembered of blocks: no script that a block pays is ever missed, and no more memory is used than allowed.
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createBlockMemory, createPrinter, printsOf } from '../../../src/worker/rescan/block-script-fingerprints.ts';

function printed(scripts: readonly Uint8Array[]): Uint32Array {
  const printer = createPrinter();
  for (const script of scripts) expect(printer.watch.hasScript(script, 0, script.length)).toBe(false);
  return printer.prints();
}

test('every script that a block pays is among its prints; a stranger hardly ever', () => {
  const scripts = Array.from({ length: 2_000 }, (_, i) => randomBytes(1 + (i % 60)));
  const prints = printed([...scripts, ...scripts]);
  expect(prints.length).toBeLessThanOrEqual(2_000);
  for (const script of scripts) expect(printsOf([randomBytes(22), script])(prints)).toBe(true);
  const strangers = Array.from({ length: 2_000 }, () => randomBytes(22));
  expect(strangers.filter((one) => printsOf([one])(prints)).length).toBeLessThan(5);
  expect(printsOf([])(prints)).toBe(false);
});

test('a printer asks another watch list too', () => {
  const script = randomBytes(22);
  const watch = { hasScript: () => true, hasOutpoint: () => true, fresh: async () => undefined };
  const printer = createPrinter(watch);
  expect(printer.watch.hasScript(script, 0, 22)).toBe(true);
  expect(printer.watch.hasOutpoint(script, 0)).toBe(true);
  expect(printer.prints()).toHaveLength(1);
});

test('what was used longest ago is forgotten when the memory is full', () => {
  const memory = createBlockMemory(1_000);
  const prints = new Uint32Array(236); // 300 with its entry
  for (const name of ['a', 'b', 'c']) memory.set(name, prints);
  memory.set('c', prints);
  expect(memory.get('a')).toBe(prints);
  memory.set('d', prints);
  expect(memory.get('b')).toBeUndefined();
  for (const name of ['a', 'c', 'd']) expect(memory.get(name)).toBe(prints);
  memory.set('huge', new Uint32Array(5_000));
  expect(memory.get('huge')).toBeUndefined();
});
