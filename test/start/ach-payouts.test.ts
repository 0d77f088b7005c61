// The real `npm start` in the sandbox: payouts to bank accounts from the request to the end of the days of returns, what the bank may say on
// the way, and kill -9. Each file passes moov-io/ach; the account gets its money exactly once or not at all; the audit is green.
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FAILPOINT, WAITING } from '../../src/main/sandbox/failpoints.ts';
import { ACH_STEPS } from '../../src/worker/payouts/ach/driver.ts';
import { runCli } from '../cli/run.ts';
import { checkedByMoov } from '../support/moov-ach.ts';
import { payoutClient, until } from '../support/payout-client.ts';
import { openSecondWorker } from '../support/second-worker.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

type Json = Record<string, unknown>;
const TIMEOUT = 120_000;
const { folder, remove } = dataFolderFor();
let service: Service;
/** From the first step at which a process is held. */
let second: ReturnType<typeof openSecondWorker> | null = null;
let base = '';
let accounts = 10_000;
const { ask, signIn, available, earn, payout, becomes, isGreen } = payoutClient({ base: () => base, folder });

async function start(): Promise<void> {
  service = startService({
    dataFolder: folder,
    environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0', BURSAR_RATE_LIMIT_SCALE: '100' },
  });
  base = await service.ready;
  await signIn();
}
beforeAll(async () => {
  await start();
  await earn('5000.00');
}, TIMEOUT);
afterAll(async () => {
  await second?.stop();
  await service.stop();
  remove();
}, TIMEOUT);

/** An account that nobody has paid yet. */
function account(): string {
  accounts += 1;
  return `ach:021000021:${accounts}`;
}
async function request(destination: string, amount = '100'): Promise<string> {
  const { payout: made } = await ask('/request_payout', { method: 'ach', amount, destination });
  expect(made).toMatchObject({ status: 'processing', amount, method: 'ach' });
  return (made as Json).id as string;
}
const bank = (action: string, more: object = {}) => ask('/sandbox/bank', { action, ...more });
const received = (address: string) => ask('/sandbox/receive', { currency: 'USD', address });

