import { randomBytes } from 'node:crypto';
import { cashAddressToLockingBytecode, encodeCashAddress as libauthCashAddress } from '@bitauth/libauth';
import { Address, OutScript } from '@scure/btc-signer';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chainNetwork, type Network, type UtxoCode, utxoRow } from '../../src/core/currency.ts';
import { addressEncoder, decodeAddress } from '../../src/outside/utxo/address.ts';
import { encodeCashAddress } from '../../src/outside/utxo/cashaddr.ts';
import { FIRST_ADDRESSES } from './vectors.ts';

const CODES: readonly UtxoCode[] = ['BTC', 'LTC', 'BCH', 'DASH', 'DOGE'];
const NETWORKS: readonly Network[] = ['mainnet', 'testnet', 'regtest', 'sandbox'];
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
function scriptOf(currency: UtxoCode, network: Network, text: string): string {
  const decoded = decodeAddress(currency, network, text);
  if ('problem' in decoded) throw new Error(decoded.problem);
  return hex(decoded.script);
}
function problemOf(currency: UtxoCode, network: Network, text: string): string {
  const decoded = decodeAddress(currency, network, text);
  if ('problem' in decoded) return decoded.problem;
  throw new Error(`${text} was accepted as ${decoded.kind}`);
}

describe('segwit addresses', () => {
  it.each([
    ['mainnet', 'BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4', '0014751e76e8199196d454941c45d1b3a323f1433bd6'],
    [
      'testnet',
      'tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7',
      '00201863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262',
    ],
    [
      'testnet',
      'tb1qqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesrxh6hy',
      '0020000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433',
    ],
    [
      'testnet',
      'tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c',
      '5120000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433',
    ],
    [
      'mainnet',
      'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0',
      '512079be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
    ],
  ] as const)('reads the valid vectors of BIP350 that have a meaning: %s %s', (network, text, script) => {
    expect(scriptOf('BTC', network, text)).toBe(script);
  });

  it.each([
    'bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y',
    'BC1SW50QGDZ25J',
    'bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs',
  ])('refuses a valid vector whose version has no meaning yet: %s', (text) => {
    expect(problemOf('BTC', 'mainnet', text)).toMatch(/witness version \d+ with \d+ bytes has no meaning yet/);
  });

  it.each([
    'tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut',
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd',
    'tb1z0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqglt7rf',
    'BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh',
    'tb1q0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq24jc47',
    'bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4',
    'BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R',
    'bc1pw5dgrnzv',
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav',
    'BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P',
    'tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47Zagq',
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf',
    'tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vpggkg4j',
    'bc1gmk9yu',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5',
    'bc1rw5uspcuh',
    'bc1zw508d6qejxtdg4y5r3zarvaryvqyzf3du',
    'tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3pjxtptv',
  ])('refuses the invalid vectors of BIP173 and BIP350: %s', (text) => {
    for (const network of NETWORKS) problemOf('BTC', network, text);
  });

  it('says which encoding a version needs', () => {
    const text = 'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd';
    expect(problemOf('BTC', 'mainnet', text)).toContain('bech32m');
  });

  it('refuses Litecoin MWEB addresses by their own sentence', () => {
    expect(problemOf('LTC', 'regtest', 'tmweb1qqdu0g7xrp4lpnh3zp')).toMatch(/MWEB/);
    expect(problemOf('LTC', 'mainnet', 'ltcmweb1qq2gtwq5lz2')).toMatch(/MWEB/);
  });

  it.each([
    ['BTC', 'mainnet', 'tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7'],
    ['BTC', 'regtest', FIRST_ADDRESSES.BTC[0]],
    ['LTC', 'mainnet', FIRST_ADDRESSES.BTC[0]],
    ['BTC', 'mainnet', FIRST_ADDRESSES.LTC[0]],
    ['DOGE', 'mainnet', FIRST_ADDRESSES.BTC[0]],
    ['DASH', 'mainnet', FIRST_ADDRESSES.DOGE[0]],
    ['BTC', 'mainnet', FIRST_ADDRESSES.DOGE[0]],
    ['BTC', 'mainnet', FIRST_ADDRESSES.BCH[0]],
    ['BCH', 'regtest', FIRST_ADDRESSES.BCH[0]],
    ['BCH', 'mainnet', '1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu'],
  ] as const)('%s on %s refuses the foreign address %s', (currency, network, text) => {
    expect(problemOf(currency, network, text as string)).toMatch(/./);
  });
});

