// What came in over Lightning goes back to its customer: one payment of one invoice, by the machine of payouts over Lightning. What it may be of,
// what becomes of it when the recipient, the node or the worker fails, and that books and the node's own list agree after each.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatMinor } from '../../src/core/money.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { setSettings } from '../../src/flow/merchants/settings.ts';
import { approvePayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { LIGHTNING_STEPS } from '../../src/worker/payouts/lightning/steps.ts';
import { owe } from '../support/funded.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { type LightningPayouts, openLightningPayouts } from '../support/lightning-payouts.ts';

const clock = { nowMs: Date.now(), now: () => clock.nowMs };
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
});
afterAll(async () => {
  await at.close();
  await engine.close();
});

/** Satoshis of a transaction of 50 USD, and the most that can go back of it: with its 1 % it is all of it. */
const WHOLE = 50_000n;
const MOST = 49_505n;
const outgoing = () => engine.node().outgoing;
const invoice = (sat: bigint | null = null, behaviour: 'pay' | 'hold' | 'fail' = 'pay', expirySeconds = 3_600) =>
  outgoing().invoice({ amountMsat: (sat ?? 0n) * 1_000n, expirySeconds, behaviour });
const arrived = async (hash: string): Promise<bigint> => BigInt(await engine.arrived(hash));
const path = async (id: string) => (await at.path(id)).at(-1);
const suspense = (id: string) => at.balance(`suspense:${id}:BTC`);
const code = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'accepted',
    (error: { code?: string }) => error.code ?? error,
  );
/** A paid transaction. @param more msat above its price */
async function paid(more = 0n): Promise<string> {
  await at.rate('100000.00');
  const { transactionId } = await at.create();
  const hash = await at.hashOf(transactionId);
  const found = engine.node().find(hash)!;
  engine.node().pay(hash, found.valueMsat + more, 1);
  await at.work();
  expect(await path(transactionId)).toBe('succeeded');
  return transactionId;
}
/** The worker looks, and what is due to it is judged, again and again. */
async function looks(times = 3): Promise<void> {
  for (let n = 0; n < times; n++) {
    clock.nowMs += 16_000;
    await at.look();
    await at.judge();
  }
}

test('the whole goes back to an invoice without an amount: amount and fee are what came in', async () => {
  const id = await paid();
  const before = await at.available();
  const to = invoice();
  expect(await at.reimburse(id, to.request)).toEqual({ transactionId: id, status: 'succeeded' });
  expect(await at.refund(id)).toMatchObject({ status: 'pending', amount: MOST, fee: WHOLE - MOST, txid: null });
  expect(await code(at.reimburse(id, invoice().request))).toBe('not_resolvable');
  await looks();
  expect(await path(id)).toBe('reimbursed');
  const done = { status: 'completed', amount: MOST, fee: WHOLE - MOST, txid: to.hash, destination: to.request };
  expect(await at.refund(id)).toMatchObject(done);
  expect(await arrived(to.hash)).toBe(MOST);
  expect(before - (await at.available())).toBe(WHOLE);
  // what the route did not take of the fee is the service's, once the node's list is compared
  expect(await at.compared()).toEqual([]);
  expect(await at.balance('asset:ln:BTC')).toBe(BigInt(engine.node().localMsat() - 50n * 100_000_000_000n) / 1_000n);
});

test.each([
  ['the most', MOST],
  ['a hundred satoshis less', MOST - 100n],
])('an invoice for %s is paid, and what it leaves is the fee', async (_says, amount) => {
  const id = await paid();
  const to = invoice(amount);
  await at.reimburse(id, to.request);
  await looks();
  expect(await at.refund(id)).toMatchObject({ status: 'completed', amount, fee: WHOLE - amount });
  expect(await arrived(to.hash)).toBe(amount);
});

