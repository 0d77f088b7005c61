// Where the records of TLS begin, however the bytes come.
import { expect, test } from 'vitest';
import { recordsOf } from '../../src/outside/outbound/tls-records.ts';

const record = (type: number, length: number): Buffer =>
  Buffer.concat([Buffer.from([type, 3, 3, length >> 8, length & 255]), Buffer.alloc(length, 22)]);
const DATA = 23;
const HANDSHAKE = 22;
const ALERT = 21;
/** 0 to 6, 7 to 11 with nothing in it, 12 to 316, 317 to 323. */
const FOUR = Buffer.concat([record(DATA, 2), record(DATA, 0), record(DATA, 300), record(ALERT, 2)]);

test('each record is found where its head ends', () => {
  expect(recordsOf()(FOUR)).toEqual([5, 12, 17, 322]);
});

test('the bytes may come in any parts', () => {
  for (let size = 1; size < 20; size++) {
    const recordsIn = recordsOf();
    const found: number[] = [];
    for (let at = 0; at < FOUR.length; at += size)
      found.push(...recordsIn(FOUR.subarray(at, at + size)).map((head) => at + head));
    expect(found).toEqual([5, 12, 17, 322]);
  }
});

test.each([
  [1, 1],
  [4, 1],
  [5, 2],
  [4_096, 1_024],
])('one of %i bytes for a handshake may hold %i messages', (length, messages) => {
  expect(recordsOf()(record(HANDSHAKE, length))).toEqual(Array.from({ length: messages }, () => 5));
  expect(recordsOf()(record(DATA, length))).toEqual([5]);
});
