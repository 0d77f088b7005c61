import fc from 'fast-check';
import jsQR from 'jsqr';
// @ts-expect-error the package has no types
import { PNG } from 'pngjs';
import { describe, expect, test } from 'vitest';
import { qrDataUri } from '../../src/http/qr.ts';
import { qrPng } from '../../src/http/qr-png.ts';

const PIXELS = 4;

function pictureOf(dataUri: string): PNG {
  return PNG.sync.read(Buffer.from(dataUri.replace('data:image/png;base64,', ''), 'base64'));
}

describe('the QR code of a payment URI', () => {
  test('is read by another decoder as it was written, whatever its length', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-z0-9]{0,400}$/), fc.nat(10 ** 9), (address, amount) => {
        const uri = `bitcoin:${address}?amount=${amount}`;
        const { data, width, height } = pictureOf(qrDataUri(uri));
        expect(jsQR(new Uint8ClampedArray(data), width, height)?.data).toBe(uri);
      }),
      { numRuns: 40 },
    );
  });

  test('is small', () => {
    expect(qrDataUri('bitcoin:bcrt1qmf3t2xzw9002s5n7khn6z223h9vue5p74kfk2d?amount=0.00038462').length).toBeLessThan(800);
  });
});

describe('the picture of modules', () => {
  test('is four pixels a module at every size that a code can have, as another PNG reader sees it', () => {
    for (let side = 21; side <= 185; side += 4) {
      for (const share of [0, 0.5, 1]) {
        const modules = Array.from({ length: side }, (_, y) =>
          Array.from({ length: side }, (_, x) => ((x * 7 + y * 13 + x * y) % 10) / 10 < share),
        );
        const { data, width, height } = PNG.sync.read(qrPng(modules));
        expect([width, height]).toEqual([side * PIXELS, side * PIXELS]);
        let wrong = 0;
        for (let y = 0; y < height; y++) {
          for (let x = 0; x < width; x++) {
            const isBlack = data[(y * width + x) * 4] === 0;
            if (isBlack !== modules[Math.floor(y / PIXELS)]?.[Math.floor(x / PIXELS)]) wrong += 1;
          }
        }
        expect(wrong).toBe(0);
      }
    }
  });
});
