// Our QR encoder against another one, module by module: patterns, error correction and the choice of the mask.
import fc from 'fast-check';
import encodeQR from 'qr';
import { expect, test } from 'vitest';
import { qrModules } from '../../src/http/qr/modules.ts';

function lines(text: string): { ours: string[]; theirs: string[] } {
  const { side, black } = qrModules(text, 4);
  const theirs = encodeQR(text, 'raw', { ecc: 'medium', border: 4, encoding: 'byte' });
  return {
    ours: Array.from({ length: side }, (_, y) => black.subarray(y * side, (y + 1) * side).join('')),
    theirs: theirs.map((line) => line.map(Number).join('')),
  };
}

test('any text has the modules that another encoder gives it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 120 }), (text) => {
      const { ours, theirs } = lines(text);
      expect(ours).toEqual(theirs);
    }),
    { numRuns: 300 },
  );
});
test('payment URIs have them whichever mask is the best', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9]{38}$/), fc.stringMatching(/^[0-9]\.[0-9]{8}$/), (key, amount) => {
      const { ours, theirs } = lines(`bitcoin:bc1q${key}?amount=${amount}`);
      expect(ours).toEqual(theirs);
    }),
    { numRuns: 500 },
  );
});
test('codes of all 40 versions have them, with as much text as there is room for and with one byte more', () => {
  let side = 0;
  for (let length = 1; length <= 2331; length++) {
    const last = side;
    side = qrModules('x'.repeat(length), 4).side;
    if (side === last) continue;
    for (const around of [length - 1, length]) {
      if (around === 0) continue;
      const { ours, theirs } = lines('https://example.test/'.repeat(120).slice(0, around));
      expect(ours).toEqual(theirs);
    }
  }
  expect(side).toBe(185);
});
test('more text than the largest code holds is refused', () => {
  expect(() => qrModules('x'.repeat(2332), 4)).toThrow(RangeError);
});
