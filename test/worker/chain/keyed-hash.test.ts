// The hash of the watch list and the collector: the published one, under a key of this process; scripts made to collide cost the same as
// others.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { halfSipHash, hashOf } from '../../../src/worker/chain/keyed-hash.ts';
import { createCollector } from '../../../src/worker/rescan/block-collector.ts';
import { collidingScripts, randomScripts } from '../../support/colliding-scripts.ts';
import { workedMs } from '../../support/longest-turn.ts';

/** vectors_hsip32 of the authors' reference implementation: the first bytes 0, 1, 2 … under the key 0 to 7. */
const VECTORS = [
  ...['a9359f5b', '27475ab8', 'fa62a603', '8afee704', '2a6e4689'],
  ...['c5fab669', '5863fc23', '8bcf63c5', 'd0b8848f', 'f806e779'],
];

test('is HalfSipHash-2-4', () => {
  const bytes = Buffer.from(Array.from({ length: 16 }, (_, i) => i));
  const hashes = VECTORS.map((_, length) => {
    const hash = Buffer.alloc(4);
    hash.writeUInt32LE(halfSipHash(bytes, 0, length, 0x03020100, 0x07060504));
    return hash.toString('hex');
  });
  expect(hashes).toEqual(VECTORS);
  expect(halfSipHash(Buffer.concat([Buffer.from('xyz'), bytes]), 3, 9, 1, 2)).toBe(halfSipHash(bytes, 0, 6, 1, 2));
});

test('has another key in each process', () => {
  const path = fileURLToPath(new URL('../../../src/worker/chain/keyed-hash.ts', import.meta.url));
  const code = `import { hashOf } from ${JSON.stringify(path)}; console.log([1, 2, 3].map((n) => hashOf(Uint8Array.of(n), 0, 1)).join())`;
  const elsewhere = () => execFileSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }).trim();
  const here = [1, 2, 3].map((n) => hashOf(Uint8Array.of(n), 0, 1)).join();
  expect(new Set([here, elsewhere(), elsewhere()]).size).toBe(3);
});

test('scripts that collide without a key fall where others fall', { timeout: 120_000 }, () => {
  const colliding = collidingScripts(20_000);
  expect(new Set(colliding.map((script) => script.toString('hex'))).size).toBe(20_000);
  // of 20,000 out of 2³² some 0.05 pairs are expected by chance
  expect(new Set(colliding.map((script) => hashOf(script, 0, 25))).size).toBeGreaterThan(19_990);
  const collect = (scripts: readonly Buffer[]): number => {
    const collector = createCollector();
    const began = workedMs();
    for (const script of scripts) collector.watch.hasScript(script, 0, 25);
    expect(collector.count).toBe(scripts.length);
    return workedMs() - began;
  };
  collect(randomScripts(20_000));
  // quadratic, they took 40 times as long
  expect(collect(colliding)).toBeLessThan(10 * collect(randomScripts(20_000)) + 20);
});
