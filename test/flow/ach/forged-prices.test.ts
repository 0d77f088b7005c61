// Whoever has the database's password, as the role of the service, changes what a balance is worth in dollars for nobody: prices are sealed.
import { afterEach, describe, expect, test } from 'vitest';
import { bookReturn } from '../../../src/flow/ach/progress.ts';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { auditSeals } from '../../../src/flow/merchants/seals.ts';
import { latestRates } from '../../../src/store/transactions/rates.ts';
import { testBank } from '../../support/bank.ts';
import { fund } from '../../support/funded.ts';
import { BTC, ctx, merchantsForAll, shopWith, world } from '../payouts/merchants.ts';

merchantsForAll();

const ACCOUNT = 'ach:021000021:123456789';

describe('a price of his own', () => {
  afterEach(() => world.rate('100000.00'));

  test.each([
    ['raised', `update rates set usd = usd * 100 where currency = 'BTC'`],
    ['dated anew', `update rates set at = at + interval '1 second' where currency = 'BTC'`],
    [
      "another currency's",
      `update rates r set usd = o.usd, at = o.at, seal = o.seal from rates o where o.currency = 'BTC' and r.currency = 'LTC'`,
    ],
    ['without a seal', `update rates set seal = null where currency in ('BTC', 'LTC')`],
  ])('(%s) converts nothing, and the audit names it', async (_, text) => {
    const merchantId = await shopWith(BTC);
    await fund(ctx, merchantId, 100_000_000n, 'LTC');
    await ctx.db.query({ text, values: [] });
    const sourceCurrency = text.includes(`'LTC'`) ? 'LTC' : 'BTC';
    const asked = requestAchPayout(ctx, { merchantId, amount: '100', destination: ACCOUNT, sourceCurrency });
    await expect(asked).rejects.toMatchObject({ code: 'rate_unavailable' });
    expect((await auditSeals(ctx)).findings).toContain(
      `the price of ${sourceCurrency} is not what was sealed: nothing is sold, paid or converted by it`,
    );
    await world.rate('100000.00');
    expect((await auditSeals(ctx)).findings).toEqual([]);
    expect(await requestAchPayout(ctx, { merchantId, amount: '100', destination: ACCOUNT, sourceCurrency })).toMatchObject({
      status: 'processing',
    });
  });

  test('brings no return back in a currency', async () => {
    const bank = testBank(ctx, { dedupes: false });
    bank.state.isWitness = true;
    await bank.look();
    const merchantId = await shopWith(BTC);
    const { id } = await requestAchPayout(ctx, { merchantId, amount: '100', destination: ACCOUNT, sourceCurrency: null });
    bank.cutOff();
    await bank.look();
    await ctx.db.query({ text: `update rates set usd = usd / 100 where currency = 'BTC'`, values: [] });
    expect(await latestRates(ctx.db, ctx.ports.seals, ['BTC'], world.now())).toEqual(new Map());
    const trace = (await world.admin.query('select trace from ach_entries where payout_id = $1', [id])).rows[0].trace;
    const returned = { trace, reference: '', cents: 99_00n, code: 'R01', error: 'no funds' };
    expect(await bookReturn(ctx, returned, { stopsOnUnknown: false })).toBe('unpriced');
  });
});
