// BOLT11 as we read it: the example of the standard, what another library reads of the same invoices, and everything that must be refused.
import { createHash, randomBytes } from 'node:crypto';
import { bech32 } from '@scure/base';
import { decode } from 'light-bolt11-decoder';
import { describe, expect, test } from 'vitest';
import { decodeInvoice } from '../../src/outside/lightning/bolt11.ts';
import { paymentRequest } from '../../src/sandbox/lightning/bolt11.ts';

/** BOLT11, "Please send 0.0025 BTC for a cup of nonsense within one minute". */
const EXAMPLE =
  'lnbc2500u1pvjluezsp5zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zyg3zygspp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypqdq5xysxxatsyp3k7enxv4jsxqzpu9qrsgquk0rl77nj30yxdy8j9vdx85fkpmdla2087ne0xh8nhedh8w27kyke0lp53ut353s06fv3qfegext0eh0ymjpf39tuven09sam30g4vgpfna3rh';

const key = createHash('sha256').update('a key').digest();
const made = (of: Partial<Parameters<typeof paymentRequest>[0]> = {}) =>
  paymentRequest({
    key,
    amountMsat: 25_000_000n,
    atMs: 1_760_000_000_000,
    paymentHash: Buffer.alloc(32, 7),
    paymentSecret: randomBytes(32),
    description: 'coffee',
    expirySeconds: 600,
    ...of,
  });
const problem = (text: string): string => {
  const read = decodeInvoice('regtest', text);
  return 'problem' in read ? read.problem : '';
};
/** The invoice with other words in the place of some, and its checksum right again. */
function altered(text: string, change: (words: number[]) => number[], prefix?: string): string {
  const decoded = bech32.decode(text as `${string}1${string}`, false);
  return bech32.encode(prefix ?? decoded.prefix, change([...decoded.words]), false);
}

test('the example of the standard has its payee, amount, hash and time', () => {
  expect(decodeInvoice('mainnet', EXAMPLE)).toEqual({
    paymentHash: '0001020304050607080900010203040506070809000102030405060708090102',
    amountMsat: 250_000_000n,
    expiresAtMs: (1_496_314_658 + 60) * 1000,
    payee: '03e7156ae33b0a208d0744199163177e909e80176e55d97a2f221ede0f934dd9ad',
    descriptionHash: null,
  });
  expect(decodeInvoice('mainnet', EXAMPLE.toUpperCase())).toEqual(decodeInvoice('mainnet', EXAMPLE));
});

test.each([0n, 1n, 10n, 999n, 1_000n, 12_345n, 100_000n, 2_500_000n, 100_000_000_000n])(
  'an invoice of %s msat is read as another library reads it',
  (amountMsat) => {
    const text = made({ amountMsat });
    const read = decodeInvoice('regtest', text);
    const { sections } = decode(text) as { sections: { name: string; value?: string }[] };
    const amount = sections.find(({ name }) => name === 'amount')?.value;
    expect(read).toMatchObject({ amountMsat: amount === undefined ? null : BigInt(amount) });
    expect(read).toMatchObject({ amountMsat: amountMsat === 0n ? null : amountMsat, expiresAtMs: 1_760_000_600_000 });
  },
);

test.each([
  ['without a digit', [6, 0, 0], 0],
  ['of 0', [6, 0, 1, 0], 0],
  ['that is given twice', [6, 0, 1, 30, 6, 0, 1, 31], 30],
])('an expiry %s is read as LND reads it', (_what, field, seconds) => {
  const words = (before: number[]) => [...before.slice(0, 7), ...field, ...before.slice(7)];
  expect(decodeInvoice('regtest', altered(made(), words))).toMatchObject({ expiresAtMs: 1_760_000_000_000 + seconds * 1000 });
});

/** With fields of its own before those of the sandbox: the first of each kind counts. */
const withFirst = (...fields: number[][]) =>
  altered(made(), (words) => [...words.slice(0, 7), ...fields.flat(), ...words.slice(7)]);
/** A features field with one bit. */
function bit(n: number): number[] {
  const words = Array<number>(Math.floor(n / 5) + 1).fill(0);
  words[0] = 1 << (n % 5);
  return [5, 0, words.length, ...words];
}

test('one without an expiry has an hour, and money may be locked for two weeks', () => {
  const bare = altered(made(), (words) => {
    const at = words.findIndex((_, n) => [6, 0, 2, 18, 24].every((word, k) => words[n + k] === word));
    return [...words.slice(0, at), ...words.slice(at + 5)];
  });
  expect(decodeInvoice('regtest', bare)).toMatchObject({ expiresAtMs: 1_760_003_600_000 });
  expect(problem(withFirst([24, 0, 3, 1, 31, 0]))).toBe('');
  expect(problem(withFirst([24, 0, 3, 1, 31, 1]))).toContain('for weeks');
});

