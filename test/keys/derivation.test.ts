import { createRequire } from 'node:module';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { HDKey } from '@scure/bip32';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UnderivableIndex } from '../../src/core/account-key.ts';
import type { Network, UtxoCode } from '../../src/core/currency.ts';
import { createAddressDerivers } from '../../src/outside/utxo/address-derivers.ts';
import { type Curve, childrenOf, createAddressDeriver, nativeCurve, nobleCurve } from '../../src/outside/utxo/derive.ts';
import { account, BIP84_ZPUB, FIRST_ADDRESSES } from './vectors.ts';

const CODES: readonly UtxoCode[] = ['BTC', 'LTC', 'BCH', 'DASH', 'DOGE'];
const NETWORKS: readonly Network[] = ['mainnet', 'testnet', 'regtest', 'sandbox'];
const ORDER = secp256k1.Point.Fn.ORDER;
const scalarBytes = (value: bigint) => Uint8Array.from(Buffer.from(value.toString(16).padStart(64, '0'), 'hex'));
const native = nativeCurve();
const curves: readonly Curve[] = native === null ? [nobleCurve] : [native, nobleCurve];

describe('derivation of receiving addresses', () => {
  it('has the native library on this platform when the package brings a build for it', () => {
    if (process.platform === 'linux' && process.arch === 'x64') expect(native?.name).toBe('native');
  });

  it('never loads what that package falls back to without a build', () => {
    const loaded = Object.keys(createRequire(import.meta.url).cache);
    expect(loaded.filter((file) => file.includes('node_modules/secp256k1/')).length).toBeGreaterThan(0);
    expect(loaded.filter((file) => /node_modules\/(elliptic|bn\.js)\//.test(file))).toEqual([]);
  });

  describe.each(curves)('with the $name curve', (on) => {
    it.each(CODES)('gives the published first addresses of %s', (currency) => {
      const deriver = createAddressDeriver({ currency, network: 'mainnet', xpub: account(currency).publicExtendedKey, on });
      expect(FIRST_ADDRESSES[currency].map((_, index) => deriver.derive(index).address)).toEqual(FIRST_ADDRESSES[currency]);
    });

    it('gives the addresses of BIP84 from the zpub that BIP84 publishes', () => {
      const deriver = createAddressDeriver({ currency: 'BTC', network: 'mainnet', xpub: BIP84_ZPUB, on });
      expect([0, 1].map((index) => deriver.derive(index).address)).toEqual(FIRST_ADDRESSES.BTC);
    });

    it('refuses a tweak that is not below the order, and a sum at infinity', () => {
      const secret = 12345678901234567890n;
      const point = secp256k1.getPublicKey(scalarBytes(secret), true);
      expect(on.tweakAdd(point, scalarBytes(ORDER))).toBeNull();
      expect(on.tweakAdd(point, scalarBytes(2n ** 256n - 1n))).toBeNull();
      expect(on.tweakAdd(point, scalarBytes(ORDER - secret))).toBeNull();
      expect(on.tweakAdd(point, scalarBytes(0n))).toEqual(point);
      expect(on.tweakAdd(point, scalarBytes(ORDER - 1n))).toEqual(secp256k1.getPublicKey(scalarBytes(secret - 1n), true));
    });

    it('agrees with @scure/bip32 at random indexes of random accounts', () => {
      const seeds = fc.uint8Array({ minLength: 32, maxLength: 32 });
      fc.assert(
        fc.property(seeds, fc.integer({ min: 0, max: 0x7fffffff }), (seed, index) => {
          const parent = HDKey.fromMasterSeed(seed);
          const own = { point: parent.publicKey as Uint8Array, chainCode: parent.chainCode as Uint8Array };
          const child = childrenOf(own, on)(index);
          const theirs = parent.deriveChild(index);
          expect(Buffer.from(child.point)).toEqual(Buffer.from(theirs.publicKey as Uint8Array));
          expect(Buffer.from(child.chainCode)).toEqual(Buffer.from(theirs.chainCode as Uint8Array));
        }),
        { numRuns: 60 },
      );
    });
  });

  it('reports an index without a key by its own error and number', () => {
    const never: Curve = { name: 'noble', tweakAdd: () => null };
    const parent = account('BTC');
    const own = { point: parent.publicKey as Uint8Array, chainCode: parent.chainCode as Uint8Array };
    expect(() => childrenOf(own, never)(7)).toThrow(UnderivableIndex);
    expect(() => childrenOf(own, never)(7)).toThrow(/index 7 /);
  });

  it.each([-1, 1.5, 0x80000000, Number.NaN])('refuses the index %s', (index) => {
    const deriver = createAddressDeriver({ currency: 'BTC', network: 'mainnet', xpub: BIP84_ZPUB });
    expect(() => deriver.derive(index)).toThrow(RangeError);
  });

  it.each(CODES.flatMap((currency) => NETWORKS.map((network) => ({ currency, network }))))(
    'agrees with a second library: $currency on $network',
    async ({ currency, network }) => {
      const xpub = account(currency, network).publicExtendedKey;
      const derivers = createAddressDerivers(network);
      const deriver = derivers.of(currency, xpub);
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 0, max: 0x7fffffff }), async (index) => {
          const own = deriver.derive(index);
          const second = await derivers.rederive(currency, xpub, index);
          expect(own.address).toBe(second.address);
          expect(Buffer.from(own.script)).toEqual(Buffer.from(second.script));
          expect([own.index, second.index]).toEqual([index, index]);
        }),
        { numRuns: 8 },
      );
    },
  );
});
