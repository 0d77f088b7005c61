// Payouts to bank accounts that were requested while the service's clock was fast: once it is set right, the next file pays them.
import { beforeEach, expect, test } from 'vitest';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { testBank } from '../../support/bank.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, row, shopWith, world } from '../payouts/merchants.ts';

merchantsForAll();

const YEAR_MS = 365 * 86_400_000;
const ACCOUNT = 'ach:021000021:123456789';
let bank: ReturnType<typeof testBank>;
beforeEach(async () => {
  bank = testBank(ctx, { dedupes: true });
  await bank.look();
});

test('a payout that a fast clock has dated in the future does not wait for that date', async () => {
  const merchantId = await shopWith(BTC);
  world.setClock(YEAR_MS);
  await world.rate('100000.00');
  const { id } = await requestAchPayout(ctx, { merchantId, amount: '100', destination: ACCOUNT, sourceCurrency: null });
  world.setClock(-YEAR_MS);
  await world.rate('100000.00');
  const { id: later } = await requestAchPayout(ctx, { merchantId, amount: '101', destination: ACCOUNT, sourceCurrency: null });
  bank.cutOff();
  await bank.look();
  expect([(await row(id)).step, (await row(later)).step]).toEqual(['batched', 'batched']);
  expect(bank.executed).toHaveLength(1);
  expect(await ledgerFindings()).toEqual([]);
});

test('one that was requested after the end of the business day still waits for the next', async () => {
  bank.cutOff();
  world.pass(1);
  const { id } = await requestAchPayout(ctx, {
    merchantId: await shopWith(BTC),
    amount: '100',
    destination: ACCOUNT,
    sourceCurrency: null,
  });
  world.pass(2 * 3_600_000);
  await bank.look();
  expect((await row(id)).step).toBe('queued');
});
