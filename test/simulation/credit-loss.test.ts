// The sentences of the credit model about payments that are lost, come back or change their txid, each tested end to end: simulated chain,
// production watcher and judge, real database. Named after the model's list of variants.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MINUTE } from './behaviour.ts';
import { type FixedHistory, openFixedHistory } from './fixed-history.ts';
import type { Purchase } from './model.ts';
import { openSimulatedService, type SimulatedService } from './simulated-service.ts';

let service: SimulatedService;
beforeAll(async () => {
  service = await openSimulatedService({ feeBps: 0 });
});
afterAll(() => service?.close());

const PAID = 'started pending confirmed succeeded';
async function paid(it: FixedHistory, cents = 40_00n, amounts?: readonly bigint[]): Promise<Purchase> {
  const purchase = await it.buy(cents);
  it.pay(purchase, amounts ?? [purchase.amountDue]);
  it.mine();
  await it.look();
  expect(await it.path(purchase)).toBe(PAID);
  return purchase;
}

test('reverse_in_place: a loss is taken from where each unit lies now, and the watcher goes on', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  it.pay(purchase, [purchase.amountDue * 2n]);
  it.mine();
  await it.look();
  expect([await it.available(), await it.suspense(purchase)]).toEqual([purchase.amountDue, purchase.amountDue]);
  await it.resolve(purchase, 'accept', 'excess');
  await it.spendAll();
  it.reorg(1, true);
  await it.look();
  expect(await it.path(purchase)).toBe(`${PAID} review`);
  expect([await it.available(), await it.suspense(purchase), await it.receivable()]).toEqual([0n, 0n, purchase.amountDue * 2n]);
  const next = await paid(it);
  expect(await it.receivable()).toBe(purchase.amountDue * 2n - next.amountDue);
  await it.rest();
});

test('accept_needs_payments: accept with nothing in suspense is refused', async () => {
  const it = await openFixedHistory(service);
  const purchase = await paid(it);
  it.reorg(1, true);
  await it.look();
  expect(await it.path(purchase)).toBe(`${PAID} review`);
  await expect(it.resolve(purchase, 'accept')).rejects.toMatchObject({ code: 'not_resolvable' });
  await it.rest();
  expect(await it.path(purchase)).toBe(`${PAID} review`);
});

test('back_needs_sum: back from rule 17 only when what is credited is enough, or all is back', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  const halves = [it.pay(purchase, [purchase.amountDue / 2n]), it.pay(purchase, [purchase.amountDue / 2n + 1n])] as const;
  it.mine();
  await it.look();
  it.reorg(1, false);
  for (const half of halves) it.hidden(half, true);
  await it.wait(MINUTE);
  expect(await it.path(purchase)).toBe(PAID);
  await it.wait(11 * MINUTE);
  expect(await it.path(purchase)).toBe(`${PAID} review`);
  for (const [n, half] of halves.entries()) {
    it.hidden(half, false);
    it.mine();
    await it.look();
    expect(await it.path(purchase)).toBe(n === 0 ? `${PAID} review` : `${PAID} review confirmed succeeded`);
  }
  await it.rest();
});

test('extra_cannot_reopen: losing a payment that was only in suspense leaves succeeded and settled alone', async () => {
  const it = await openFixedHistory(service);
  const purchase = await paid(it);
  it.pay(purchase);
  it.mine();
  await it.look();
  expect(await it.suspense(purchase)).toBe(purchase.amountDue);
  it.reorg(1, true);
  await it.look();
  expect([await it.path(purchase), await it.suspense(purchase), await it.available()]).toEqual([PAID, 0n, purchase.amountDue]);
  await it.rest();
  expect(await it.path(purchase)).toBe(`${PAID} settled`);
});

test('back_restores: a payment that is back restores what its loss took: receivable, then available', async () => {
  const it = await openFixedHistory(service);
  const purchase = await paid(it);
  await it.spendAll();
  const other = await paid(it, 10_00n);
  it.reorg(2, false);
  const [lost] = it.model.sent;
  if (lost === undefined) throw new Error('nothing was sent');
  it.hidden(lost, true);
  await it.look();
  await it.wait(11 * MINUTE);
  expect(await it.path(purchase)).toBe(`${PAID} review`);
  expect([await it.available(), await it.receivable()]).toEqual([0n, purchase.amountDue - other.amountDue]);
  it.hidden(lost, false);
  it.mine(2);
  await it.look();
  expect(await it.path(purchase)).toBe(`${PAID} review confirmed succeeded`);
  expect([await it.available(), await it.receivable()]).toEqual([other.amountDue, 0n]);
  await it.rest();
});

test('gone_not_waited: rule 6 does not wait for payments that are gone', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  const [, gone] = [it.pay(purchase, [purchase.amountDue / 2n]), it.pay(purchase, [purchase.amountDue / 2n + 1n])];
  await it.look();
  it.doubleSpend(gone);
  it.mine();
  await it.wait(it.afterWindow(purchase));
  expect(await it.path(purchase)).toBe('started pending declined');
  await it.rest();
});

test('twin_is_same: a malleated twin takes over the original entry and place, booked or not', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  const one = it.pay(purchase, [purchase.amountDue - 1_000n, 1_000n]);
  await it.look();
  it.malleate(one);
  await it.look();
  expect(await it.path(purchase)).toBe('started pending');
  it.mine();
  await it.look();
  expect(await it.path(purchase)).toBe(PAID);
  it.reorg(1, false);
  it.malleate(one);
  it.mine();
  await it.look();
  it.reorg(3, false);
  await it.look();
  it.malleate(one);
  await it.look();
  it.mine();
  await it.wait(20 * MINUTE);
  expect(await it.path(purchase)).toBe(PAID);
  expect(await it.available()).toBe(purchase.amountDue);
  const { rows } = await service.db.query({
    text: 'select 1 from ledger.entry e join ledger.part d on d.entry_id = e.id where e.transaction_id = $1',
    values: [purchase.id],
  });
  expect(rows).toHaveLength(2);
  await it.rest();
});

test('a booked payment replaced by one of another amount is credited with that amount', async () => {
  const it = await openFixedHistory(service);
  const purchase = await paid(it);
  const [old] = it.model.sent;
  if (old === undefined) throw new Error('nothing was sent');
  it.reorg(1, false);
  it.replace(old, purchase.amountDue + 500n);
  await it.look();
  expect(await it.path(purchase)).toBe(`${PAID} review`);
  expect(await it.available()).toBe(0n);
  await it.rest();
  expect(await it.path(purchase)).toBe(`${PAID} review confirmed succeeded settled`);
  expect(await it.available()).toBe(purchase.amountDue + 500n);
});
