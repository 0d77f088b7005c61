// Payouts that our address has too little for, more of them than one look takes: what is behind them is paid all the same.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MOST_QUEUED } from '../../src/flow/evm/batches.ts';
import { requestTokenPayout } from '../../src/flow/evm/request.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { fund } from '../support/funded.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'a9'.repeat(20)}`;
let service: EvmService;
beforeAll(async () => {
  service = await openEvmService();
  await service.mine(70);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

test('a small one behind more than a look takes is paid', { timeout: TIMEOUT }, async () => {
  const { ctx, merchantId } = service;
  await fund(ctx, merchantId, 1_000_000_000_000n, 'USDT');
  await service.price();
  const asked = async (amount: string): Promise<string> =>
    (await requestTokenPayout(ctx, { merchantId, amount, destination: PAYEE })).id;
  // our address has a thousand
  for (let n = 0; n <= MOST_QUEUED; n++) await asked('5000');
  const small = await asked('50');
  for (let n = 0; n < 3; n++) await service.work(1_000);
  expect((await readPayout(service.db, small))?.txid).toMatch(/^0x[0-9a-f]{64}$/);
  expect(service.told.join()).toMatch(/has too little USDT/);
});
