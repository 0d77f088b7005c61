// Database and signer were put back together, to before ether had left from the address that pays for gas: what is signed at its nonce now can never be
// mined, and what was sent then is booked.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { fund } from '../support/funded.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b5'.repeat(20)}`;
const STRANGER = `0x${'5b'.repeat(20)}`;
const LATER_MS = 61_000;
const FINAL = 65;
let service: EvmService;

beforeAll(async () => {
  service = await openEvmService({ gasOfUsdt: 0n });
  await fund(service.ctx, service.merchantId, 500_000_000n, 'USDT');
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

test('ether for gas that is displaced by what was forgotten is sent again once that is booked', {
  timeout: TIMEOUT,
}, async () => {
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  expect(await service.batches('top_up')).toMatchObject([{ state: 'signed', nonce: 0 }]);
  await service.anvil.rpc('anvil_dropAllTransactions');
  const hot = await service.hot('ETH');
  await service.anvil.rpc('anvil_impersonateAccount', hot);
  const txid = await service.anvil.rpc<string>('eth_sendTransaction', { from: hot, to: STRANGER, value: '0x64' });
  await service.mine(FINAL);
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  expect(await service.batches('top_up')).toMatchObject([{ state: 'dead' }]);
  expect((await service.findings()).join()).toMatch(new RegExp(`OUT-3: .*${txid}`));
  await service.price();
  expect(await recoverSent(service.ctx, txid, { by: 'test', acceptsLoss: true })).toMatchObject({ payoutIds: [], lost: 100n });
  expect((await service.findings()).filter((one) => !/INV-19|USDT/.test(one))).toEqual([]);
  await service.goOn();
  service.restart();
  for (let look = 0; look < 6; look++) {
    await service.work(LATER_MS);
    await service.mine(FINAL);
  }
  await service.work(LATER_MS);
  expect((await readPayout(service.db, id))?.status).toBe('completed');
  expect(await service.units(PAYEE)).toBe(50_000_000n);
});
