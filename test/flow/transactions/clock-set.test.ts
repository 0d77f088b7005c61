// Our own clock is set back, by an hour, a day or years, and perhaps forward again: nothing is timed out, reversed, withdrawn or settled before as
// much real time has passed as the rule requires, nor later than that, and a late payment does not become one on time.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { reconsider } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;
let service: ServiceOnDatabase;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  await service.wait(2 * DAY);
});
afterEach(() => service.drop());

const status = async (id: string): Promise<string> => (await service.path(id)).at(-1) as string;
async function pass(ms: number): Promise<void> {
  await service.wait(ms);
  await service.judge();
}
async function paid(): Promise<string> {
  const { transactionId } = await service.create();
  await service.pay(transactionId, 50_000n);
  await service.mine();
  await service.judge();
  expect(await status(transactionId)).toBe('succeeded');
  return transactionId;
}
const SETTINGS = [
  ['an hour back', async () => set(-HOUR)],
  ['a day back, while no watcher runs', async () => restarted(-DAY)],
  ['a day back, and forward again', () => set(-DAY, DAY)],
  ['twelve years back', async () => set(-12 * YEAR)],
] as const satisfies readonly (readonly [string, () => Promise<void>])[];

async function set(...steps: readonly number[]): Promise<void> {
  for (const byMs of steps) {
    service.setClock(byMs);
    await service.rate('100000.00');
    await service.catchUp();
    await service.judge();
  }
}
async function restarted(byMs: number): Promise<void> {
  service.restart();
  await set(byMs);
}

describe.each(SETTINGS)('our clock is set %s', (_how, setting) => {
  test('a transaction made before is open for the rest of its window, and no longer', async () => {
    const { transactionId } = await service.create();
    await pass(10 * MINUTE);
    await setting();
    await pass(5 * MINUTE - SECOND);
    expect(await status(transactionId)).toBe('started');
    await pass(SECOND);
    expect(await status(transactionId)).toBe('timedout');
  });

  test('one made afterwards has a whole window; paid in time it succeeds', async () => {
    await setting();
    const unpaid = await service.create();
    const { transactionId } = await service.create();
    await pass(15 * MINUTE - SECOND);
    expect(await status(unpaid.transactionId)).toBe('started');
    await service.pay(transactionId, 50_000n);
    await service.mine();
    await pass(SECOND);
    expect(await status(transactionId)).toBe('succeeded');
    expect(await status(unpaid.transactionId)).toBe('timedout');
  });

  test('a payment after the window stays a late one', async () => {
    const { transactionId } = await service.create();
    await pass(16 * MINUTE + SECOND);
    expect(await status(transactionId)).toBe('timedout');
    await setting();
    await service.pay(transactionId, 50_000n);
    await service.judge();
    expect(await status(transactionId)).toBe('review');
  });

  test('what waits for its depth outside of the price is booked with it', async () => {
    const { transactionId } = await service.create();
    await pass(17 * MINUTE);
    await service.pay(transactionId, 20_000n);
    await service.pay(transactionId, 30_000n, { currency: 'LTC' });
    await service.judge();
    await setting();
    await service.mine();
    await service.mine(2, 'LTC');
    await service.judge();
    for (const [currency, amount] of [
      ['BTC', 20_000n],
      ['LTC', 30_000n],
    ] as const)
      expect(await service.balance(`suspense:${transactionId}:${currency}`)).toBe(amount);
  });

  test('a late payment without a price waits for the first one after it, not for the time before', async () => {
    const { transactionId } = await service.create();
    await pass(17 * MINUTE);
    // nobody has a price when it arrives
    service.pass(3 * HOUR);
    await service.catchUp();
    await service.pay(transactionId, 50_000n);
    await service.mine();
    await service.judge();
    expect(await status(transactionId)).toBe('review');
    await setting();
    await pass(5 * SECOND);
    expect([await status(transactionId), await service.available()]).toEqual(['succeeded', 50_000n]);
    expect(await service.findings()).toEqual([]);
  });

  test('a payment in the last minute of grace counts', async () => {
    const { transactionId } = await service.create();
    await pass(15 * MINUTE + 30 * SECOND);
    await setting();
    await service.pay(transactionId, 50_000n);
    await service.judge();
    expect(await status(transactionId)).toBe('pending');
  });

  test('a booked payment that is nowhere afterwards is lost after ten minutes', async () => {
    const transactionId = await paid();
    await setting();
    await service.vanish('BTC', 1);
    await service.judge();
    await pass(10 * MINUTE - SECOND);
    expect([await status(transactionId), await service.available()]).toEqual(['succeeded', 50_000n]);
    await pass(SECOND);
    expect([await status(transactionId), await service.available()]).toEqual(['review', 0n]);
  });

  test('a booked payment that was nowhere before is lost after ten minutes in all', async () => {
    const transactionId = await paid();
    await service.vanish('BTC', 1);
    await pass(6 * MINUTE);
    await setting();
    await pass(4 * MINUTE - SECOND);
    expect(await status(transactionId)).toBe('succeeded');
    await pass(SECOND);
    expect(await status(transactionId)).toBe('review');
  });

  test('a payment out of the mempool is withdrawn after 72 hours in all', async () => {
    const { transactionId } = await service.create();
    const sent = await service.pay(transactionId, 50_000n);
    await service.judge();
    await service.evict(sent);
    await pass(30 * HOUR);
    await setting();
    await pass(42 * HOUR - SECOND);
    expect(await status(transactionId)).toBe('pending');
    await pass(SECOND);
    expect(await service.path(transactionId)).toEqual(['started', 'pending', 'timedout', 'timedout_checked']);
  });

  test('what is paid settles after a day in all', async () => {
    const transactionId = await paid();
    await service.mine(5);
    await pass(2 * HOUR);
    await setting();
    await pass(22 * HOUR - SECOND);
    expect(await status(transactionId)).toBe('succeeded');
    await pass(SECOND);
    expect(await status(transactionId)).toBe('settled');
  });

  test('what is unpaid is looked up and closed a day after it was made', async () => {
    const { transactionId } = await service.create();
    await pass(2 * HOUR);
    await setting();
    await pass(22 * HOUR - SECOND);
    expect(await status(transactionId)).toBe('timedout');
    await pass(SECOND);
    expect(await status(transactionId)).toBe('timedout_checked');
  });

  test('the books are in order', async () => {
    await paid();
    await setting();
    await paid();
    await pass(20 * MINUTE);
    expect(await service.findings()).toEqual([]);
  });
});

