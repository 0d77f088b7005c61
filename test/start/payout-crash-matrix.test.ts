// Every step of a bitcoin payout with everything that can happen at it, on one running sandbox with two workers: a process is held at the step,
// the fault is made, the process goes on or is dead. Whatever it was, the destination gets the amount exactly once, the payout is completed, and
// the books balance.

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FAILPOINT, WAITING } from '../../src/main/sandbox/failpoints.ts';
import { DRIVER_STEPS } from '../../src/worker/payouts/driver-options.ts';
import { payoutClient, until } from '../support/payout-client.ts';
import { openSecondWorker } from '../support/second-worker.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 300_000;
const { folder, remove } = dataFolderFor();
const failpoint = join(folder, 'sandbox', FAILPOINT);
const waiting = join(folder, 'sandbox', WAITING);
let service: Service;
let second: ReturnType<typeof openSecondWorker>;
let base = '';
const { ask, signIn, mine, earn, address, payout, request, received, isGreen } = payoutClient({ base: () => base, folder });

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  base = await service.ready;
  await signIn();
  await earn('5000.00');
  second = openSecondWorker(folder);
}, TIMEOUT);
afterAll(async () => {
  await second.stop();
  await service.stop();
  remove();
}, TIMEOUT);

/** The process that is held at a step; null = none. */
const heldProcess = (): number | null => (existsSync(waiting) ? Number(readFileSync(waiting, 'utf8')) || null : null);
const kill = (pid: number | null): void => {
  if (pid !== null) process.kill(pid, 'SIGKILL');
};
/** Longer than a lease, and longer than payouts wait for each other. Tokens live on the same clock. */
const pass = (seconds = 21): Promise<unknown> =>
  until(async () => {
    await ask('/sandbox/clock', { advance_seconds: seconds });
    await signIn();
    return true;
  }, 'the clock is moved');
const node = (fault: string | null): Promise<unknown> => ask('/sandbox/node', { currency: 'BTC', fault, for: 2 });

type Fault = {
  readonly says: string;
  readonly steps: readonly string[];
  /** What happens while a process is held at the step. */
  happens(pid: number): unknown;
};
/** After a step as late as these the transaction is in a block already. */
const LATE = ['seen', 'completed', 'final'];
/** Nothing may have left at these: it is stored before it is sent. What is queued or reserved the other worker may pay meanwhile: nobody has its lease. */
const BEFORE_SENDING = ['journalled', 'signed', 'stored'];
const FAULTS: readonly Fault[] = [
  { says: 'kill -9 of the worker', steps: DRIVER_STEPS, happens: kill },
  { says: 'kill -9 of the signer', steps: ['journalled', 'reserved'], happens: () => kill(service.processOf('signer')) },
  {
    says: 'kill -9 of PostgreSQL',
    steps: ['signed', 'stored', 'sent', 'seen'],
    happens: () => kill(service.postgres()),
  },
  {
    says: 'another worker takes the lease',
    steps: ['reserved', 'signed', 'stored', 'sent', 'seen'],
    happens: async () => {
      await pass();
      // what it does while the first is held
      await ask('/sandbox/mine', { currency: 'BTC', blocks: 1 });
    },
  },
  {
    says: 'the clock jumps by a day',
    steps: ['signed', 'sent', 'seen'],
    happens: () => pass(86_400),
  },
  { says: 'the node does what it is told and its answers are lost', steps: ['stored'], happens: () => node('lose_answers') },
  { says: 'the node refuses', steps: ['stored'], happens: () => node('reject') },
  { says: 'the node answers a minute later', steps: ['stored', 'sent'], happens: () => node('hang') },
  {
    says: 'a reorganisation',
    steps: ['seen', 'completed'],
    happens: () => ask('/sandbox/reorg', { currency: 'BTC', depth: 1 }),
  },
];
const CELLS = FAULTS.flatMap((fault) => fault.steps.map((step) => ({ ...fault, step })));

/**
 * Asks for payouts until a process is held at the step with one of them: what a worker reads in the moment of a block is no step of its own.
 */
async function heldWithPayout(step: string): Promise<{ readonly id: string; readonly to: string; readonly pid: number }> {
  for (;;) {
    const to = await until(address, 'an address');
    await pass();
    writeFileSync(failpoint, step);
    const id = await until(() => request(to), 'a payout is taken');
    const pid = await until(async () => {
      const at = heldProcess();
      if (at !== null || !LATE.includes(step)) return at;
      // blocks come until the step is reached
      const { payments } = (await received(to)) as { payments: object[] };
      if (payments.length > 0) await mine(step === 'final' ? 6 : 1);
      if (step === 'final') await pass(61);
      await delay(200);
      return heldProcess() ?? ((await payout(id)).status === 'completed' && step !== 'final' ? 0 : null);
    }, `${step} is reached`);
    if (pid !== 0) return { id, to, pid };
  }
}

test.each(CELLS)('$says, at "$step": paid once', { timeout: TIMEOUT }, async ({ step, happens }) => {
  const { id, to, pid } = await heldWithPayout(step);
  const arrived = ((await received(to)).payments as object[]).length;
  if (BEFORE_SENDING.includes(step)) expect(arrived).toBe(0);
  await Promise.race([happens(pid), delay(3_000)]);
  rmSync(waiting, { force: true });
  let looks = 0;
  await until(async () => {
    // what waits for its time: a lease, a retry
    if (looks++ % 10 === 0) await pass();
    const { payments } = (await received(to)) as { payments: object[] };
    if (payments.length > 0 && looks % 10 === 2) await mine();
    return (await payout(id)).status === 'completed' ? true : null;
  }, `${id} is completed`);
  await until(() => mine(6), 'six blocks');
  const { received: amount, payments } = (await received(to)) as { received: string; payments: { txid: string }[] };
  const { txid, status, error } = await payout(id);
  expect({ status, error, amount, times: payments.length }).toEqual({
    status: 'completed',
    error: null,
    amount: '0.00100000',
    times: 1,
  });
  expect(payments[0]?.txid).toBe(txid);
});

test('a thousand payouts of one merchant within a minute are paid by at most ten transactions', {
  timeout: TIMEOUT,
}, async () => {
  await pass();
  await earn('100000.00');
  const places = await Promise.all(Array.from({ length: 10 }, address));
  const began = performance.now();
  const ids: string[] = [];
  for (let at = 0; at < 1_000; at += 20)
    ids.push(...(await Promise.all(Array.from({ length: 20 }, (_, n) => request(places[(at + n) % 10] as string)))));
  const tookMs = performance.now() - began;
  const transactions = new Set<unknown>();
  await until(async () => {
    await pass(11);
    await mine();
    const all = await Promise.all(ids.map(payout));
    for (const { txid } of all) if (txid !== null) transactions.add(txid);
    return all.every(({ status }) => status === 'completed') ? true : null;
  }, 'all are completed');
  expect(transactions.size).toBeLessThanOrEqual(10);
  for (const to of places) expect((await received(to)).received).toBe('0.10000000');
  expect(tookMs).toBeLessThan(60_000);
});

test('and after all of it the books balance, and nothing is stopped', { timeout: TIMEOUT }, async () => {
  await until(async () => {
    await isGreen();
    return true;
  }, 'the audit is green');
});