test('an invoice for more than leaves the highest fee, or for much less, is refused and the amounts are named', async () => {
  const id = await paid();
  const before = await at.available();
  for (const amount of [WHOLE, MOST + 1n, MOST - 501n])
    await expect(at.reimburse(id, invoice(amount).request)).rejects.toMatchObject({
      code: 'invoice_amount_mismatch',
      message: expect.stringMatching('0.00049505.* 0.00049005'),
    });
  expect(
    await code(
      at.reimburse(id, outgoing().invoice({ amountMsat: MOST * 1_000n - 1n, expirySeconds: 3_600, behaviour: 'pay' }).request),
    ),
  ).toBe('invoice_amount_mismatch');
  expect(await at.available()).toBe(before);
  expect(await at.refund(id)).toBeNull();
});

test('an excess goes back, and the status stays', async () => {
  const id = await paid(60_000_000n);
  const before = await at.available();
  expect(await suspense(id)).toBe(60_000n);
  const to = invoice();
  await at.reimburse(id, to.request, { part: 'excess' });
  await looks();
  expect(await path(id)).toBe('succeeded');
  expect(await suspense(id)).toBe(0n);
  expect(await at.available()).toBe(before);
  expect(await at.refund(id)).toMatchObject({ status: 'completed', amount: 59_406n, fee: 594n });
  expect(await arrived(to.hash)).toBe(59_406n);
});

test('one that the recipient refuses puts the payment back where it was, and can be asked for again', async () => {
  const id = await paid(20_000_000n);
  const before = [await at.available(), await suspense(id)];
  await at.reimburse(id, invoice(null, 'fail').request);
  await looks();
  expect(await at.refund(id)).toMatchObject({ status: 'failed' });
  expect([await at.available(), await suspense(id)]).toEqual(before);
  expect(await path(id)).toBe('succeeded');
  await at.reimburse(id, invoice().request);
  await looks();
  expect(await path(id)).toBe('reimbursed');
});

test('an invoice that expires while the node is away ends it, and everything is back', async () => {
  const id = await paid();
  const before = await at.available();
  await at.reimburse(id, invoice(null, 'pay', 90).request);
  clock.nowMs += 91_000;
  await looks();
  expect(await at.refund(id)).toMatchObject({ status: 'failed', amount: MOST });
  expect(await at.available()).toBe(before);
  expect(await path(id)).toBe('succeeded');
});

test.each([true, false])('a held one is pending until the recipient decides (he takes it: %s)', async (takes) => {
  const id = await paid();
  const before = await at.available();
  const to = invoice(null, 'hold');
  await at.reimburse(id, to.request);
  await looks();
  expect(await at.refund(id)).toMatchObject({ status: 'pending', txid: to.hash });
  clock.nowMs += 86_400_000;
  await at.rate('100000.00');
  await looks();
  expect(await at.refund(id)).toMatchObject({ status: 'pending' });
  expect(before - (await at.available())).toBe(WHOLE);
  // a red audit would stop the payouts of everybody
  expect(await at.compared()).toEqual([]);
  await engine.decide(to.hash, takes);
  await looks();
  expect(await path(id)).toBe(takes ? 'reimbursed' : 'succeeded');
  expect(before - (await at.available())).toBe(takes ? WHOLE : 0n);
  expect(await arrived(to.hash)).toBe(takes ? MOST : 0n);
});

test.each(LIGHTNING_STEPS)('a worker that is killed at %s leaves one that the next ends, once', async (step) => {
  const id = await paid();
  const to = invoice();
  await at.reimburse(id, to.request);
  clock.nowMs += 16_000;
  await at.look({}, step);
  await at.judge();
  clock.nowMs += 21_000;
  await looks();
  expect(await path(id)).toBe('reimbursed');
  expect(await arrived(to.hash)).toBe(MOST);
});

test('an answer of the signer that is lost is no failure: the node is asked what became of it', async () => {
  const id = await paid();
  const to = invoice();
  await at.reimburse(id, to.request);
  clock.nowMs += 16_000;
  await at.look({
    async send(asked) {
      await at.paying.send(asked);
      throw Object.assign(new Error('the connection has ended'), { fault: 'timeout' });
    },
  });
  expect(await at.refund(id)).toMatchObject({ status: 'pending' });
  await looks();
  expect(await path(id)).toBe('reimbursed');
  expect(await arrived(to.hash)).toBe(MOST);
});

