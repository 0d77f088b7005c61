import { createHash } from 'node:crypto';
import { createBase58check } from '@scure/base';
import { HDKey } from '@scure/bip32';
import { describe, expect, it } from 'vitest';
import { AccountKeyProblem } from '../../src/core/account-key.ts';
import type { Network, UtxoCode } from '../../src/core/currency.ts';
import { readAccountKey } from '../../src/outside/utxo/derive.ts';
import { account, BIP84_ZPRV, BIP84_ZPUB, canonicalVersions } from './vectors.ts';

const base58check = createBase58check((bytes: Uint8Array) => createHash('sha256').update(bytes).digest());
function withVersion(text: string, version: number): string {
  const bytes = base58check.decode(text);
  new DataView(bytes.buffer, bytes.byteOffset).setUint32(0, version);
  return base58check.encode(bytes);
}
function problemOf(currency: UtxoCode, network: Network, text: string): AccountKeyProblem {
  try {
    readAccountKey(currency, network, text);
  } catch (error) {
    if (error instanceof AccountKeyProblem) {
      expect(error.message).not.toContain(text);
      return error;
    }
    throw error;
  }
  throw new Error('it was accepted');
}

describe('reading an account key', () => {
  it.each([
    { currency: 'BTC', network: 'mainnet', form: 'xpub', version: 0x0488b21e },
    { currency: 'BTC', network: 'mainnet', form: 'ypub', version: 0x049d7cb2 },
    { currency: 'BTC', network: 'mainnet', form: 'zpub', version: 0x04b24746 },
    { currency: 'LTC', network: 'mainnet', form: 'Ltub', version: 0x019da462 },
    { currency: 'LTC', network: 'mainnet', form: 'Mtub', version: 0x01b26ef6 },
    { currency: 'DOGE', network: 'mainnet', form: 'dgub', version: 0x02facafd },
    { currency: 'DASH', network: 'mainnet', form: 'drkp', version: 0x02fe52cc },
    { currency: 'BCH', network: 'mainnet', form: 'xpub', version: 0x0488b21e },
    { currency: 'BTC', network: 'testnet', form: 'tpub', version: 0x043587cf },
    { currency: 'BTC', network: 'regtest', form: 'vpub', version: 0x045f1cf6 },
    { currency: 'LTC', network: 'regtest', form: 'ttub', version: 0x0436f6e1 },
  ] as const)('accepts $form for $currency on $network and keeps its canonical form', ({ currency, network, form, version }) => {
    const canonical = account(currency, network).publicExtendedKey;
    const key = readAccountKey(currency, network, withVersion(canonical, version));
    expect(key.form).toBe(form);
    expect(key.xpub).toBe(canonical);
    expect(key.xpub).toMatch(network === 'mainnet' ? /^xpub/ : /^tpub/);
  });

  it('reads the zpub of BIP84 as its xpub', () => {
    expect(readAccountKey('BTC', 'mainnet', BIP84_ZPUB).xpub).toBe(account('BTC').publicExtendedKey);
  });

  it('refuses private keys in every form, whatever their version bytes say, and does not repeat them', () => {
    expect(problemOf('BTC', 'mainnet', BIP84_ZPRV).fault).toBe('private');
    const xprv = account('BTC').privateExtendedKey;
    expect(problemOf('BTC', 'mainnet', xprv).fault).toBe('private');
    expect(problemOf('BTC', 'mainnet', withVersion(xprv, 0x0488b21e)).fault).toBe('private');
    expect(problemOf('LTC', 'regtest', withVersion(xprv, 0x04358394)).fault).toBe('private');
    expect(problemOf('DOGE', 'mainnet', withVersion(xprv, 0x02fac398)).message).toMatch(/PRIVATE.*not stored/);
  });

  it('refuses keys of another network', () => {
    const main = account('BTC').publicExtendedKey;
    const test = account('BTC', 'regtest').publicExtendedKey;
    expect(problemOf('BTC', 'regtest', main)).toMatchObject({
      fault: 'wrong-network',
      message: expect.stringContaining('accepted are tpub'),
    });
    expect(problemOf('BTC', 'mainnet', test).fault).toBe('wrong-network');
    expect(problemOf('BTC', 'sandbox', main).fault).toBe('wrong-network');
  });

  it('refuses a form that belongs to another currency', () => {
    expect(problemOf('BTC', 'mainnet', withVersion(BIP84_ZPUB, 0x02facafd)).fault).toBe('wrong-currency');
    expect(problemOf('DOGE', 'mainnet', BIP84_ZPUB).fault).toBe('wrong-currency');
  });

  it('says of an account that is not hardened that this is what is wrong', () => {
    const account = HDKey.fromMasterSeed(new Uint8Array(32).fill(7)).derive("m/84'/0'");
    const { fault, message } = problemOf('BTC', 'mainnet', account.deriveChild(5).publicExtendedKey);
    expect(fault).toBe('wrong-depth');
    expect(message).toBe(
      "xpub is of account 5, which is not hardened: accepted is the key of a hardened account (m/84'/coin'/5')",
    );
  });

  it('refuses depths other than an account', () => {
    const own = account('BTC');
    expect(problemOf('BTC', 'mainnet', own.deriveChild(0).publicExtendedKey)).toMatchObject({ fault: 'wrong-depth' });
    expect(problemOf('BTC', 'mainnet', own.deriveChild(0).publicExtendedKey).message).toContain('depth 4');
  });

  it('refuses a point that is not on the curve, a wrong checksum, lengths and other texts', () => {
    const bytes = base58check.decode(BIP84_ZPUB);
    bytes.fill(0xff, 46);
    expect(problemOf('BTC', 'mainnet', base58check.encode(bytes)).fault).toBe('not-on-curve');
    expect(problemOf('BTC', 'mainnet', `${BIP84_ZPUB.slice(0, -1)}t`).fault).toBe('malformed');
    expect(problemOf('BTC', 'mainnet', base58check.encode(bytes.subarray(0, 77))).fault).toBe('malformed');
    expect(problemOf('BTC', 'mainnet', withVersion(BIP84_ZPUB, 0x12345678)).fault).toBe('malformed');
    expect(problemOf('BTC', 'mainnet', 'bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu').fault).toBe('malformed');
    expect(problemOf('BTC', 'mainnet', '0OIl').fault).toBe('malformed');
  });

  it('knows the version bytes that the vectors use', () => {
    expect(canonicalVersions('mainnet').public).toBe(0x0488b21e);
  });
});
