import { PNG } from 'pngjs';
import { expect, test } from 'vitest';
import { qrDataUri } from '../../src/http/qr/data-uri.ts';
import type { Modules } from '../../src/http/qr/modules.ts';
import { qrPng } from '../../src/http/qr/png.ts';

const PIXELS = 4;

/** A square of about this share of black, the same at every run. */
function square(side: number, share: number): Modules {
  const isBlack = (x: number, y: number) => ((x * 7 + y * 13 + x * y) % 10) / 10 < share;
  return {
    side,
    black: Uint8Array.from({ length: side * side }, (_cell, at) => (isBlack(at % side, Math.floor(at / side)) ? 1 : 0)),
  };
}

test('the picture is four pixels a module at every size that a code can have, as another PNG reader sees it', () => {
  for (let side = 29; side <= 185; side += 4) {
    for (const share of [0, 0.5, 1]) {
      const modules = square(side, share);
      const { data, width, height } = PNG.sync.read(qrPng(modules)) as { data: Buffer; width: number; height: number };
      expect([width, height]).toEqual([side * PIXELS, side * PIXELS]);
      let wrong = 0;
      for (let pixel = 0; pixel < width * height; pixel++) {
        const [x, y] = [pixel % width, Math.floor(pixel / width)];
        const black = modules.black[Math.floor(y / PIXELS) * side + Math.floor(x / PIXELS)] === 1;
        if ((data[pixel * 4] === 0) !== black) wrong += 1;
      }
      expect(wrong).toBe(0);
    }
  }
});

test('a usual payment URI takes less than 800 characters', () => {
  expect(qrDataUri('bitcoin:bcrt1qmf3t2xzw9002s5n7khn6z223h9vue5p74kfk2d?amount=0.00038462').length).toBeLessThan(800);
});