test.each([8, 14, 16, 24, 48])('feature %s may be required, and any other only be offered', (known) => {
  expect(problem(withFirst(bit(known)))).toBe('');
  expect(problem(withFirst(bit(known + 2)))).toContain(known === 14 ? '' : `feature ${known + 2}`);
  expect(problem(withFirst(bit(known + 3)))).toBe('');
});

test('a node that it names has to be the one that has signed it', () => {
  const other = bech32.toWords(Buffer.alloc(33, 2));
  expect(problem(withFirst([19, 1, 21, ...other]))).toContain('signature');
  // too short: no field, for LND as well
  expect(problem(withFirst([19, 1, 20, ...other.slice(1)]))).toBe('');
});

describe('refused is', () => {
  test('an invoice of another network', () => {
    expect(problem(EXAMPLE)).toContain('starts with lnbcrt');
    expect(problem(made().replace('lnbcrt', 'lntb'))).not.toBe('');
  });
  test('an offer of BOLT12, which is named as such, with what is taken in its place', () => {
    const offer = 'lno1pgx9getnwss8vetrw3hhyuckyypwa3eyt44h6txtxquqh7lz5djge4afgfjn7k4rgrkuag0jsd5xvxg';
    for (const text of [offer, offer.toUpperCase(), offer.replace('lno', 'lni'), offer.replace('lno', 'lnr')])
      expect(problem(text)).toBe(
        'this is of BOLT12, which is not taken: ask for a BOLT11 invoice, an LNURL or a Lightning address',
      );
  });
  test('tenths of a thousandth of a satoshi, which are no matter of the network', () => {
    const of = (amount: string) => problem(altered(made(), (words) => words, `lnbcrt${amount}`));
    for (const amount of ['1p', '25000001p']) expect(of(amount)).toContain('whole number of thousandths of a satoshi');
    expect(of('10p')).toBe('');
    for (const amount of ['p', '01p', '0p', '1x']) expect(of(amount)).toContain('starts with lnbcrt');
  });
  test('a wrong checksum, mixed case, and a text that is cut off', () => {
    const text = made();
    expect(problem(`${text.slice(0, -1)}${text.endsWith('q') ? 'p' : 'q'}`)).toContain('checksum');
    expect(problem(text.slice(0, -10).toUpperCase() + text.slice(-10))).toContain('checksum');
    expect(problem(text.slice(0, 40))).toContain('checksum');
    expect(problem(bech32.encode('lnbcrt', [1, 2, 3], false))).toContain('cut off');
  });
  test('one whose words were changed under its signature', () => {
    const read = decodeInvoice(
      'regtest',
      altered(made(), (words) => words.with(6, (words[6]! + 1) % 32)),
    );
    // whoever changes it signs for another node, and the network finds nobody there
    expect('problem' in read || read.payee).not.toBe((decodeInvoice('regtest', made()) as { payee: string }).payee);
  });
  test('one without payment hash or secret, with a feature that nobody knows, or that would lock money for weeks', () => {
    const fields = (words: number[]) => {
      const found: { tag: number; at: number; end: number }[] = [];
      for (let at = 7; at < words.length - 104; ) {
        const end = at + 3 + words[at + 1]! * 32 + words[at + 2]!;
        found.push({ tag: words[at]!, at, end });
        at = end;
      }
      return found;
    };
    const without = (tag: number) => (words: number[]) => {
      const { at, end } = fields(words).find((one) => one.tag === tag)!;
      return [...words.slice(0, at), ...words.slice(end)];
    };
    const added = (field: number[]) => (words: number[]) => [...words.slice(0, 7), ...field, ...words.slice(7)];
    expect(problem(altered(made(), without(1)))).toContain('payment hash');
    expect(problem(altered(made(), without(16)))).toContain('payment secret');
    expect(problem(altered(made(), without(13)))).toContain('description');
    expect(problem(altered(made(), added([23, 1, 20, ...Array(52).fill(0)])))).toContain('description');
    expect(problem(made({ descriptionHash: Buffer.alloc(32, 1).toString('hex') }))).toBe('');
    const bit30 = [1, 0, 0, 0, 0, 0, 0];
    expect(problem(altered(made(), (words) => added([5, 0, 7, ...bit30])(without(5)(words))))).toContain('feature 30');
    expect(problem(altered(made(), (words) => added([24, 0, 3, 2, 0, 0])(without(24)(words))))).toContain('for weeks');
  });
  test('one that is longer than a destination may be', () => {
    const routes = (n: number) => (words: number[]) => [
      ...words.slice(0, 7),
      ...Array.from({ length: n }, () => [3, 2, 18, ...Array(82).fill(0)]).flat(),
      ...words.slice(7),
    ];
    expect(problem(altered(made(), routes(19)))).toBe('');
    expect(problem(altered(made(), routes(60)))).toContain('at most 2048 characters');
  });
  test.each(['lnbcrt0', 'lnbcrt01u', 'lnbcrt25x', 'lnbcrt1000000000000000000000m'])('the amount of %s', (prefix) => {
    expect(problem(altered(made(), (words) => words, prefix))).toContain('and its amount');
  });
});
