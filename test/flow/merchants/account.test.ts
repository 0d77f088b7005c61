// What a merchant can read of itself: registration and available balances.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { getAccount } from '../../../src/flow/merchants/account.ts';
import { addMerchant } from '../../../src/flow/merchants/merchants.ts';
import { findMerchantId } from '../../../src/store/merchants/merchants.ts';
import { makeSignInSetup, PASSWORD, type SignInSetup } from '../sign-in/setup.ts';

let setup: SignInSetup;
beforeAll(async () => {
  setup = await makeSignInSetup();
});
afterAll(() => setup.end());

async function post(key: string, lines: readonly { a: string; v: string }[]): Promise<void> {
  await setup.ctx.db.query({
    text: 'select * from ledger.post($1, $2, $3::jsonb, $4)',
    values: [key, 'test_credit', JSON.stringify(lines), new Date(setup.ctx.ports.clock.now())],
  });
}

describe('the account', () => {
  it('has the registration and all seven balances in their order, zero where nothing was booked', async () => {
    const now = setup.ctx.ports.clock.now();
    const { affiliateId } = await addMerchant(setup.ctx, {
      username: 'a',
      password: PASSWORD,
      email: 'a@example.com',
      businessName: ' Café ',
    });
    const merchantId = (await findMerchantId(setup.ctx.db, affiliateId)) as bigint;
    const account = await getAccount(setup.ctx, { merchantId });
    expect(account).toMatchObject({ affiliateId, email: 'a@example.com', businessName: 'Café', createdAtMs: now });
    expect(Object.entries(account.balances)).toEqual(
      ['BTC', 'LTC', 'ETH', 'BCH', 'DASH', 'DOGE', 'USDT'].map((code) => [code, 0n]),
    );
  });

  it('shows what is available, exactly, and nothing that is held, in suspense or another merchant’s', async () => {
    const mine = (await findMerchantId(setup.ctx.db, setup.affiliateId)) as bigint;
    const wei = '12345678901234567890123';
    await post('test:eth', [
      { a: 'asset:chain:ETH', v: wei },
      { a: `merchant:${mine}:available:ETH`, v: `-${wei}` },
    ]);
    await post('test:btc', [
      { a: 'asset:chain:BTC', v: '100' },
      { a: `merchant:${mine}:available:BTC`, v: '-60' },
      { a: `merchant:${mine}:held:BTC`, v: '-30' },
      { a: 'suspense:txn_1:BTC', v: '-10' },
    ]);
    const other = await addMerchant(setup.ctx, { username: 'b', password: PASSWORD, email: 'b@example.com', businessName: 'B' });
    const otherId = (await findMerchantId(setup.ctx.db, other.affiliateId)) as bigint;
    await post('test:other', [
      { a: 'asset:chain:BTC', v: '7' },
      { a: `merchant:${otherId}:available:BTC`, v: '-7' },
    ]);
    const { balances } = await getAccount(setup.ctx, { merchantId: mine });
    expect(balances).toEqual({ BTC: 60n, LTC: 0n, ETH: BigInt(wei), BCH: 0n, DASH: 0n, DOGE: 0n, USDT: 0n });
    expect((await getAccount(setup.ctx, { merchantId: otherId })).balances.BTC).toBe(7n);
  });
});
