import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sortableId } from '../../src/core/ids.ts';

const times = fc.integer({ min: 0, max: 2 ** 48 - 1 });
const random = fc.uint8Array({ minLength: 10, maxLength: 10 });
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
/** The order of PostgreSQL's collation "C": by bytes. */
const before = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b)) < 0;

describe('an id', () => {
  it('is its prefix and 22 letters and digits', () => {
    fc.assert(
      fc.property(times, random, (atMs, bytes) => {
        expect(sortableId('txn_', atMs, bytes)).toMatch(/^txn_[0-9A-Za-z]{22}$/);
      }),
    );
  });

  it('sorts by its time, whatever the random part', () => {
    fc.assert(
      fc.property(times, times, random, random, (a, b, first, second) => {
        fc.pre(a !== b);
        expect(before(sortableId('txn_', a, first), sortableId('txn_', b, second))).toBe(a < b);
      }),
    );
  });

  it('keeps all 128 bits: different times or bytes give different ids', () => {
    fc.assert(
      fc.property(times, random, random, (atMs, first, second) => {
        const same = Buffer.compare(first, second) === 0;
        expect(sortableId('', atMs, first) === sortableId('', atMs, second)).toBe(same);
      }),
    );
    expect(sortableId('', 2 ** 48 - 1, new Uint8Array(10).fill(255))).toBe('7n42DGM5Tflk9n8mt7Fhc7');
    expect(sortableId('', 0, new Uint8Array(10))).toBe('0'.repeat(22));
  });

  it('is the number of its 128 bits in base 62', () => {
    fc.assert(
      fc.property(times, random, (atMs, bytes) => {
        let value = 0n;
        for (const digit of sortableId('', atMs, bytes)) value = value * 62n + BigInt(DIGITS.indexOf(digit));
        expect(value.toString(16).padStart(32, '0')).toBe(
          atMs.toString(16).padStart(12, '0') + Buffer.from(bytes).toString('hex'),
        );
      }),
      { numRuns: 1000 },
    );
  });

  it('does not repeat within one millisecond', () => {
    const made = Array.from({ length: 5_000 }, () => sortableId('txn_', 1_767_225_600_000, randomBytes(10)));
    expect(new Set(made).size).toBe(made.length);
  });

  it.each([0, 9, 11, 16])('refuses %i random bytes', (length) => {
    expect(() => sortableId('txn_', 0, new Uint8Array(length))).toThrow('10 random bytes');
  });
});
