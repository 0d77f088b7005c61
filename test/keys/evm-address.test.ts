// Ethereum's addresses against the vectors of EIP-55, and against a second derivation.
import { HDKey } from '@scure/bip32';
import { mnemonicToSeedSync } from '@scure/bip39';
import { expect, test } from 'vitest';
import { addressProblem, checksummed } from '../../src/outside/evm/address.ts';
import { evmAddress } from '../../src/outside/evm/key-address.ts';
import { createAddressDerivers } from '../../src/outside/utxo/address-derivers.ts';
import { canonicalVersions, FIRST_ADDRESSES, MNEMONIC } from './vectors.ts';

const VECTORS = [
  '0x52908400098527886E0F7030069857D2E4169EE7',
  '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
  '0xde709f2102306220921060314715629080e2fb77',
  '0x27b1fdb04752bbc536007a920d24acb045561c26',
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
];

test.each(VECTORS)('%s has its checksum', (address) => {
  expect(checksummed(address.toLowerCase())).toBe(address);
  expect(addressProblem(address)).toBeNull();
  const letter = /[a-f]/i.exec(address.slice(2))?.index as number;
  const other = address[letter + 2] as string;
  const flipped = other === other.toLowerCase() ? other.toUpperCase() : other.toLowerCase();
  const wrong = address.slice(0, letter + 2) + flipped + address.slice(letter + 3);
  if (wrong.slice(2) !== wrong.slice(2).toLowerCase() && wrong.slice(2) !== wrong.slice(2).toUpperCase())
    expect(addressProblem(wrong)).toMatch(/EIP-55/);
});

test('the account m/44h/60h/0h of the test mnemonic gives the published address, both ways', async () => {
  const root = HDKey.fromMasterSeed(mnemonicToSeedSync(MNEMONIC), canonicalVersions('mainnet'));
  const xpub = root.derive("m/44'/60'/0'").publicExtendedKey;
  const derivers = createAddressDerivers('mainnet');
  const first = derivers.of('ETH', xpub).derive(0);
  expect(first.address).toBe(FIRST_ADDRESSES.ETH[0]);
  expect(Buffer.from(first.script).toString('hex')).toBe(`65766d${FIRST_ADDRESSES.ETH[0]?.slice(2).toLowerCase()}`);
  for (const index of [0, 1, 999]) {
    const again = await derivers.rederive('ETH', xpub, index);
    const { address, script } = derivers.of('ETH', xpub).derive(index);
    expect([again.address, Buffer.from(again.script)]).toEqual([address, Buffer.from(script)]);
    const key = root.derive(`m/44'/60'/0'/0/${index}`).publicKey as Uint8Array;
    expect(evmAddress(key).address).toBe(address);
  }
});
