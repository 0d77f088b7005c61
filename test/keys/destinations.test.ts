// A payout's destination is accepted only when its text can be trusted: checksums, the network's own prefix, the form of its standard.

import { createHash } from 'node:crypto';
import { bech32, bech32m, createBase58check } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Network } from '../../src/core/currency.ts';
import { createDestinations } from '../../src/outside/destinations.ts';
import { signedRequest } from '../../src/sandbox/lightning/bolt11.ts';

type Method = Parameters<ReturnType<typeof createDestinations>['problem']>[0];
const fits = (network: Network, method: Method, text: string) => createDestinations(network).problem(method, text) === null;
const flipped = (text: string) => text.slice(0, -1) + (text.endsWith('q') ? 'p' : 'q');

describe('usdt', () => {
  // the examples of EIP-55
  const examples = [
    '0x52908400098527886E0F7030069857D2E4169EE7',
    '0xde709f2102306220921060314715629080e2fb77',
    '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
    '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
    '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
    '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
  ];
  test.each(examples)('%s, and all lower and all upper case', (address) => {
    const digits = address.slice(2);
    for (const text of [address, `0x${digits.toLowerCase()}`, `0x${digits.toUpperCase()}`, `0X${digits.toUpperCase()}`]) {
      expect(fits('mainnet', 'usdt', text)).toBe(true);
    }
  });
  test('not with the case of one letter changed, nor with another length', () => {
    const address = examples[2] as string;
    for (let at = 2; at < 42; at++) {
      const letter = address[at] as string;
      const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
      if (other !== letter) expect(fits('mainnet', 'usdt', address.slice(0, at) + other + address.slice(at + 1))).toBe(false);
    }
    for (const text of [address.slice(0, -1), `${address}0`, address.slice(2), `${address.slice(0, -1)}g`]) {
      expect(fits('mainnet', 'usdt', text)).toBe(false);
    }
  });
});

describe('bitcoin', () => {
  const base58check = createBase58check((bytes: Uint8Array) => createHash('sha256').update(bytes).digest());
  const segwit = (prefix: string, version: number, length: number) =>
    (version === 0 ? bech32 : bech32m).encode(prefix, [version, ...bech32.toWords(new Uint8Array(length).fill(7))]);
  const base58 = (version: number) => base58check.encode(Uint8Array.of(version, ...new Uint8Array(20).fill(7)));
  const of = (prefix: string, p2pkh: number, p2sh: number) => [
    segwit(prefix, 0, 20),
    segwit(prefix, 0, 32),
    segwit(prefix, 1, 32),
    segwit(prefix, 0, 20).toUpperCase(),
    base58(p2pkh),
    base58(p2sh),
  ];
  const addresses = { mainnet: of('bc', 0x00, 0x05), testnet: of('tb', 0x6f, 0xc4), sandbox: of('bcrt', 0x6f, 0xc4) } as const;
  test.each(Object.keys(addresses) as (keyof typeof addresses)[])(
    'every standard address of %s, with its checksum',
    (network) => {
      for (const address of addresses[network]) {
        expect(fits(network, 'bitcoin', address)).toBe(true);
        expect(fits(network, 'bitcoin', flipped(address))).toBe(false);
      }
      for (const other of Object.keys(addresses) as (keyof typeof addresses)[]) {
        if (other !== network) expect(fits(network, 'bitcoin', addresses[other][0] as string)).toBe(false);
      }
      expect(fits(network, 'bitcoin', addresses[network === 'mainnet' ? 'testnet' : 'mainnet'][4] as string)).toBe(false);
    },
  );
});

