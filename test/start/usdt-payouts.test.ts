// The real `npm start` in the sandbox: USDT leaves to the outside world, ether and USDT go back to customers, while answers are lost, calls are
// refused, blocks are replaced and processes are killed. The destination gets the amount exactly once, and the books balance.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FAILPOINT, WAITING } from '../../src/main/sandbox/failpoints.ts';
import { DRIVER_STEPS } from '../../src/worker/payouts/driver-options.ts';
import { payoutClient, until } from '../support/payout-client.ts';
import { openSecondWorker } from '../support/second-worker.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 240_000;
type Json = Record<string, unknown>;
const { folder, remove } = dataFolderFor();
const environment = { BURSAR_SANDBOX_BLOCK_SECONDS: '0', BURSAR_RATE_LIMIT_SCALE: '100' };
const failpoint = join(folder, 'sandbox', FAILPOINT);
const waiting = join(folder, 'sandbox', WAITING);
const CONFIRMED = 12;
const FINAL = 65;
let service: Service;
let second: ReturnType<typeof openSecondWorker>;
let base = '';
const { ask, signIn, payout, isGreen } = payoutClient({ base: () => base, folder });

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment });
  base = await service.ready;
  await signIn();
  await earn('5000.00', 'USDT');
  second = openSecondWorker(folder);
}, TIMEOUT);
afterAll(async () => {
  await second.stop();
  await service.stop();
  remove();
}, TIMEOUT);

const mine = (blocks = 1) => ask('/sandbox/mine', { currency: 'ETH', blocks });
const balances = async (): Promise<Json> => (await ask('/get_account_info')).balances as Json;
const micro = (amount: unknown): bigint => BigInt((amount as string).replace('.', ''));
const address = async (): Promise<string> => (await ask('/sandbox/address', { currency: 'USDT' })).address as string;
const received = (at: string, currency = 'USDT') => ask('/sandbox/receive', { currency, address: at });

async function earn(usd: string, code: string): Promise<string> {
  const { transaction_id } = await ask('/create_transaction', { amount: usd, crypto_selected: code });
  await ask('/sandbox/pay', { transaction_id });
  await mine(FINAL);
  const seen = await ask('/check_transaction', { transaction_id, status_was: 'pending', wait_seconds: 20 });
  expect(seen.status).toBe('succeeded');
  return transaction_id as string;
}
const request = async (destination: string, amount = '50'): Promise<string> => {
  const { payout: made } = await ask('/request_payout', { method: 'usdt', amount, destination });
  expect(made).toMatchObject({ status: 'processing', amount, method: 'usdt' });
  return (made as Json).id as string;
};
const arrival = (at: string, currency = 'USDT') =>
  until(async () => ((await received(at, currency)).payments as Json[])[0] ?? null, `a payment at ${at}`);
const becomes = (id: string, status: string) =>
  until(async () => {
    const now = await payout(id);
    return now.status === status ? now : null;
  }, `${id} is ${status}`);

test('a payout arrives once, is completed by its twelfth block and not before, and is charged what its gas cost', {
  timeout: TIMEOUT,
}, async () => {
  const before = micro((await balances()).USDT);
  const to = await address();
  const id = await request(to, '60.5');
  await arrival(to);
  await mine(CONFIRMED - 1);
  expect(await payout(id)).toMatchObject({ status: 'processing', fee_currency: 'USDT' });
  await mine();
  const done = await becomes(id, 'completed');
  expect(await received(to)).toMatchObject({ received: '60.500000', payments: [{ txid: done.txid, confirmations: CONFIRMED }] });
  expect(micro(done.fee)).toBeGreaterThan(0n);
  expect(before - micro((await balances()).USDT)).toBe(60_500_000n + micro(done.fee));
  await isGreen();
  await mine(FINAL);
});