test('one made while the clock was back has a whole window when it is set forward again', async () => {
  await set(-HOUR);
  await pass(5 * MINUTE);
  const { transactionId } = await service.create();
  await pass(5 * MINUTE);
  await set(HOUR);
  await pass(10 * MINUTE - SECOND);
  expect(await status(transactionId)).toBe('started');
  await pass(SECOND);
  expect(await status(transactionId)).toBe('timedout');
});

test('a payment that was lost while the clock was back is taken back after ten minutes, not when it is set forward again', async () => {
  const transactionId = await paid();
  await set(-HOUR);
  await pass(MINUTE);
  await service.vanish('BTC', 1);
  await service.judge();
  await pass(5 * MINUTE);
  await set(HOUR);
  await pass(5 * MINUTE - SECOND);
  expect(await status(transactionId)).toBe('succeeded');
  await pass(SECOND);
  expect(await status(transactionId)).toBe('review');
});

test('forward beyond what it was set back time passes', async () => {
  await set(-HOUR);
  const { transactionId } = await service.create();
  await set(HOUR + 14 * MINUTE);
  expect(await status(transactionId)).toBe('started');
  await pass(MINUTE);
  expect(await status(transactionId)).toBe('timedout');
});

test('before the watchers have looked at a clock that was set back nothing happens by it', async () => {
  const transactionId = await paid();
  const open = await service.create();
  await pass(10 * MINUTE);
  service.setClock(-HOUR);
  await service.rate('100000.00');
  const fresh = await service.create();
  for (const one of [transactionId, open.transactionId, fresh.transactionId]) await reconsider(service.ctx, one);
  expect([await status(transactionId), await status(open.transactionId), await status(fresh.transactionId)]).toEqual([
    'succeeded',
    'started',
    'started',
  ]);
});

test('what the watchers date before they have looked is on the new clock already', async () => {
  const transactionId = await paid();
  service.setClock(-HOUR);
  await service.vanish('BTC', 1);
  await pass(10 * MINUTE - SECOND);
  expect(await status(transactionId)).toBe('succeeded');
  await pass(SECOND);
  expect(await status(transactionId)).toBe('review');
});

test('while a node is down nothing times out, however the clock is set', async () => {
  const { transactionId } = await service.create();
  service.setClock(-HOUR);
  await service.lookAtClock();
  service.pass(2 * HOUR);
  await service.lookAtClock();
  await service.judge();
  expect(await status(transactionId)).toBe('started');
});

test('a price of before the clock was set back is no price of a time to come', async () => {
  service.setClock(-HOUR);
  await expect(service.create()).rejects.toMatchObject({ code: 'rate_unavailable' });
  await service.rate('90000.00');
  const { transactionId } = await service.create();
  await pass(15 * MINUTE + 2 * MINUTE);
  await service.rate('90000.00');
  // at the time before the clock was set back the currency was worth more
  service.pass(43 * MINUTE);
  await service.pay(transactionId, 50_000n);
  await service.mine();
  await service.judge();
  expect(await status(transactionId)).toBe('review');
});