describe('lightning', () => {
  const field = (tag: number, words: readonly number[]) => [tag, words.length >> 5, words.length & 31, ...words];
  // 256 bits, and four that fill the last word
  const bits256 = (word: number) => [...Array.from({ length: 51 }, () => word), 16];
  const [hash, secret] = [field(1, bits256(9)), field(16, bits256(8))];
  const key = createHash('sha256').update('a key').digest();
  const invoice = (prefix: string, fields: readonly number[] = [...hash, ...field(13, [1, 2, 3])]) =>
    signedRequest(prefix, [...Array.from({ length: 7 }, () => 1), ...secret, ...fields], key);
  test('an invoice of the network, with or without an amount', () => {
    for (const amount of ['', '1', '25m', '2500u', '1n', '10p']) {
      for (const [network, prefix] of [
        ['sandbox', 'lnbcrt'],
        ['regtest', 'lnbcrt'],
        ['testnet', 'lntb'],
        ['mainnet', 'lnbc'],
      ] as const) {
        const text = invoice(prefix + amount);
        expect(createDestinations(network).problem('lightning', text)).toBe(null);
        expect(fits(network, 'lightning', text.toUpperCase())).toBe(true);
        expect(fits(network, 'lightning', flipped(text))).toBe(false);
      }
    }
  });
  test('an invoice that is read for its form and for what it says is read once', () => {
    const destinations = createDestinations('sandbox');
    const text = invoice('lnbcrt10u');
    expect(destinations.problem('lightning', text)).toBeNull();
    expect(destinations.invoice(text)).toMatchObject({ amountMsat: 1_000_000n });
    expect(destinations.invoice(text)).toBe(destinations.invoice(text));
    expect(destinations.invoice(text.toUpperCase())).toEqual(destinations.invoice(text));
    for (let n = 0; n < 101; n++) expect(destinations.invoice(`ln${n}`)).toBeNull();
    expect(destinations.invoice(text)).toMatchObject({ amountMsat: 1_000_000n });
  });
  test('an example of BOLT11', () => {
    const donation =
      'lnbc1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdpl2pkx2ctnv5sxxmmwwd5kgetjypeh2ursdae8g6twvus8g6rfwvs8qun0dfjkxaq9qrsgq357wnc5r2ueh7ck6q93dj32dlqnls087fxdwk8qakdyafkq3yap9us6v52vjjsrvywa6rt52cm9r9zqt8r2t7mlcwspyetp5h2tztugp9lfyql';
    expect(fits('mainnet', 'lightning', donation)).toBe(true);
    expect(fits('sandbox', 'lightning', donation)).toBe(false);
  });
  test('not an invoice of another network, with an amount that is none, cut short or without a payment hash', () => {
    for (const prefix of ['lnbc', 'lntb', 'lntbs', 'lnbcrt01', 'lnbcrt1p', 'lnbcrt5x', 'lnbcrtm']) {
      expect(fits('sandbox', 'lightning', invoice(prefix))).toBe(false);
    }
    for (const prefix of ['lnbcrt', 'lntb']) expect(fits('mainnet', 'lightning', invoice(prefix))).toBe(false);
    for (const fields of [[], field(13, [1]), [...hash, 13], [...hash, 13, 0, 5, 1]]) {
      expect(fits('sandbox', 'lightning', invoice('lnbcrt', fields))).toBe(false);
    }
    expect(fits('sandbox', 'lightning', bech32.encode('lnbcrt', [1, 2, 3], false))).toBe(false);
  });
  test('an LNURL that holds an https URL; plain http only where payments are worth nothing, or to an onion host', () => {
    const lnurl = (url: string) => bech32.encode('lnurl', bech32.toWords(new TextEncoder().encode(url)), false);
    const long = lnurl(`https://pay.example.com/lnurl?${'q'.repeat(300)}`);
    for (const text of [long, long.toUpperCase(), lnurl('http://abc.onion/pay')]) {
      expect(fits('mainnet', 'lightning', text)).toBe(true);
      expect(fits('mainnet', 'lightning', flipped(text.toLowerCase()))).toBe(false);
    }
    expect(fits('mainnet', 'lightning', lnurl('http://127.0.0.1:80/pay'))).toBe(false);
    expect(fits('sandbox', 'lightning', lnurl('http://127.0.0.1:80/pay'))).toBe(true);
    for (const url of ['', 'hello', 'ftp://example.com/']) expect(fits('sandbox', 'lightning', lnurl(url))).toBe(false);
  });
  test('a Lightning address', () => {
    for (const text of ['shop@example.com', 'a.b+c_d-1@pay.example.co', 'x@localhost:8080', 'x@127.0.0.1:9']) {
      expect(fits('sandbox', 'lightning', text)).toBe(true);
    }
    for (const text of [
      '@example.com',
      'shop@',
      'shop@.com',
      'shop@example..com',
      'shop@-a.com',
      'a@b@c',
      'shop@example.com:',
      'hello',
    ]) {
      expect(fits('sandbox', 'lightning', text)).toBe(false);
    }
  });
});

test('whatever is sent is answered, never thrown', () => {
  const methods = fc.constantFrom<Method>('lightning', 'bitcoin', 'usdt');
  const prefixes = fc.constantFrom('', '0x', 'lnbcrt1', 'lnurl1', 'bcrt1q', 'x@');
  fc.assert(
    fc.property(methods, prefixes, fc.string(), (method, prefix, text) => {
      expect(() => createDestinations('sandbox').problem(method, prefix + text)).not.toThrow();
    }),
  );
});
