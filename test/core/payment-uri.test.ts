// What a wallet reads from a QR code: BIP 321 and ERC-681.
import { expect, test } from 'vitest';
import { paymentUri } from '../../src/core/payment-uri.ts';

const mainnet = { network: 'mainnet', tokenContract: '0xdAC17F958D2ee523a2206206994597C13D831ec7' } as const;
const address = '0x9858EfFD232B4033E47d90003D41EC34EcaEda94';

test.each([
  [
    'BTC',
    'bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu',
    123_456n,
    'bitcoin:bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu?amount=0.00123456',
  ],
  [
    'BCH',
    'bitcoincash:qqyx49mu0kkn9ftfj6hje6g2wfer34yfnq5tahq3q6',
    1n,
    'bitcoincash:qqyx49mu0kkn9ftfj6hje6g2wfer34yfnq5tahq3q6?amount=0.00000001',
  ],
  ['ETH', address, 15_625_000_000_000_000n, `ethereum:${address}@1?value=15625000000000000`],
  ['USDT', address, 50_000_000n, `ethereum:${mainnet.tokenContract}@1/transfer?address=${address}&uint256=50000000`],
] as const)('of %s', (currency, to, amount, uri) => {
  expect(paymentUri(currency, to, amount, mainnet)).toBe(uri);
});

test('names the chain of the network, so that nobody pays on another one', () => {
  const contract = '0x5FbDB2315678afecb367f032d93F642f64180aa3';
  expect(paymentUri('ETH', address, 1n, { network: 'sandbox', tokenContract: contract })).toBe(
    `ethereum:${address}@31337?value=1`,
  );
  expect(paymentUri('ETH', address, 1n, { network: 'testnet', tokenContract: null })).toBe(
    `ethereum:${address}@11155111?value=1`,
  );
  expect(() => paymentUri('USDT', address, 1n, { network: 'testnet', tokenContract: null })).toThrow('contract of USDT');
});
