// A copy of the database that is older than what the node was asked to pay: the signer's journal and the node say what is missing in it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requestLightningPayout } from '../../src/flow/lightning/payout-request.ts';
import { bookUnasked } from '../../src/flow/lightning/unasked-payments.ts';
import { setSettings } from '../../src/flow/merchants/settings.ts';
import { approvePayout, cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { checkPayoutStatus } from '../../src/flow/payouts/reads.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { clearBreakers, openBreakers } from '../../src/store/ledger/breakers.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { type LightningPayouts, openLightningPayouts } from '../support/lightning-payouts.ts';
import { copyDatabase } from '../support/postgres.ts';

const AMOUNT = '0.00001';
const clock = { nowMs: Date.now(), now: () => clock.nowMs };
function pass(ms: number): void {
  clock.nowMs += ms;
}
let engine: SimulatedEngine;
let at: LightningPayouts;
beforeAll(async () => {
  engine = await simulatedEngine(clock.now);
  const port = createLnd(async () => engine.target(), { chain: 'regtest' });
  at = await openLightningPayouts(
    port,
    createLndPayer(async () => engine.payTarget()),
    clock,
  );
  await at.work();
  await at.look();
  const { transactionId, address } = await at.create(500_00n);
  await engine.pay(address, await at.hashOf(transactionId));
  await at.work();
});
afterAll(async () => {
  await at.close();
  await engine.close();
});

const outgoing = () => engine.node().outgoing;
const invoice = (behaviour: 'pay' | 'hold') => outgoing().invoice({ amountMsat: 1_000_000n, expirySeconds: 3_600, behaviour });
const status = async (id: string): Promise<string> => (await at.payout(id)).status;
const code = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'accepted',
    (error: { code?: string }) => error.code,
  );

test('a database that was put back to before a payment was sent gets it back before anything can be cancelled', async () => {
  const guarded = {
    payoutApprovalAbove: '0.00',
    tolerancePercent: undefined,
    latePayments: undefined,
    payoutAllowList: undefined,
  };
  await setSettings(at.ctx, { merchantId: at.merchantId, scopes: new Set(['payouts', 'payments'] as const), change: guarded });
  const [sent, unsent] = [invoice('hold'), invoice('hold')];
  const { id } = await at.request(sent.request, AMOUNT);
  const other = await at.request(unsent.request, AMOUNT);
  expect(await status(id)).toBe('pending');
  const copy = await copyDatabase(at.url);
  await approvePayout(at.ctx, { payoutId: id, by: 'test' });
  pass(16_000);
  await at.look();
  expect(await status(id)).toBe('processing');
  const restored = await at.onCopy(copy);
  const cancel = (payoutId: string) => cancelPayout(restored.ctx, { merchantId: at.merchantId, payoutId });
  // as after a start: it was compared once, and not since
  await copy.db.query({ text: `update comparisons set timeline = 'another'` });
  expect(await code(cancel(id))).toBe('payout_not_cancellable');
  expect(await code(cancel(other.id))).toBe('payout_not_cancellable');
  pass(21_000);
  await restored.look();
  expect(await code(cancel(id))).toBe('payout_not_cancellable');
  expect((await cancel(other.id)).error).toBe('cancelled');
  outgoing().resolve(sent.hash, true);
  pass(16_000);
  await restored.look();
  const seen = await checkPayoutStatus(restored.ctx, { merchantId: at.merchantId, payoutId: id });
  expect(seen).toMatchObject({ status: 'completed', paymentHash: sent.hash });
  await restored.close();
  await copy.drop();
});

test('one that was put back with its signer asks the node what became of every payout that waits', async () => {
  const [sent, unsent] = [invoice('pay'), invoice('pay')];
  const { id } = await at.request(sent.request, AMOUNT);
  const other = await at.request(unsent.request, AMOUNT);
  const copy = await copyDatabase(at.url);
  await approvePayout(at.ctx, { payoutId: id, by: 'test' });
  pass(16_000);
  await at.look();
  expect(await status(id)).toBe('completed');
  const restored = await at.onCopy(copy, { authorized: async () => ({ payments: [], more: false }) });
  await copy.db.query({ text: `update comparisons set timeline = 'another'` });
  pass(21_000);
  await restored.look();
  const cancel = (payoutId: string) => cancelPayout(restored.ctx, { merchantId: at.merchantId, payoutId });
  expect(await code(cancel(id))).toBe('payout_not_cancellable');
  expect((await cancel(other.id)).error).toBe('cancelled');
  pass(81_000);
  await restored.look();
  expect((await checkPayoutStatus(restored.ctx, { merchantId: at.merchantId, payoutId: id })).status).toBe('completed');
  await restored.close();
  await copy.drop();
});

test('a payment that a restored database does not know stops payouts until an operator has booked it, also at later starts', async () => {
  const to = invoice('pay');
  const copy = await copyDatabase(at.url);
  const { id } = await at.request(to.request, AMOUNT);
  await approvePayout(at.ctx, { payoutId: id, by: 'test' });
  pass(16_000);
  await at.look();
  expect(await status(id)).toBe('completed');
  const restored = await at.onCopy(copy);
  async function start(): Promise<readonly unknown[]> {
    await copy.db.query({ text: `update comparisons set timeline = 'another'` });
    for (let n = 0; n < 3; n++) {
      pass(21_000);
      await restored.look();
    }
    return openBreakers(restored.ctx.db);
  }
  expect(await start()).toHaveLength(1);
  expect(await bookUnasked(restored.ctx, { paymentHash: to.hash, acceptsLoss: true })).toBe(1_002n);
  await clearBreakers(copy.db, 'test', clock.nowMs);
  expect(await start()).toEqual([]);
  await restored.close();
  await copy.drop();
});

test('database and signer put back together: what only the node knows stops payouts, before anything is paid a second time', async () => {
  const copy = await copyDatabase(at.url);
  await copy.db.query({ text: `update comparisons set timeline = 'another'` });
  const forgotten = invoice('pay');
  const { id } = await at.request(forgotten.request, AMOUNT);
  await approvePayout(at.ctx, { payoutId: id, by: 'test' });
  pass(16_000);
  await at.look();
  expect(await status(id)).toBe('completed');
  const restored = await at.onCopy(copy, { authorized: async () => ({ payments: [], more: false }) });
  const again = invoice('pay');
  const request = { merchantId: at.merchantId, amount: AMOUNT, destination: again.request, paymentRequest: again.request };
  const { id: second } = await requestLightningPayout(restored.ctx, request);
  await approvePayout(restored.ctx, { payoutId: second, by: 'test' });
  for (let n = 0; n < 3; n++) {
    pass(21_000);
    await restored.look();
  }
  expect(outgoing().payment(again.hash)).toBeNull();
  expect((await openBreakers(restored.ctx.db)).map(({ trippedBy }) => trippedBy)).toEqual([['LN-5']]);
  // once it is booked, and the breaker cleared, payouts go on
  expect(await bookUnasked(restored.ctx, { paymentHash: forgotten.hash, acceptsLoss: true })).toBe(1_002n);
  await clearBreakers(copy.db, 'test', clock.nowMs);
  pass(21_000);
  await restored.look();
  expect(await openBreakers(restored.ctx.db)).toEqual([]);
  expect(outgoing().payment(again.hash)?.status).toBe('SUCCEEDED');
  await restored.close();
  await copy.drop();
});
