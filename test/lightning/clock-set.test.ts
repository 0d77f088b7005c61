// Our own clock is set while the Lightning node keeps the right time: an invoice can be paid for as long as its window really lasts, whenever
// it was made, and not longer.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LightningPort } from '../../src/core/lightning/port.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { type LightningService, openLightningService } from '../support/lightning-service.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const PAID = ['started', 'pending', 'confirmed', 'succeeded'];
/** The true time, and by how much our clock is off. */
const time = { trueMs: 0, offMs: 0 };
const clock = { now: () => time.trueMs + time.offMs, steady: () => time.trueMs };
let engine: SimulatedEngine;
let port: LightningPort;
let service: LightningService;

beforeEach(async () => {
  Object.assign(time, { trueMs: Date.UTC(2026, 5, 1), offMs: 0 });
  engine = await simulatedEngine(() => time.trueMs);
  port = createLnd(async () => engine.target(), { chain: 'regtest' });
  service = await openLightningService(port, clock);
  await service.work();
});
afterEach(async () => {
  await service.drop();
  port.close();
  await engine.close();
});

const status = async (id: string): Promise<string> => (await service.path(id)).at(-1) as string;
async function pass(ms: number): Promise<void> {
  time.trueMs += ms;
  await service.rate('100000.00');
  await service.work();
}
async function set(byMs: number): Promise<void> {
  time.offMs += byMs;
  await service.rate('100000.00');
  await service.work();
}
const pay = async (id: string): Promise<boolean> => {
  const hash = await service.hashOf(id);
  return engine.node().pay(hash, engine.node().find(hash)!.valueMsat, 1).paid;
};

describe.each([
  ['an hour back', [-HOUR]],
  ['a day back', [-DAY]],
  ['an hour back, and forward again', [-HOUR, HOUR]],
])('our clock is set %s', (_how, steps) => {
  const setting = async (): Promise<void> => {
    for (const byMs of steps) await set(byMs);
  };

  test('an invoice made before is open for the rest of its window, and no longer', async () => {
    const { transactionId } = await service.create();
    await pass(10 * MINUTE);
    await setting();
    await pass(5 * MINUTE - SECOND);
    expect(await status(transactionId)).toBe('started');
    await pass(SECOND);
    expect(await status(transactionId)).toBe('timedout');
    expect(await pay(transactionId)).toBe(false);
  });

  test('an invoice made before and paid afterwards is credited', async () => {
    const { transactionId } = await service.create();
    await pass(10 * MINUTE);
    await setting();
    expect(await pay(transactionId)).toBe(true);
    await pass(SECOND);
    expect(await service.path(transactionId)).toEqual(PAID);
    expect(await service.findings()).toEqual([]);
  });

  test('an invoice made afterwards has a whole window', async () => {
    await setting();
    const [unpaid, paid] = [await service.create(), await service.create()];
    await pass(15 * MINUTE - SECOND);
    expect(await status(unpaid.transactionId)).toBe('started');
    expect(await pay(paid.transactionId)).toBe(true);
    await pass(SECOND);
    expect(await service.path(paid.transactionId)).toEqual(PAID);
    expect(await status(unpaid.transactionId)).toBe('timedout');
    expect(await service.findings()).toEqual([]);
  });
});

test('an invoice made while our clock was an hour back can be paid after it is put right', async () => {
  await set(-HOUR);
  const { transactionId } = await service.create();
  await pass(MINUTE);
  await set(HOUR);
  expect(await status(transactionId)).toBe('started');
  expect(await pay(transactionId)).toBe(true);
  await pass(SECOND);
  expect(await service.path(transactionId)).toEqual(PAID);
});

test('a paid transaction is settled a day after it succeeded, whatever our clock did', async () => {
  const { transactionId } = await service.create();
  await pay(transactionId);
  await pass(SECOND);
  await set(-HOUR);
  await pass(DAY - MINUTE);
  expect(await status(transactionId)).toBe('succeeded');
  await pass(2 * MINUTE);
  expect(await status(transactionId)).toBe('settled');
});

test.each([
  ['an hour behind', -HOUR],
  ['an hour ahead of', HOUR],
])('our clock is %s the node’s: what was paid in the window while nobody read is on time', async (_how, offMs) => {
  await set(offMs);
  const { transactionId } = await service.create();
  await service.stopWorker();
  time.trueMs += 5 * MINUTE;
  expect(await pay(transactionId)).toBe(true);
  time.trueMs += 40 * MINUTE;
  await service.rate('100000.00');
  await service.restartWorker();
  await service.work();
  expect(await service.path(transactionId)).toEqual(PAID);
});
