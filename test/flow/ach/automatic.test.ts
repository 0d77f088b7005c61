// Automatic payouts to bank accounts: which balance reaches the threshold, how much of it is paid, and what stays.
import { expect, test } from 'vitest';
import type { CurrencyCode } from '../../../src/core/currency.ts';
import { requestAutomaticPayouts } from '../../../src/flow/payouts/automatic-payouts.ts';
import { setPayoutSettings } from '../../../src/flow/payouts/settings.ts';
import { fund } from '../../support/funded.ts';
import { ctx, ledgerFindings, merchantsForAll, of, refusedWith, shopWith, world } from '../payouts/merchants.ts';

merchantsForAll();

const DAY = 86_400_000;
const ACCOUNT = 'ach:021000021:123456789';

async function shopThatPays(sourceCurrency: CurrencyCode | null, change: { threshold?: string; leave?: string } = {}) {
  const merchantId = await shopWith(0n);
  await setPayoutSettings(ctx, {
    merchantId,
    change: {
      enabled: null,
      method: 'ach',
      destination: ACCOUNT,
      threshold: '150',
      leave: null,
      sourceCurrency,
      paused: null,
      ...change,
    },
  });
  await world.wait(DAY);
  return merchantId;
}
async function pass(): Promise<void> {
  const troubles: unknown[] = [];
  await requestAutomaticPayouts(ctx, { overLightning: false, silent: new Map() }, (_merchant, error) => troubles.push(error));
  expect(troubles).toEqual([]);
}
const payouts = async (merchantId: bigint) =>
  (
    await world.admin.query(
      'select amount_text, source_currency, source_amount, automatic, status from payouts where merchant_id = $1 order by created_at, id',
      [merchantId],
    )
  ).rows;

test('the first balance in the order that reaches the threshold is paid, without what is to be left', async () => {
  const merchantId = await shopThatPays(null, { leave: '20.50' });
  // one bitcoin and one litecoin are 100,000 USD each: bitcoin comes first, and does not reach it
  await fund(ctx, merchantId, 149_999n);
  await pass();
  expect(await payouts(merchantId)).toEqual([]);
  await fund(ctx, merchantId, 200_007n, 'LTC');
  await pass();
  expect(await payouts(merchantId)).toEqual([
    { amount_text: '179.50', source_currency: 'LTC', source_amount: '179500', automatic: true, status: 'processing' },
  ]);
  expect(await of(merchantId, 'available', 'LTC')).toBe(20_507n);
  // at most one is open
  await fund(ctx, merchantId, 1n);
  await pass();
  expect(await payouts(merchantId)).toHaveLength(1);
  expect(await ledgerFindings()).toEqual([]);
});

test('a named balance alone counts', async () => {
  const merchantId = await shopThatPays('LTC');
  await fund(ctx, merchantId, 900_000n);
  await fund(ctx, merchantId, 149_999n, 'LTC');
  await pass();
  expect(await payouts(merchantId)).toEqual([]);
  await fund(ctx, merchantId, 1n, 'LTC');
  await pass();
  expect(await payouts(merchantId)).toMatchObject([{ amount_text: '150.00', source_currency: 'LTC', source_amount: '150000' }]);
});

test('what would leave less than the minimum is not paid, and without a rate nothing is', async () => {
  const merchantId = await shopThatPays(null, { leave: '60' });
  await fund(ctx, merchantId, 155_000n);
  await pass();
  expect(await payouts(merchantId)).toEqual([]);
  await fund(ctx, merchantId, 5_000n);
  await world.admin.query(`update rates set at = at - interval '1 hour'`);
  await pass();
  expect(await payouts(merchantId)).toEqual([]);
  await world.rate('100000.00');
  await pass();
  expect(await payouts(merchantId)).toMatchObject([{ amount_text: '100.00' }]);
});

test('a server without a bank takes no such settings', async () => {
  const merchantId = await shopWith(0n);
  const change = {
    enabled: null,
    method: 'ach',
    destination: ACCOUNT,
    threshold: '150',
    leave: null,
    sourceCurrency: null,
    paused: null,
  } as const;
  expect(await refusedWith(setPayoutSettings({ ...ctx, hasBank: false }, { merchantId, change }))).toBe('currency_unavailable');
});