describe('base58 addresses', () => {
  it('reads P2PKH and P2SH', () => {
    expect(scriptOf('BTC', 'mainnet', '1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu')).toBe(
      '76a91476a04053bda0a88bda5177b86a15c3b29f55987388ac',
    );
    expect(scriptOf('BTC', 'mainnet', '3CWFddi6m4ndiGyKqzYvsFYagqDLPVMTzC')).toBe(
      'a91476a04053bda0a88bda5177b86a15c3b29f55987387',
    );
  });

  it("reads Litecoin's script addresses in the old and the new form as one script", () => {
    const script = scriptOf('LTC', 'mainnet', '3CWFddi6m4ndiGyKqzYvsFYagqDLPVMTzC');
    expect(script).toBe('a91476a04053bda0a88bda5177b86a15c3b29f55987387');
    const { address } = utxoRow('LTC').utxo;
    const modern = Address({ bech32: 'ltc', pubKeyHash: 0x30, scriptHash: address.mainnet.scriptHash, wif: 0xb0 }).encode({
      type: 'sh',
      hash: Uint8Array.from(Buffer.from(script.slice(4, 44), 'hex')),
    });
    expect(modern).toMatch(/^M/);
    expect(scriptOf('LTC', 'mainnet', modern)).toBe(script);
  });

  it.each([
    '1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggv',
    '1BpEi6DfDAUFd7GtittLSdBeYJvcoaVgg',
    '1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu ',
    ' 1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu',
    '1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggO',
    '0BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu',
    '1bPeI6dFdauFD7gTITTlsDbEyjVCOAvGGU',
    '',
    '1',
    '1111111111111111111111111111111111',
    'é'.repeat(34),
    '\u0000',
    'x'.repeat(131),
    // private keys and other base58check texts of a wrong length
    '5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ',
    'xpub6CUGRUonZSQ4TWtTMmzXdrXDtypWKiKrhko4egpiMZbpiaQL2jkwSB1icqYh2cfDfVxdx4df189oLKnC5fSwqPfgyP3hooxujYzAu3fDVmz',
  ])('refuses %j', (text) => {
    for (const currency of CODES) for (const network of NETWORKS) problemOf(currency, network, text);
  });
});

