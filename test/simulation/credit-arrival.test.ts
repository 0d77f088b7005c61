// The sentences of the credit model about payments that arrive, each tested end to end: simulated chain, production watcher and judge, real
// database. Named after the model's list of variants. Each ends with the checks of the random histories.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CODES, HOUR, MINUTE } from './behaviour.ts';
import { openFixedHistory } from './fixed-history.ts';
import { openSimulatedService, type SimulatedService } from './simulated-service.ts';

let service: SimulatedService;
beforeAll(async () => {
  service = await openSimulatedService({ feeBps: 0 });
});
afterAll(() => service?.close());

test('started_late: a late payment noticed while still started follows rule 9', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  it.down(true);
  await it.wait(it.afterWindow(purchase, 3 * HOUR));
  it.pay(purchase);
  it.down(false);
  await it.look();
  expect(await it.path(purchase)).toBe('started review');
  await it.rest();
  expect(await it.path(purchase)).toBe('started review confirmed succeeded settled');
});

test('cancelled_is_late: after a cancel every payment follows rule 9, on time or not', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  await it.cancel(purchase);
  it.pay(purchase);
  await it.look();
  expect(await it.path(purchase)).toBe('started cancelled review');
  await it.rest();
  expect(await it.path(purchase)).toBe('started cancelled review');
  expect(await it.suspense(purchase)).toBe(purchase.amountDue);
});

test('rule22_not_18: a review that holds other currencies only goes on with the first on-time payment', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  it.pay(purchase, [30_000_000n], 'LTC');
  await it.look();
  it.pay(purchase);
  await it.look();
  expect(await it.path(purchase)).toBe('started review pending');
  await it.rest();
  expect(await it.path(purchase)).toBe('started review pending confirmed succeeded settled');
  expect(await it.suspense(purchase, 'LTC')).toBe(30_000_000n);
});

test('other_after_cancel: another currency after a cancel does not open rule 2 again', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  await it.cancel(purchase);
  it.pay(purchase, [30_000_000n], 'LTC');
  await it.look();
  it.pay(purchase);
  await it.rest();
  expect(await it.path(purchase)).toBe('started cancelled review');
  expect(await it.available()).toBe(0n);
});

test('refused_stays: no automatic acceptance after the merchant has refused', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  await it.wait(it.afterWindow(purchase));
  it.pay(purchase);
  await it.look();
  await it.resolve(purchase, 'decline');
  it.pay(purchase);
  await it.rest();
  expect(await it.path(purchase)).toBe('started timedout review declined review');
  expect(await it.available()).toBe(0n);
});

test('rule23_rate: a late payment completes a pending one only if it is still worth the dollars', async () => {
  for (const falls of [false, true]) {
    const it = await openFixedHistory(service);
    const purchase = await it.buy(500_00n);
    it.pay(purchase, [purchase.amountDue / 2n]);
    await it.wait(it.afterWindow(purchase, -MINUTE));
    if (falls) it.price((purchase.price * 80n) / 100n);
    await it.wait(4 * MINUTE);
    it.pay(purchase, [purchase.amountDue / 2n + 1n]);
    await it.rest();
    expect(await it.path(purchase)).toBe(falls ? 'started pending declined' : 'started pending confirmed succeeded settled');
    expect(await it.available()).toBe(falls ? 0n : (purchase.amountDue / 2n) * 2n + 1n);
  }
});

test('outage_decline: rule 6 waits for the watcher as 7 and 8 do', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  it.pay(purchase, [purchase.amountDue / 2n]);
  it.mine();
  await it.look();
  it.down(true);
  await it.wait(it.afterWindow(purchase, -MINUTE));
  it.pay(purchase, [purchase.amountDue / 2n + 1n]);
  await it.wait(20 * MINUTE);
  expect(await it.path(purchase)).toBe('started pending');
  it.down(false);
  await it.rest();
  expect(await it.path(purchase)).toBe('started pending confirmed succeeded settled');
});

test('outage_mempool: what the first pass after an outage finds is on time', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  it.down(true);
  await it.wait(it.afterWindow(purchase, 30 * MINUTE));
  it.pay(purchase);
  await it.wait(MINUTE);
  it.down(false);
  await it.look();
  expect(await it.path(purchase)).toBe('started pending');
  await it.rest();
  expect(await it.path(purchase)).toBe('started pending confirmed succeeded settled');
});

test('suspense_everywhere: a currency at R is booked in every status but started, pending, confirmed; another currency in every one', async () => {
  const it = await openFixedHistory(service);
  const [waiting, closed] = [await it.buy(40_00n), await it.buy(40_00n)];
  it.pay(waiting);
  await it.look();
  it.pay(waiting, [30_000_000n], 'LTC');
  it.mine(2, 'LTC');
  await it.look();
  expect(await it.path(waiting)).toBe('started pending');
  expect([await it.suspense(waiting), await it.suspense(waiting, 'LTC')]).toEqual([0n, 30_000_000n]);
  await it.wait(it.afterWindow(closed, 25 * HOUR));
  it.pay(closed, [closed.amountDue / 3n]);
  it.mine();
  await it.look();
  expect(await it.path(closed)).toBe('started timedout timedout_checked review');
  expect(await it.suspense(closed)).toBe(closed.amountDue / 3n);
  await it.rest();
});

test('resolve_anywhere: currencies in suspense can be resolved in every status', async () => {
  const it = await openFixedHistory(service);
  const purchase = await it.buy(40_00n);
  const gone = it.pay(purchase);
  await it.look();
  it.pay(purchase, [30_000_000n], 'LTC');
  it.mine(2, 'LTC');
  it.doubleSpend(gone);
  await it.wait(it.afterWindow(purchase, 25 * HOUR));
  expect(await it.path(purchase)).toBe('started pending timedout timedout_checked');
  expect(await it.suspense(purchase, 'LTC')).toBe(30_000_000n);
  await it.resolve(purchase, 'accept', 'excess');
  expect(await it.suspense(purchase, 'LTC')).toBe(0n);
  await it.rest();
});

const DEPTHS = { BTC: [1, 6], LTC: [2, 12], BCH: [1, 10], DASH: [2, 12], DOGE: [6, 60] } as const;
test.each(CODES)('credit_at_R: %s is credited at R and not one block before', async (currency) => {
  service.node(currency).setTrouble({ down: false, fault: 'no_locks', left: null });
  const it = await openFixedHistory(service, { currency });
  for (const [n, cents] of [50_00n, 20_000_00n].entries()) {
    const purchase = await it.buy(cents);
    it.pay(purchase);
    const depth = DEPTHS[currency][n] as number;
    it.mine(depth - 1);
    await it.look();
    expect(await it.path(purchase)).toBe('started pending');
    it.mine();
    await it.look();
    expect(await it.path(purchase)).toBe('started pending confirmed succeeded');
  }
  await it.rest();
});

test('unique_key: two workers that judge at once credit once', async () => {
  const it = await openFixedHistory(service);
  const purchases = await Promise.all(Array.from({ length: 8 }, () => it.buy(40_00n)));
  for (const purchase of purchases) it.pay(purchase);
  it.mine();
  await service.passBoth('BTC');
  await Promise.all([service.judgeBoth(), service.judgeBoth()]);
  await it.look();
  expect(await it.available()).toBe(purchases.reduce((sum, purchase) => sum + purchase.amountDue, 0n));
  await it.rest();
});
