// Payouts and reimbursements that database and signer have both forgotten, on a real bitcoind with two workers: what left is not sent again before a person
// has said whether it was the same, whatever fees and blocks do meanwhile.
import { expect, test, vi } from 'vitest';
import { requestPayout } from '../../src/flow/payouts/bitcoin-request.ts';
import { readRefund, reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { setPayoutSettings } from '../../src/flow/payouts/settings.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { saveFeeRate } from '../../src/store/payouts/fee-rates.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import {
  capital,
  copied,
  daemon,
  destination,
  endsUnseen,
  forgottenServiceForAll,
  lend,
  mempool,
  received,
  world,
} from './forgotten-service.ts';

vi.setConfig({ testTimeout: 240_000 });
forgottenServiceForAll();
const DAY_MS = 86_400_000;

/** It pays out all of 0.3 bitcoin by itself. */
const automatic = () =>
  copied(async (first) => {
    await capital(first, '0.5', '0.5');
    await lend(first, 30_000_000n);
    const none = { enabled: null, leave: null, sourceCurrency: null, paused: null } as const;
    const change = { ...none, method: 'bitcoin', destination, threshold: '0.1' } as const;
    await setPayoutSettings(first.ctx, { merchantId: first.merchantId, change });
    world.skew += DAY_MS + 1;
    await first.work();
  });
const WAITS = { status: 'processing', step: 'held', held_reason: 'unknown_outcome' };

test('an automatic payout asks again after a spike of fees, and a reorganisation takes the forgotten one out of its block', async () => {
  const { first, reopened } = await automatic();
  await first.automatic();
  await first.work();
  const [sent] = await mempool();
  await daemon.mine(1);
  await first.end();
  world.feeRate = 40_000n;
  const second = await reopened();
  const id = await second.automatic();
  await second.work();
  expect(await second.recovers()).toMatchObject({ payoutIds: [], lost: 29_996_000n, alike: [id] });
  await daemon.rpc('invalidateblock', await daemon.rpc('getbestblockhash'));
  for (let n = 0; n < 2; n++) await daemon.rpc('generateblock', await daemon.address(), []);
  await second.work(2);
  expect(await mempool()).toEqual([sent]);
  await daemon.mine(7);
  await second.work(2);
  expect(await second.findings()).toEqual([]);
  await second.clear();
  await second.work(3);
  expect(await second.payouts()).toMatchObject([WAITS]);
  await resolvePayout(second.ctx, { payoutId: id, outcome: 'paid', evidence: 'an explorer' });
  expect([await received(), await mempool(), await second.findings()]).toEqual([[0.29996, 1], [], []]);
  // a little is left of what was lost
  await lend(second, 20_000_000n);
  await second.automatic();
  await second.work(2);
  expect([(await second.payouts())[1], await mempool()]).toMatchObject([WAITS, []]);
  await second.end();
});

test('one whose batch waits for the signer is not paid when a forgotten one comes to light', async () => {
  const { first, reopened } = await automatic();
  await first.automatic();
  await first.work();
  const raw = await endsUnseen(first);
  const second = await reopened();
  await capital(second, '2.0');
  world.feeRate = 40_000n;
  second.state.isSignerAway = true;
  const id = await second.automatic();
  await second.work();
  expect(await second.payouts()).toMatchObject([{ id, step: 'batched' }]);
  await daemon.rpc('generateblock', await daemon.address(), [raw]);
  await second.work();
  expect(await second.recovers()).toMatchObject({ payoutIds: [], lost: 29_996_000n, alike: [] });
  await daemon.mine(6);
  await second.clear();
  second.state.isSignerAway = false;
  await second.work(3);
  expect(await second.payouts()).toMatchObject([{ id, ...WAITS }]);
  expect([await received(), await mempool(), await second.findings()]).toEqual([[0.29996, 1], [], []]);
  await second.end();
});

test.each([
  ['a spike of fees', 200_000n, 1_000n],
  ['low fees', 1_000n, 200_000n],
])('a reimbursement that left in %s is asked for again, and goes back once', async (_, then, now) => {
  let transactionId = '';
  const { first, reopened } = await copied(async (service) => {
    const { ctx, merchantId } = service;
    const owed = await createTransaction(ctx, { merchantId, usdMinor: 20_000_00n, method: 'BTC', label: null, email: null });
    ({ transactionId } = owed);
    await daemon.pay(owed.address, '0.4');
    await capital(service, '0.5');
  });
  const asked = { transactionId, destination, part: null, currency: null };
  world.feeRate = then;
  await first.work();
  await reimburseTransaction(first.ctx, { ...asked, merchantId: first.merchantId });
  await first.work(2);
  expect(await mempool()).toHaveLength(1);
  await daemon.mine(1);
  await first.end();
  world.feeRate = now;
  const second = await reopened();
  await saveFeeRate(second.ctx.db, 'BTC', world.feeRate, second.ctx.ports.clock.now());
  await reimburseTransaction(second.ctx, { ...asked, merchantId: second.merchantId });
  await second.work();
  const { payoutIds, alike } = await second.recovers();
  await daemon.mine(6);
  await second.work();
  await second.clear();
  await second.work(3);
  for (const payoutId of alike ?? []) await resolvePayout(second.ctx, { payoutId, outcome: 'paid', evidence: 'an explorer' });
  await second.work(2);
  expect([...payoutIds, ...(alike ?? [])]).toHaveLength(1);
  const [bitcoin, outputs] = await received();
  const amount = BigInt(Math.round(bitcoin * 1e8));
  const refund = { status: 'completed', amount, fee: 40_000_000n - amount, txid: expect.any(String) };
  expect(await readRefund(second.ctx, transactionId)).toMatchObject(refund);
  expect([outputs, await mempool(), await second.findings()]).toEqual([1, [], []]);
  await second.end();
});

/** A payout whose transaction was replaced in a spike of fees, by one in a block: database and signer, put back, have forgotten that one. */
async function replacedAndForgotten() {
  const { first, reopened } = await copied(async (service) => {
    await capital(service, '0.5', '0.5');
    await lend(service, 30_000_000n);
    await requestPayout(service.ctx, { merchantId: service.merchantId, amount: '0.1', destination });
    await service.work();
  });
  const [before] = await mempool();
  const raw = await daemon.rpc<string>('getrawtransaction', before);
  world.feeRate = 20_000n;
  await first.work(45);
  const [replaced] = await mempool();
  expect(replaced).not.toBe(before);
  await daemon.mine(1);
  await first.end();
  const second = await reopened();
  await second.work(45);
  return { second, raw, replaced };
}

test('a replacement in a spike of fees, which both have forgotten, is booked as the payout that it pays', async () => {
  const { second } = await replacedAndForgotten();
  expect(await second.recovers()).toMatchObject({ lost: 0n, alike: [] });
  await daemon.mine(6);
  await second.work();
  await second.clear();
  await second.work(3);
  expect(await second.payouts()).toMatchObject([{ status: 'completed' }]);
  expect([await received(), await mempool(), await second.findings()]).toEqual([[0.1, 1], [], []]);
  await second.end();
});

test('a reorganisation puts what it had replaced in the place of such a one: nothing waits for that one any more', async () => {
  const { second, raw, replaced } = await replacedAndForgotten();
  expect(await openMovements(second.ctx.db)).toMatchObject([{ txid: replaced }]);
  await daemon.rpc('invalidateblock', await daemon.rpc('getbestblockhash'));
  await daemon.rpc('generateblock', await daemon.address(), [raw]);
  await daemon.mine(6);
  await second.work(3);
  expect(await openMovements(second.ctx.db)).toEqual([]);
  await second.clear();
  await requestPayout(second.ctx, { merchantId: second.merchantId, amount: '0.1', destination });
  await second.work(2);
  await daemon.mine(6);
  await second.work(2);
  expect(await second.payouts()).toMatchObject([{ status: 'completed' }, { status: 'completed' }]);
  expect([await received(), await mempool(), await second.findings()]).toEqual([[0.2, 2], [], []]);
  await second.end();
});