describe('CashAddr', () => {
  it.each([
    ['1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu', 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'],
    ['1KXrWXciRDZUpQwQmuM1DbwsKDLYAYsVLR', 'bitcoincash:qr95sy3j9xwd2ap32xkykttr4cvcu7as4y0qverfuy'],
    ['16w1D5WRVKJuZUsSRzdLp9w3YGcgoxDXb', 'bitcoincash:qqq3728yw0y47sqn6l2na30mcw6zm78dzqre909m2r'],
    ['3CWFddi6m4ndiGyKqzYvsFYagqDLPVMTzC', 'bitcoincash:ppm2qsznhks23z7629mms6s4cwef74vcwvn0h829pq'],
    ['3LDsS579y7sruadqu11beEJoTjdFiFCdX4', 'bitcoincash:pr95sy3j9xwd2ap32xkykttr4cvcu7as4yc93ky28e'],
    ['31nwvkZwyPdgzjBJZXfDmSWsC4ZLKpYyUw', 'bitcoincash:pqq3728yw0y47sqn6l2na30mcw6zm78dzq5ucqzc37'],
  ])('is the same script as the legacy address of the specification: %s', (legacy, cash) => {
    const script = scriptOf('BTC', 'mainnet', legacy);
    expect(scriptOf('BCH', 'mainnet', cash)).toBe(script);
    expect(scriptOf('BCH', 'mainnet', cash.slice('bitcoincash:'.length))).toBe(script);
    expect(scriptOf('BCH', 'mainnet', cash.toUpperCase())).toBe(script);
    problemOf('BCH', 'mainnet', cash.replace('b', 'B'));
    problemOf('BCH', 'mainnet', cash.replace('bitcoincash', 'bchtest'));
    problemOf('BCH', 'mainnet', `${cash.slice(0, -1)}${cash.endsWith('q') ? 'p' : 'q'}`);
  });

  it('encodes and reads what libauth does', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 20, maxLength: 20 }), fc.constantFrom('p2pkh', 'p2sh'), (payload, kind) => {
        const theirs = libauthCashAddress({ prefix: 'bchreg', type: kind, payload, throwErrors: true }).address;
        expect(encodeCashAddress('bchreg', kind, payload)).toBe(theirs);
        const locking = cashAddressToLockingBytecode(theirs);
        if (typeof locking === 'string') throw new Error(locking);
        expect(scriptOf('BCH', 'regtest', theirs)).toBe(hex(locking.bytecode));
      }),
      { numRuns: 50 },
    );
  });

  it('reads 32-byte script hashes and token-aware addresses', () => {
    for (const type of ['p2sh', 'p2shWithTokens', 'p2pkhWithTokens'] as const) {
      const payload = Uint8Array.from(randomBytes(type === 'p2pkhWithTokens' ? 20 : 32));
      const text = libauthCashAddress({ prefix: 'bitcoincash', type, payload, throwErrors: true }).address;
      const locking = cashAddressToLockingBytecode(text);
      if (typeof locking === 'string') throw new Error(locking);
      expect(scriptOf('BCH', 'mainnet', text)).toBe(hex(locking.bytecode));
    }
  });

  it('refuses sizes without a meaning', () => {
    const text = encodeCashAddress('bitcoincash', 'p2pkh', new Uint8Array(24));
    expect(problemOf('BCH', 'mainnet', text)).toContain('no meaning');
  });

  it('notices every change of one letter', () => {
    const text = FIRST_ADDRESSES.BCH[0] as string;
    const letters = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
    for (let i = 'bitcoincash:'.length; i < text.length; i++) {
      const other = letters[(letters.indexOf(text[i] as string) + 1) % 32];
      problemOf('BCH', 'mainnet', text.slice(0, i) + other + text.slice(i + 1));
    }
  });
});

describe('our own addresses', () => {
  it.each(CODES.flatMap((currency) => NETWORKS.map((network) => ({ currency, network }))))(
    'decode to their own script and to no other currency: $currency on $network',
    ({ currency, network }) => {
      const encode = addressEncoder(currency, network);
      fc.assert(
        fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (x) => {
          const { address, script } = encode(Uint8Array.of(2, ...x));
          expect(scriptOf(currency, network, address)).toBe(hex(script));
          if (currency !== 'BCH') {
            const p = utxoRow(currency).utxo.address[chainNetwork(network)];
            const parameters = { bech32: p.bech32 ?? 'none', pubKeyHash: p.pubKeyHash, scriptHash: p.scriptHash, wif: p.wif };
            expect(hex(OutScript.encode(Address(parameters).decode(address)))).toBe(hex(script));
          }
        }),
        { numRuns: 20 },
      );
    },
  );

  it('never throw for any text', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...CODES),
        fc.constantFrom(...NETWORKS),
        fc.string({ maxLength: 140, unit: 'binary' }),
        (currency, network, text) => {
          expect(decodeAddress(currency, network, text)).toHaveProperty('problem');
        },
      ),
      { numRuns: 200 },
    );
  });
});
