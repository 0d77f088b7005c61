// The QR code: a PNG that an independent decoder reads, and that contains the payment URI.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { qrDataUri } from '../../src/http/qr/data-uri.ts';
import { decodeQr } from '../support/qr-decode.ts';
import { type ApiServer, makeApi } from './api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

test('qr_code of create and list decodes to the BIP 321 URI with the amount', async () => {
  for (const [code, scheme] of [
    ['BTC', 'bitcoin'],
    ['LTC', 'litecoin'],
  ]) {
    // lists are newest first, ties by id
    api.advance(1);
    const { json } = await api.call('/create_transaction', { amount: '25.00', crypto_selected: code });
    const uri = `${scheme}:${json.wallet_address}?amount=${json.crypto_amount}`;
    expect(decodeQr(json.qr_code)).toBe(uri);
    const list = await api.call('/list_transactions', { limit: 1 });
    expect(list.json.data[0].qr_code).toBe(json.qr_code);
  }
});
test('a code that is drawn again after many others, or shown again, is the same', () => {
  const uri = (n: number): string => `bitcoin:bcrt1q${String(n).padStart(38, '0')}?amount=0.00038462`;
  const first = Array.from({ length: 20 }, (_, n) => qrDataUri(uri(n)));
  expect(new Set(first).size).toBe(20);
  expect(first.map((_, n) => qrDataUri(uri(n)))).toEqual(first);
  for (let n = 20; n < 6_000; n++) qrDataUri(uri(n));
  expect(first.map((_, n) => qrDataUri(uri(n)))).toEqual(first);
  first.forEach((drawn, n) => {
    expect(decodeQr(drawn)).toBe(uri(n));
  });
});
test('any text of a URI decodes to itself', () => {
  const letters = fc.constantFrom(...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:?=&./-'.split(''));
  fc.assert(
    fc.property(fc.string({ unit: letters, minLength: 1, maxLength: 400 }), (text) => {
      expect(decodeQr(qrDataUri(text))).toBe(text);
    }),
    { numRuns: 40 },
  );
});
