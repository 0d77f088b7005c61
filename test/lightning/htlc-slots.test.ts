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

test('merchants that all have their payments held share the slots with one that is not there yet', {
  timeout: 120_000,
}, async () => {
  const holders = [at.merchantId, await funded('second'), await funded('third')];
  const other = await funded('fourth');
  await at.work();
  // as channels of 16 slots say it, of which none is taken by others
  const slots = 16;
  const over = {
    node: async () => ({ ...(await at.paying.node()), freeSlots: slots - outgoing().inFlight().length }),
  };
  for (let n = 0; n < MOST_UNDER_WAY; n++)
    for (const holder of holders) await at.request(invoice('hold', 100_000n).request, AMOUNT, holder);
  const looks = async (times: number): Promise<void> => {
    for (let n = 0; n < times; n++) {
      pass(16_000);
      await at.look(over);
    }
  };
  await looks(4);
  // each has four, and one more of any would leave fewer than that
  expect(outgoing().inFlight()).toHaveLength(12);
  const to = invoice('pay', 100_000n);
  const { id } = await at.request(to.request, AMOUNT, other);
  await looks(1);
  expect(await at.payout(id, other)).toMatchObject({ status: 'completed' });
  const held = invoice('hold', 100_000n);
  await at.request(held.request, AMOUNT, other);
  await looks(1);
  expect(outgoing().payment(held.hash)).toMatchObject({ status: 'IN_FLIGHT' });
  expect(outgoing().inFlight()).toHaveLength(13);
  const { hash } = outgoing().inFlight()[0]!;
  outgoing().resolve(hash, true);
  await looks(2);
  // four are free then, and the next of the one that has three would leave three
  expect(outgoing().inFlight()).toHaveLength(12);
  expect(await at.compared()).toEqual([]);
});
