import { expect, test } from 'vitest';
import { receivingDescriptor, withChecksum } from '../../src/core/descriptor.ts';

const ZPUB_ACCOUNT =
  'xpub6CatWdiZiodmUeTDp8LT5or8nmbKNcuyvz7WyksVFkKB4RHwCD3XyuvPEbvqAQY3rAPshWcMLoP2fMFMKHPJ4ZeZXYVUhLv1VMrjPC7PW6V';

test('a descriptor has the checksum of BIP380', () => {
  expect(withChecksum('raw(deadbeef)')).toBe('raw(deadbeef)#89f8spxm');
  expect(() => withChecksum('raw(déad)')).toThrow('a descriptor has no "é"');
});

test('an account is described by its kind of address, with the origin where it is known', () => {
  const origin = { fingerprint: '73c5da0a', path: "m/84'/0'/0'" };
  expect(receivingDescriptor('BTC', ZPUB_ACCOUNT, origin)).toMatch(
    /^wpkh\(\[73c5da0a\/84h\/0h\/0h\]xpub6CatW\w+\/0\/\*\)#\w{8}$/,
  );
  expect(receivingDescriptor('DOGE', ZPUB_ACCOUNT, null)).toMatch(/^pkh\(xpub6CatW\w+\/0\/\*\)#\w{8}$/);
});
