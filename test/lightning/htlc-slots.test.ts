// More invoices whose recipients hold the payment than a channel has HTLC slots (483), asked for by several merchants: each ties up ten, and what others
// ask for goes on. On the simulated node, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { MOST_UNDER_WAY } from '../../src/core/lightning/under-way.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createHeldPayouts } from '../../src/worker/payouts/held-payouts.ts';
import { at, close, engine, invoice, open, outgoing, pass } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const SLOTS = 483;
const AMOUNT = '0.000001';

/** A merchant with 100,000 satoshis that came in over Lightning. */
async function funded(username: string): Promise<bigint> {
  const of = { username, password: 'correct horse battery', email: `${username}@example.com`, businessName: username };
  const { affiliateId } = await addMerchant(at.ctx, of);
  const { rows } = await at.admin.query('select id from merchants where affiliate_id = $1', [affiliateId]);
  const merchantId = BigInt(rows[0].id);
  const asked = { merchantId, usdMinor: 100_00n, method: 'BTC-LN', label: null, email: null } as const;
  const made = await createTransaction(at.ctx, asked);
  expect(await engine.pay(made.address, await at.hashOf(made.transactionId))).toBe(true);
  return merchantId;
}

test('513 payments that are held leave slots for everybody else', { timeout: 180_000 }, async () => {
  const holders = [at.merchantId, await funded('second'), await funded('third')];
  const others = [await funded('fourth'), await funded('fifth')];
  await at.work();
  const asked = Math.ceil((SLOTS + 30) / holders.length);
  const ids: string[][] = holders.map(() => []);
  for (let n = 0; n < asked; n++)
    for (const [k, holder] of holders.entries())
      ids[k]?.push((await at.request(invoice('hold', 100_000n).request, AMOUNT, holder)).id);
  const letGo = async (): Promise<void> => void (await createHeldPayouts(at.ctx, () => undefined).run());
  for (let n = 0; n < 3; n++) {
    pass(16_000);
    await letGo();
    await at.look();
  }
  expect(outgoing().inFlight()).toHaveLength(holders.length * MOST_UNDER_WAY);
  for (const other of others) {
    const to = invoice('pay', 100_000n);
    const { id } = await at.request(to.request, AMOUNT, other);
    pass(1_000);
    await at.look();
    expect(await at.payout(id, other)).toMatchObject({ status: 'completed' });
  }
  // one that ends lets the next of its merchant go, and only that
  const [first = ''] = ids[1] ?? [];
  const { payment_hash: hash } = await at.payment(first);
  outgoing().resolve(hash as string, true);
  for (let n = 0; n < 3; n++) {
    pass(16_000);
    await at.look();
    await letGo();
  }
  await at.look();
  expect(await at.payout(first, holders[1])).toMatchObject({ status: 'completed' });
  expect(outgoing().inFlight()).toHaveLength(holders.length * MOST_UNDER_WAY);
  expect(await at.compared()).toEqual([]);
});