describe('a payout to a bank account', () => {
  test('is paid in dollars from one balance, handed over in a file, and completed when nothing can come back', {
    timeout: TIMEOUT,
  }, async () => {
    const before = Number(await available());
    const to = account();
    const id = await request(to, '250.01');
    const held = await payout(id);
    expect(held).toMatchObject({ fee: '2.51', fee_currency: 'USD', trace: null, destination: to, completed_at: null });
    expect(held).not.toHaveProperty('txid');
    // 250.01 USD at 65,000, rounded up
    expect(Math.round((before - Number(await available())) * 1e8)).toBe(384_631);
    expect(await received(to)).toEqual({ received: '0.00', payments: [] });
    await bank('settle');
    const done = await becomes(id, 'completed');
    expect(done.trace).toMatch(/^09100001\d{7}$/);
    expect(await received(to)).toEqual({
      received: '247.50',
      payments: [{ txid: done.trace, amount: '247.50', confirmations: 1 }],
    });
    await isGreen();
  });

  test('that comes back, before or after it was completed, is failed with the code, and its dollars buy payments at the rate of then', {
    timeout: TIMEOUT,
  }, async () => {
    for (const isCompleted of [true, false]) {
      const before = Number(await available());
      const to = account();
      const id = await request(to, '130');
      if (isCompleted) {
        await bank('settle');
        await becomes(id, 'completed');
      }
      await ask('/sandbox/rates', { BTC: '52000.00' });
      await bank('return', { payout_id: id, code: 'R02' });
      expect(await becomes(id, 'failed')).toMatchObject({ error: 'R02', held_reason: null });
      await ask('/sandbox/rates', { BTC: '65000.00' });
      // 0.002 BTC were taken, and 0.0025 come back
      expect(Math.round((Number(await available()) - before) * 1e8)).toBe(50_000);
      expect(await received(to)).toEqual({ received: '0.00', payments: [] });
    }
    await isGreen();
  });

  const pass = async (seconds: number): Promise<void> => {
    await ask('/sandbox/clock', { advance_seconds: seconds });
    await signIn();
  };
  /** The bank settles again and again, one call at a time: none of them need see what a process that died has left. */
  let isSettling = false;
  function settling(): void {
    if (isSettling) return;
    isSettling = true;
    const ended = (): void => {
      isSettling = false;
    };
    bank('settle').then(ended, ended);
  }
  async function completes(id: string): Promise<void> {
    let looks = 0;
    await until(async () => {
      settling();
      // whoever died had the file leased
      if (looks++ % 20 === 10) await pass(21);
      return (await payout(id)).status === 'completed' ? true : null;
    }, `${id} is completed`);
  }

  test('a lost answer and kill -9 while the bank has the file lead to one arrival', { timeout: TIMEOUT }, async () => {
    const to = account();
    const id = await request(to);
    await bank('lose_answer');
    const interrupted = bank('settle').catch(() => undefined);
    await until(async () => ((await payout(id)).trace === null ? null : true), 'a file');
    // the worker and the bank itself, and whoever would start them again
    for (const pid of [service.supervisor(), service.processOf('worker'), service.processOf('sandbox-process')])
      process.kill(pid as number, 'SIGKILL');
    await service.ended;
    await interrupted;
    await start();
    await completes(id);
    expect(await received(to)).toMatchObject({ received: '99.00', payments: [{ amount: '99.00' }] });
    await isGreen();
  });

  const failpoint = join(folder, 'sandbox', FAILPOINT);
  const waiting = join(folder, 'sandbox', WAITING);
  const heldProcess = (): number | null => (existsSync(waiting) ? Number(readFileSync(waiting, 'utf8')) || null : null);
  const kill = (pid: number | null) => void (pid !== null && process.kill(pid, 'SIGKILL'));
  const happenings = {
    'kill -9 of that worker': kill,
    'kill -9 of PostgreSQL': () => kill(service.postgres()),
    'another worker takes the lease': () => pass(21),
    'the clock jumps by a day': () => pass(86_400),
  };
  const CELLS = [
    ...ACH_STEPS.map((step) => [step, 'kill -9 of that worker'] as const),
    ...['ach-leaving', 'ach-handed'].flatMap((step) =>
      (['kill -9 of PostgreSQL', 'another worker takes the lease', 'the clock jumps by a day'] as const).map(
        (what) => [step, what] as const,
      ),
    ),
  ];
  test.each(CELLS)('at "%s", %s: the account gets it once', { timeout: TIMEOUT }, async (step, what) => {
    second ??= openSecondWorker(folder);
    const to = account();
    rmSync(waiting, { force: true });
    const id = await request(to);
    // what the bank reports of an entry is read at this step only
    if (step === 'ach-read')
      await until(async () => {
        await bank('settle');
        return (await payout(id)).trace;
      }, 'it is handed over');
    writeFileSync(failpoint, step);
    if (step === 'ach-read') bank('noc', { payout_id: id }).catch(() => undefined);
    const pid = await until(async () => {
      if (step !== 'ach-read') settling();
      return heldProcess();
    }, `${step} is reached`);
    if (step === 'ach-made' || step === 'ach-kept' || step === 'ach-leaving') expect((await received(to)).payments).toEqual([]);
    await Promise.race([happenings[what](pid), delay(3_000)]);
    rmSync(waiting, { force: true });
    await completes(id);
    expect(await received(to)).toMatchObject({ received: '99.00', payments: [{ amount: '99.00' }] });
    await isGreen();
  });

  test('of an API that the signer trusts no more waits, alone, until it is trusted again', { timeout: TIMEOUT }, async () => {
    const key = readFileSync(join(folder, 'intent-key.pub'), 'utf8').trim();
    const cli = async (...args: string[]) => expect(await runCli(args, { BURSAR_DATA_DIR: folder })).toMatchObject({ code: 0 });
    await cli('keys', 'distrust-intent', key);
    const to = account();
    const id = await request(to);
    await bank('settle').catch(() => undefined);
    await until(async () => ((await payout(id)).held_reason === 'approval' ? true : null), 'held');
    expect(await received(to)).toEqual({ received: '0.00', payments: [] });
    await isGreen();
    await cli('keys', 'trust-intent', key);
    // it may have been tried again by itself before
    await runCli(['payout', 'approve', id], { BURSAR_DATA_DIR: folder });
    await until(async () => ((await payout(id)).status === 'processing' ? true : null), 'it goes on');
    await bank('settle');
    await becomes(id, 'completed');
    expect(await received(to)).toMatchObject({ payments: [{ amount: '99.00' }] });
    await isGreen();
  });

  test('settles by the clock, and a notice of change moves nothing', { timeout: TIMEOUT }, async () => {
    const to = account();
    const id = await request(to);
    for (let day = 0; day < 12 && (await payout(id)).status !== 'completed'; day++) {
      await ask('/sandbox/clock', { advance_seconds: 86_400 });
      await signIn();
    }
    expect((await payout(id)).status).toBe('completed');
    await bank('noc', { payout_id: id });
    expect(await received(to)).toMatchObject({ received: '99.00' });
    expect((await payout(id)).status).toBe('completed');
    await isGreen();
  });

  test('every file that was handed over passes moov-io/ach', () => {
    // what the bank has reported is in a folder of its own there
    // and a worker that was killed while it wrote may have left a part
    const files = readdirSync(join(folder, 'bank')).filter((name) => name !== 'reports' && !/\.ach\.[0-9a-f]{8}$/.test(name));
    expect(files.length).toBeGreaterThanOrEqual(4);
    for (const name of files) {
      expect(name).toMatch(/^\d{4}-\d\d-\d\d-[A-Z0-9]\.ach$/);
      expect(checkedByMoov(join(folder, 'bank', name))).toMatchObject({ valid: true, errors: [] });
    }
  });
});
