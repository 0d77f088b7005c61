// What our node has paid for no payout, and is booked as lost or as its operator's, is paid: the node pays no hash twice, so a payout to it would be completed by
// the same payment, and what has left once would be booked twice.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bookMissing, bookOwnPayment, bookUnasked } from '../../src/flow/lightning/unasked-payments.ts';
import { lockPaymentHash } from '../../src/store/lightning/payment-hashes.ts';
import { eventually } from '../support/service.ts';
import {
  AMOUNT,
  at,
  close,
  code,
  engine,
  invoice,
  looks,
  open,
  outgoing,
  status,
  toldAfterAMinute as told,
} from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

/** What the node has beyond the books. */
async function surplus(): Promise<number> {
  const { rows } = await at.admin.query('select (at_node - booked_there)::int as more from lightning_nodes');
  return rows[0].more;
}

test('what came late for a payout that has failed, and is booked as lost, is asked for in vain', async () => {
  expect(await told()).toEqual([]);
  const before = await surplus();
  const { request, hash } = invoice('hold');
  const { id } = await at.request(request, AMOUNT);
  await at.look();
  outgoing().resolve(hash, false);
  await looks(2);
  expect(await status(id)).toBe('failed');
  outgoing().send(request, 0n, 10_000n);
  outgoing().resolve(hash, true);
  expect((await told()).map((one) => one.slice(0, 4))).toEqual(['LN-5', 'LN-7']);
  expect(await bookUnasked(at.ctx, { paymentHash: hash, acceptsLoss: true })).toBe(1_002n);
  expect(await code(at.request(request, AMOUNT))).toBe('invoice_already_used');
  await looks(2);
  expect(await told()).toEqual([]);
  expect(await surplus()).toBe(before);
  expect(await at.available()).toBe(500_000n);
});

test('so is what the operator has paid himself, also as what goes back to a customer', async () => {
  expect(await told()).toEqual([]);
  const { request, hash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  await told();
  expect(await bookOwnPayment(at.ctx, hash)).toBe(1_002n);
  expect(await code(at.request(request, AMOUNT))).toBe('invoice_already_used');
  const { transactionId } = await at.create(10_00n);
  const { request: whole, hash: paid } = outgoing().invoice({ amountMsat: 0n, expirySeconds: 3_600, behaviour: 'pay' });
  outgoing().send(whole, 1_000_000n, 10_000n);
  await told();
  await bookOwnPayment(at.ctx, paid);
  const received = await at.hashOf(transactionId);
  engine.node().pay(received, engine.node().find(received)!.valueMsat, 1);
  await at.work();
  expect(await code(at.reimburse(transactionId, whole))).toBe('invoice_already_used');
});

test('while it is asked for nobody books it, and the other way round', async () => {
  expect(await told()).toEqual([]);
  const { request, hash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  await told();
  let decide: (() => void) | undefined;
  const decided = new Promise<void>((resolve) => (decide = resolve));
  let lock: (() => void) | undefined;
  const locked = new Promise<void>((resolve) => (lock = resolve));
  const asking = at.ctx.db.transaction(async (sql) => {
    await lockPaymentHash(sql, hash);
    lock?.();
    await decided;
  });
  await locked;
  const booking = bookUnasked(at.ctx, { paymentHash: hash, acceptsLoss: true });
  await eventually('the booking waits', async () => {
    const { rows } = await at.admin.query(
      `select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())`,
    );
    return rows[0].n === 1;
  });
  decide?.();
  await asking;
  expect(await booking).toBe(1_002n);
});

test('what it has paid for the hash of a payout that waits is no part of what is missing there', async () => {
  expect(await told()).toEqual([]);
  const before = await surplus();
  const { request, hash } = invoice();
  const { id } = await at.request(request, AMOUNT);
  outgoing().send(request, 0n, 10_000n);
  expect((await told()).map((one) => one.slice(0, 4))).toEqual(['LN-7']);
  const { identity } = await at.paying.node();
  const missing = () => bookMissing(at.ctx, identity, 'own').catch((error: Error) => error.message);
  expect(await missing()).toMatch(/has paid, or was paid, what nobody has booked/);
  await looks(1);
  expect(await status(id)).toBe('completed');
  expect(outgoing().find(hash)?.receivedMsat).toBe(1_000_000n);
  // it is in the books now, and the node was not looked at since
  expect(await missing()).toMatch(/what nobody has booked/);
  expect(await told()).toEqual([]);
  expect(await missing()).toBeNull();
  expect(await surplus()).toBe(before);
});

test('once that payout is completed, what a channel that closed meanwhile has cost is booked, and what the node has is looked at again', async () => {
  const own = () => engine.node().own;
  own().move(2_000_000);
  const [channel, other] = [own().open(1_000_000), own().open(500_000)];
  expect(await told()).toEqual([]);
  const { request } = invoice();
  const { id } = await at.request(request, AMOUNT);
  outgoing().send(request, 0n, 10_000n);
  own().close(channel, 252);
  await told();
  const costs = () => at.balance('expense:ln:channels:BTC');
  const before = await costs();
  await looks(1);
  expect(await status(id)).toBe('completed');
  expect(await told()).toEqual([]);
  // but for the satoshi that a channel was shown too high
  expect((await costs()) - before).toBeGreaterThanOrEqual(250n);
  expect((await costs()) - before).toBeLessThanOrEqual(252n);
  own().close(other, 500_000);
  expect((await told()).map((one) => one.slice(0, 4))).toEqual(['LN-7']);
});
