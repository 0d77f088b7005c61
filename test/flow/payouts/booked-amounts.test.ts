// What gives money back to a merchant gives what the ledger says was taken, whatever somebody in the database has made of the payout's row.
import { expect, test } from 'vitest';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { approvalAbove, BTC, ctx, ledgerFindings, merchantsForAll, of, request, row, shopWith, world } from './merchants.ts';

merchantsForAll();

const ACCOUNT = 'ach:021000021:123456789';
const asOwner = (text: string, ...values: unknown[]) => world.admin.query(text, values);
const red = async (): Promise<string[]> => [
  ...new Set((await ledgerFindings()).map((finding) => finding.split(':')[0] as string)),
];

/** A merchant with one bitcoin and a payout that waits for approval. */
async function waiting(method: 'ach' | 'bitcoin') {
  const merchantId = await shopWith(BTC);
  await approvalAbove(merchantId, '1.00');
  const made =
    method === 'bitcoin'
      ? await request(merchantId, '0.1')
      : await requestAchPayout(ctx, { merchantId, amount: '100', destination: ACCOUNT, sourceCurrency: null });
  return { merchantId, payoutId: made.id };
}

test('the service’s sessions may move a payout on, and change nothing of what was asked for, signed or seen on the chain', async () => {
  const { payoutId } = await waiting('ach');
  for (const change of [
    'update payouts set source_amount = 5000000000',
    'update payouts set amount = 1, fee_max = 0',
    "update payouts set source_currency = 'LTC'",
    'update payouts set merchant_id = 1',
    "update payouts set destination = 'x'",
    "update payouts set usd_minor = 1, intent = '\\x00'",
    'update payouts set created_at = now()',
    'update payouts set internal_to = null',
    'delete from payouts',
    'update outgoing_attempts set fee = 1',
    "update outgoing_attempts set raw = '\\x00'",
    'delete from outgoing_attempts',
    'update outgoing_shares set fee = 0',
    'delete from outgoing_shares',
    'update reimbursement_shares set from_available = 1',
    'update outgoing_inputs set amount = 1',
  ])
    await expect(ctx.db.query({ text: change }), change).rejects.toThrow('permission denied');
  expect(await row(payoutId)).toMatchObject({ source_amount: '100000', amount: '9900' });
});

test('a cancelled ach payout gives back what its hold took, and a row that says more is found by the audit', async () => {
  const { merchantId, payoutId } = await waiting('ach');
  await asOwner('update payouts set source_amount = 5000000000, amount = 1 where id = $1', payoutId);
  expect(await red()).toEqual(expect.arrayContaining(['PAY-2']));
  await cancelPayout(ctx, { merchantId, payoutId });
  expect([await of(merchantId, 'available'), await of(merchantId, 'held', 'USD')]).toEqual([BTC, 0n]);
  expect(await row(payoutId)).toMatchObject({ status: 'failed', given_back: '100000' });
  // what was planted, put back afterwards, leaves nothing wrong
  await asOwner('update payouts set source_amount = 100000, amount = 9900 where id = $1', payoutId);
  expect(await red()).toEqual([]);
});

test('a payout whose outcome was unknown gives back what its hold took, to the merchant of its hold', async () => {
  const { merchantId, payoutId } = await waiting('bitcoin');
  const thief = await shopWith(0n);
  const before = await row(payoutId);
  await asOwner(
    `update payouts set amount = 5000000000, merchant_id = $2, status = 'processing', held_reason = 'unknown_outcome' where id = $1`,
    payoutId,
    thief,
  );
  await resolvePayout(ctx, { payoutId, outcome: 'failed', evidence: 'the node never had it' });
  expect([await of(merchantId, 'available'), await of(thief, 'available')]).toEqual([BTC, 0n]);
  await asOwner('update payouts set amount = $2, merchant_id = $3 where id = $1', payoutId, before.amount, merchantId);
});

test('a row without a hold is given nothing back', async () => {
  const { merchantId, payoutId } = await waiting('ach');
  const forged = `${payoutId.slice(0, -1)}${payoutId.endsWith('0') ? '1' : '0'}`;
  await ctx.db.query({
    text: `insert into payouts (id, merchant_id, method, amount_text, currency, amount, fee_max, destination, status, step, held_reason, intent_key,
                                intent, created_at, source_currency, source_amount)
             select $2, merchant_id, method, amount_text, currency, amount, fee_max, destination, status, step, held_reason, intent_key, intent,
                    created_at, source_currency, 5000000000 from payouts where id = $1`,
    values: [payoutId, forged],
  });
  await expect(cancelPayout(ctx, { merchantId, payoutId: forged })).rejects.toThrow('has no hold in the ledger');
  expect(await of(merchantId, 'available')).toBe(BTC - 100_000n);
  expect((await ledgerFindings()).filter((finding) => /^PAY-2: .*its hold took 0/.test(finding))).toHaveLength(1);
  await asOwner('delete from payouts where id = $1', forged);
});
