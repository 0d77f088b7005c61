// A currency whose node was taken out of the configuration while its transactions were open: nobody sees their payments, and the operator is told so.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readReadiness } from '../../src/flow/readiness.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const TOLD = 'BTC: transactions are open, and no node is configured: nobody sees their payments';
const DAY = 24 * 60 * 60_000;
let service: ServiceOnDatabase;
beforeEach(async () => {
  service = await openServiceOnDatabase();
});
afterEach(() => service.drop());

const problems = async (): Promise<readonly string[]> =>
  (await readReadiness({ ...service.ctx, currencies: ['LTC'] }, ['LTC'])).problems;

test('it is a problem from the first open transaction until the last one is settled', async () => {
  expect(await problems()).not.toContain(TOLD);
  const { transactionId } = await service.create();
  expect(await problems()).toContain(TOLD);
  const sent = await service.pay(transactionId, 50_000n);
  await service.judge();
  expect(await problems()).toContain(TOLD);
  await service.mine(6);
  await service.judge();
  expect(sent.currency).toBe('BTC');
  expect(await problems()).toContain(TOLD);
  for (let day = 0; day < 3; day++) {
    await service.wait(DAY);
    await service.judge();
  }
  expect(await service.path(transactionId)).toContain('settled');
  expect(await problems()).not.toContain(TOLD);
});

test('a currency that has its node back is none, and neither is one that nobody pays with', async () => {
  await service.create();
  expect((await readReadiness(service.ctx, service.ctx.currencies)).problems).not.toContain(TOLD);
  expect(await problems()).toContain(TOLD);
  expect((await problems()).filter((one) => one.startsWith('LTC'))).toEqual([]);
});