test('a payee that nobody can be is refused before anything is held', { timeout: TIMEOUT }, async () => {
  const before = await balances();
  const own = (await ask('/create_transaction', { amount: '80.00', crypto_selected: 'ETH' })).wallet_address as string;
  const refused = (destination: string, amount = '50') =>
    ask('/request_payout', { method: 'usdt', amount, destination }).then(
      () => 'taken',
      (error: Error) => /answered (\d+) \{"error":"([a-z_]+)"/.exec(error.message)?.slice(1, 3).join(' '),
    );
  const to = await address();
  const badCase = to.replace(/[a-f]/i, (digit) => (digit === digit.toLowerCase() ? digit.toUpperCase() : digit.toLowerCase()));
  expect(await refused(`0x${'0'.repeat(40)}`)).toBe('400 invalid_destination');
  expect(await refused('0x5FbDB2315678afecb367f032d93F642f64180aa3')).toBe('400 invalid_destination');
  expect(await refused(own)).toBe('400 invalid_destination');
  expect(await refused(badCase)).toBe('400 invalid_destination');
  expect(await refused(to, '49.999999')).toBe('422 payout_below_minimum');
  expect(await refused(to, before.USDT as string)).toBe('422 insufficient_balance');
  expect(await balances()).toEqual(before);
});

/** The clock moves further than a lease, and tokens live on it. */
const pass = (seconds = 21): Promise<unknown> =>
  until(async () => {
    await ask('/sandbox/clock', { advance_seconds: seconds });
    await signIn();
    return true;
  }, 'the clock is moved');
const heldProcess = (): number | null => (existsSync(waiting) ? Number(readFileSync(waiting, 'utf8')) || null : null);
const kill = (pid: number | null): void => {
  if (pid !== null) process.kill(pid, 'SIGKILL');
};
const node = (fault: string | null): Promise<unknown> => ask('/sandbox/node', { currency: 'ETH', fault, for: 1 });

type Fault = { readonly says: string; readonly steps: readonly string[]; happens(pid: number): unknown };
const FAULTS: readonly Fault[] = [
  { says: 'kill -9 of the worker', steps: DRIVER_STEPS, happens: kill },
  { says: 'kill -9 of the signer', steps: ['journalled'], happens: kill },
  { says: 'kill -9 of PostgreSQL', steps: ['signed', 'stored', 'seen'], happens: () => kill(service.postgres()) },
  {
    says: 'another worker takes the lease',
    steps: ['reserved', 'signed', 'stored', 'sent', 'seen'],
    happens: async () => {
      await pass();
      await mine();
    },
  },
  { says: 'the clock jumps by a day', steps: ['signed', 'seen'], happens: () => pass(86_400) },
  { says: 'the node loses its answer', steps: ['stored'], happens: () => node('lose_answers') },
  { says: 'the node answers a minute later', steps: ['stored'], happens: () => node('hang') },
  { says: 'the node refuses', steps: ['stored'], happens: () => node('reject') },
  { says: 'the node denies what it has', steps: ['stored'], happens: () => node('forgets') },
  { says: 'a reorganisation', steps: ['completed'], happens: () => ask('/sandbox/reorg', { currency: 'ETH', depth: 1 }) },
];
const CELLS = FAULTS.flatMap((fault) => fault.steps.map((step) => ({ ...fault, step })));
/** Only blocks lead to these. */
const LATE = ['seen', 'completed', 'final'];
/** Nothing may have left at these: it is stored before it is sent. What is queued or reserved the other worker may pay meanwhile: nobody has its lease. */
const BEFORE_SENDING = ['journalled', 'signed', 'stored'];

test.each(CELLS)('$says, at "$step": paid once', { timeout: TIMEOUT }, async ({ step, happens }) => {
  const to = await address();
  writeFileSync(failpoint, step);
  const id = await request(to);
  const pid = await until(async () => {
    if (LATE.includes(step)) await mine(step === 'final' ? FINAL : 1);
    if (step === 'final') await pass();
    return heldProcess();
  }, `${step} is reached`);
  if (BEFORE_SENDING.includes(step)) expect((await received(to)).payments).toEqual([]);
  await Promise.race([happens(pid), delay(3_000)]);
  rmSync(waiting, { force: true });
  let looks = 0;
  const done = await until(async () => {
    if (looks++ % 5 === 0) await pass();
    if (((await received(to)).payments as Json[]).length > 0) await mine(4);
    const now = await payout(id);
    return now.status === 'completed' ? now : null;
  }, `${id} is completed`);
  expect(await received(to)).toMatchObject({ received: '50.000000', payments: [{ txid: done.txid }] });
});

test('a payment of two goes back whole, less what its gas costs', { timeout: TIMEOUT }, async () => {
  for (const code of ['ETH', 'USDT'] as const) {
    const id = await earn('80.00', code);
    const paid = (await ask('/check_transaction', { transaction_id: id })).crypto_received as string;
    const to = (await ask('/sandbox/address', { currency: code })).address as string;
    await ask('/resolve_transaction', { transaction_id: id, action: 'reimburse', destination: to });
    await arrival(to, code);
    await mine(CONFIRMED);
    await until(async () => {
      const { status } = await ask('/check_transaction', { transaction_id: id });
      return status === 'reimbursed' ? true : null;
    }, `${id} is reimbursed`);
    const { refund } = (await ask('/check_transaction', { transaction_id: id, expand: ['refund'] })) as { refund: Json };
    const sent = (await received(to, code)) as { received: string; payments: Json[] };
    expect(sent.payments).toMatchObject([{ txid: refund.txid }]);
    expect(refund).toMatchObject({ status: 'completed', amount: sent.received });
    const wei = (amount: unknown): bigint => {
      const [whole = '', fraction = ''] = (amount as string).split('.');
      return BigInt(whole + fraction.padEnd(18, '0'));
    };
    expect(wei(refund.amount) + wei(refund.fee)).toBe(wei(paid));
    expect(wei(refund.fee)).toBeGreaterThan(0n);
  }
});

test('all that is there leaves by "all", and the books balance at final depth', { timeout: TIMEOUT }, async () => {
  const to = await address();
  const { payout: made } = (await ask('/request_payout', { method: 'usdt', amount: 'all', destination: to })) as { payout: Json };
  await arrival(to);
  await mine(FINAL);
  await becomes(made.id as string, 'completed');
  expect((await received(to)).received).toBe(made.amount);
  await until(async () => {
    await pass();
    await isGreen();
    return true;
  }, 'the audit is green');
});