test('what is no customer’s invoice is refused', async () => {
  const id = await paid();
  const other = await addMerchant(at.ctx, {
    username: 'other',
    password: 'correct horse battery',
    email: 'other@example.com',
    businessName: 'Other',
  });
  const { rows } = await at.admin.query('select id from merchants where affiliate_id = $1', [other.affiliateId]);
  const asked = { merchantId: BigInt(rows[0].id), usdMinor: 50_00n, method: 'BTC-LN', label: null, email: null } as const;
  const theirs = await createTransaction(at.ctx, asked);
  const mine = await at.create();
  const used = invoice(1_000n, 'hold');
  await at.request(used.request, '0.00001');
  const refused: readonly (readonly [string, string])[] = [
    ['bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080', 'invalid_destination'],
    [theirs.address, 'invalid_destination'],
    [mine.address, 'invalid_destination'],
    [used.request, 'invoice_already_used'],
    [invoice(null, 'pay', 30).request, 'invoice_expired'],
  ];
  for (const [destination, expected] of refused) expect(await code(at.reimburse(id, destination)), destination).toBe(expected);
  expect(await code(at.reimburse(id, invoice().request, { currency: 'LTC' }))).toBe('invalid_destination');
  expect(await code(at.reimburse(id, invoice().request, { merchantId: BigInt(rows[0].id) }))).toBe('transaction_not_found');
  expect(await at.refund(id)).toBeNull();
  await engine.decide(used.hash, false).catch(() => undefined);
  expect(await code(at.reimburse(id, invoice().request, { currency: 'BTC' })), 'BTC is its balance').toBe('accepted');
  await looks();
  expect(await path(id)).toBe('reimbursed');
});

test('the same invoice pays one reimbursement only, and one that was credited needs the balance', async () => {
  const [first, second] = [await paid(), await paid()];
  const to = invoice();
  await at.reimburse(first, to.request);
  expect(await code(at.reimburse(second, to.request))).toBe('invoice_already_used');
  await looks();
  const all = await at.available();
  await at.request(invoice().request, formatMinor(all - 20_000n, 8));
  await looks();
  expect(await at.available()).toBeLessThan(WHOLE);
  expect(await code(at.reimburse(second, invoice().request))).toBe('insufficient_balance');
  expect(await at.refund(second)).toBeNull();
});

test('a debt of the merchant holds up what was credited to him, and not an excess', async () => {
  const id = await paid(60_000_000n);
  await owe(at.ctx, at.merchantId, 1n);
  const [excess, whole] = [invoice(), invoice()];
  await at.reimburse(id, excess.request, { part: 'excess' });
  await looks();
  expect(await at.refund(id)).toMatchObject({ status: 'completed', txid: excess.hash });
  await at.reimburse(id, whole.request);
  await looks();
  expect(await at.refund(id)).toMatchObject({ status: 'pending', txid: null });
  expect(outgoing().payment(whole.hash)).toBeNull();
  await owe(at.ctx, at.merchantId, -1n);
  await looks();
  expect(await path(id)).toBe('reimbursed');
});

test('one above the approval limit waits for the operator, one off the allow-list is refused', async () => {
  const change = (payoutApprovalAbove: string | null, payoutAllowList: readonly string[] | undefined) =>
    setSettings(at.ctx, {
      merchantId: at.merchantId,
      scopes: new Set(['payouts', 'payments'] as const),
      change: { payoutApprovalAbove, tolerancePercent: undefined, latePayments: undefined, payoutAllowList },
    });
  const id = await paid();
  const to = invoice();
  await change('10.00', undefined);
  await at.reimburse(id, to.request);
  await looks();
  const { rows } = await at.admin.query('select id, held_reason from payouts where reimburses = $1', [id]);
  expect(rows).toMatchObject([{ held_reason: 'approval' }]);
  expect(outgoing().payment(to.hash)).toBeNull();
  await approvePayout(at.ctx, { payoutId: rows[0].id, by: 'test' });
  await looks();
  expect(await path(id)).toBe('reimbursed');
  const next = await paid();
  await change(null, ['somebody@example.com']);
  expect(await code(at.reimburse(next, invoice().request))).toBe('destination_not_allowed');
});

test('after all of it books and the node’s own list agree', async () => {
  expect(await at.compared()).toEqual([]);
});
