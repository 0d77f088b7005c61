// The real `npm start` in the sandbox: payouts over Lightning by the public API, to invoices that are paid, held and refused, while answers are
// lost and processes are killed at every step. Whatever happens, an invoice is paid once, and a payout fails only by the node's last word.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FAILPOINT, WAITING } from '../../src/main/sandbox/failpoints.ts';
import { LIGHTNING_STEPS } from '../../src/worker/payouts/lightning/steps.ts';
import { payoutClient, until } from '../support/payout-client.ts';
import { openSecondWorker } from '../support/second-worker.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 120_000;
const { folder, remove } = dataFolderFor();
const failpoint = join(folder, 'sandbox', FAILPOINT);
const waiting = join(folder, 'sandbox', WAITING);
let service: Service;
let second: ReturnType<typeof openSecondWorker>;
let base = '';
type Json = Record<string, unknown>;
const { ask, signIn, available, payout, becomes, isGreen } = payoutClient({ base: () => base, folder });

type Invoice = { readonly payment_request: string; readonly payment_hash: string };
const invoice = (of: object = {}) => ask('/sandbox/invoice', { amount: '0.00010000', ...of }) as Promise<Invoice>;
const received = async ({ payment_request: address }: Invoice) =>
  (await ask('/sandbox/receive', { currency: 'BTC-LN', address })) as { received: string; payments: Json[] };
const node = (of: object) => ask('/sandbox/node', { currency: 'BTC-LN', ...of });

async function request(to: Invoice, amount = '0.0001'): Promise<string> {
  const { payout: made } = await ask('/request_payout', { method: 'lightning', amount, destination: to.payment_request });
  expect(made).toMatchObject({ method: 'lightning', amount, status: 'processing' });
  return (made as Json).id as string;
}
async function refusedWith(of: object): Promise<string> {
  const answer = await ask('/request_payout', { method: 'lightning', amount: '0.0001', ...of }).then(
    () => 'accepted',
    (error: Error) => error.message,
  );
  return /answered (\d+ \{"error":"\w+")/.exec(answer)?.[1]?.replace('{"error":', '') ?? answer;
}
const pass = async (seconds: number): Promise<void> => {
  await ask('/sandbox/clock', { advance_seconds: seconds });
  await signIn();
};

beforeAll(async () => {
  service = startService({
    dataFolder: folder,
    environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0', BURSAR_RATE_LIMIT_SCALE: '100' },
  });
  base = await service.ready;
  await signIn();
  const { transaction_id } = await ask('/create_transaction', { amount: '4000.00', crypto_selected: 'BTC-LN' });
  await ask('/sandbox/pay', { transaction_id });
  second = openSecondWorker(folder);
}, TIMEOUT);
afterAll(async () => {
  await second.stop();
  await service.stop();
  remove();
}, TIMEOUT);

test('an invoice is paid at once, for the real routing fee', { timeout: TIMEOUT }, async () => {
  const before = Number(await available());
  const to = await invoice();
  const id = await request(to);
  const done = await becomes(id, 'completed');
  expect(done).toMatchObject({
    method: 'lightning',
    amount: '0.0001',
    fee: '0.00000011',
    fee_currency: 'BTC',
    destination: to.payment_request,
    payment_hash: to.payment_hash,
    error: null,
    held_reason: null,
  });
  expect(done).not.toHaveProperty('txid');
  expect(await received(to)).toMatchObject({ received: '0.00010000', payments: [{ txid: to.payment_hash }] });
  expect(Number(await available())).toBeCloseTo(before - 0.00010011, 10);
  expect(
    ((await ask('/request_payout', { method: 'lightning', amount: '0.0001', destination: to.payment_request })).payout as Json)
      .id,
  ).toBe(id);
});

test('an invoice without an amount gets the amount of the payout', { timeout: TIMEOUT }, async () => {
  const to = (await ask('/sandbox/invoice', {})) as Invoice;
  await becomes(await request(to, '0.00000001'), 'completed');
  expect(await received(to)).toMatchObject({ received: '0.00000001' });
});

test('a Lightning address and an LNURL are asked for their invoice', { timeout: TIMEOUT }, async () => {
  const made = (await ask('/sandbox/lnurl', { min: '0.00001', max: '0.001' })) as { lnurl: string; address: string };
  const arrived = async (address: string) =>
    ((await ask('/sandbox/receive', { currency: 'BTC-LN', address })) as { received: string }).received;
  const outOf = async (destination: string, amount: string, key?: string) =>
    (
      await ask('/request_payout', {
        method: 'lightning',
        amount,
        destination,
        ...(key === undefined ? {} : { idempotency_key: key }),
      })
    ).payout as Json;
  const first = await outOf(made.address, '0.0001');
  const second = await outOf(made.lnurl, '0.0002', 'a key');
  expect(await outOf(made.lnurl, '0.0002', 'a key')).toEqual(second);
  for (const [{ id }, destination] of [
    [first, made.address],
    [second, made.lnurl],
  ] as const)
    expect(await becomes(String(id), 'completed')).toMatchObject({
      destination,
      payment_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  expect(await arrived(made.address)).toBe('0.00030000');
  expect(await arrived(made.lnurl)).toBe('0.00030000');
  for (const amount of ['0.00000999', '0.00100001'])
    expect(await refusedWith({ destination: made.address, amount })).toBe('400 "invalid_destination"');
});

test.each(['html', 'other_amount', 'other_hash', 'redirect'])(
  'a Lightning address that answers with %s is refused',
  { timeout: TIMEOUT },
  async (behaviour) => {
    const before = await available();
    const made = (await ask('/sandbox/lnurl', { behaviour })) as { lnurl: string; address: string };
    expect(await refusedWith({ destination: made.address })).toBe('400 "invalid_destination"');
    expect(await refusedWith({ destination: made.lnurl, idempotency_key: `${behaviour} key` })).toBe('400 "invalid_destination"');
    expect(await available()).toBe(before);
  },
);

test('a Lightning address can be paid by itself, again and again; an invoice cannot', { timeout: TIMEOUT }, async () => {
  const { address } = (await ask('/sandbox/lnurl', { max: '1' })) as { address: string };
  const automatic = { method: 'lightning', threshold: '0.0001', leave: '0.01' };
  const { payment_request: destination } = await invoice();
  await expect(ask('/set_payout_settings', { ...automatic, destination })).rejects.toThrow('invalid_destination');
  await ask('/set_payout_settings', { ...automatic, destination: address });
  await pass(86_401);
  await until(async () => {
    await pass(600);
    return Number(await available()) <= 0.0101 ? true : null;
  }, 'it is paid');
  // what its fee did not need comes back with the answer
  const last = await until(async () => {
    const { data } = (await ask('/list_payouts', { method: 'lightning', limit: 1 })) as { data: Json[] };
    return data[0]?.status === 'processing' ? null : data[0];
  }, 'it is completed');
  expect(last).toMatchObject({ destination: address, status: 'completed' });
  await ask('/set_payout_settings', { enabled: false });
});

test('what cannot be paid is refused before anything is held', { timeout: TIMEOUT }, async () => {
  const before = await available();
  const { payment_request: destination } = await invoice();
  const short = await invoice({ expires_in: 30 });
  const own = await ask('/create_transaction', { amount: '5.00', crypto_selected: 'BTC-LN' });
  expect(await refusedWith({ destination, amount: '0.00011' })).toBe('422 "invoice_amount_mismatch"');
  expect(await refusedWith({ destination: short.payment_request })).toBe('422 "invoice_expired"');
  expect(await refusedWith({ destination: own.wallet_address, amount: own.crypto_amount })).toBe('400 "invalid_destination"');
  const other = destination.endsWith('q') ? 'p' : 'q';
  expect(await refusedWith({ destination: `${destination.slice(0, -1)}${other}` })).toBe('400 "invalid_destination"');
  expect(await refusedWith({ destination: `${destination.slice(0, -8).toUpperCase()}${destination.slice(-8)}` })).toBe(
    '400 "invalid_destination"',
  );
  expect(await refusedWith({ destination: destination.replace('lnbcrt', 'lnbc') })).toBe('400 "invalid_destination"');
  expect(await refusedWith({ destination, amount: '0' })).toBe('422 "payout_below_minimum"');
  const large = await invoice({ amount: '5' });
  expect(await refusedWith({ destination: large.payment_request, amount: '5' })).toBe('422 "insufficient_balance"');
  expect(await available()).toBe(before);
});

test('all pays what the balance holds with its highest fee', { timeout: TIMEOUT }, async () => {
  await ask('/sandbox/merchant', { username: 'small', password: 'small-small-small' });
  const token = (await ask('/auth', { username: 'small', password: 'small-small-small' })).access_token;
  const as = { access_token: token };
  const { transaction_id } = await ask('/create_transaction', { amount: '13.00', crypto_selected: 'BTC-LN', ...as });
  await ask('/sandbox/pay', { transaction_id });
  const to = (await ask('/sandbox/invoice', {})) as Invoice;
  const { payout: made } = await ask('/request_payout', {
    method: 'lightning',
    amount: 'all',
    destination: to.payment_request,
    ...as,
  });
  // 20,000 satoshis hold 19,802 and their 1 %
  expect(made).toMatchObject({ amount: '0.00019802', status: 'processing' });
  await until(async () => ((await received(to)).received === '0.00019802' ? true : null), 'it has arrived');
});

test('a held payment stays on its way past every time-out, and ends as the recipient decides', { timeout: TIMEOUT }, async () => {
  const held = { behaviour: 'hold', expires_in: 31_536_000 };
  const [settled, given] = [await invoice(held), await invoice(held)];
  const before = Number(await available());
  const ids = [await request(settled), await request(given)] as const;
  await until(async () => (Number(await available()) < before - 0.0002 ? true : null), 'both are held');
  await pass(3_600);
  await pass(86_400);
  for (const id of ids) expect(await payout(id)).toMatchObject({ status: 'processing', error: null, held_reason: null });
  const resolve = ({ payment_hash }: Invoice, settle: boolean) =>
    until(() => ask('/sandbox/invoice_resolve', { payment_hash, settle }), 'it is held');
  await resolve(settled, true);
  await resolve(given, false);
  await becomes(ids[0], 'completed');
  expect(await becomes(ids[1], 'failed')).toMatchObject({ error: 'the recipient did not accept the payment', fee: null });
  expect((await received(given)).payments).toEqual([]);
  expect(Number(await available())).toBeCloseTo(before - 0.00010011, 10);
});

test('one that the recipient refuses fails at once, and may be requested again', { timeout: TIMEOUT }, async () => {
  const to = await invoice({ behaviour: 'fail' });
  const before = await available();
  const id = await request(to);
  await becomes(id, 'failed');
  expect(await available()).toBe(before);
  expect(await request(to)).not.toBe(id);
});

test.each([
  ['loses its answers', 'lose_answers'],
  ['refuses', 'reject'],
  ['answers a minute later', 'hang'],
])('a node that %s is asked again for the same payment', { timeout: TIMEOUT }, async (_says, fault) => {
  const to = await invoice();
  await node({ fault, for: 2 });
  const id = await request(to);
  await until(async () => {
    await pass(16);
    return (await payout(id)).status === 'completed' ? true : null;
  }, 'it is paid');
  expect((await received(to)).payments).toHaveLength(1);
});

/** The process that is held at a step; null = none. */
const heldProcess = (): number | null => (existsSync(waiting) ? Number(readFileSync(waiting, 'utf8')) || null : null);
/** Before these the node was asked for nothing. */
const BEFORE_SENDING: readonly string[] = ['ln-leased', 'authorized', 'ln-authorized', 'ln-committed'];
const happenings = {
  'kill -9 of that process': (pid: number) => process.kill(pid, 'SIGKILL'),
  'kill -9 of the node': () => process.kill(service.processOf('sandbox-process') as number, 'SIGKILL'),
  'kill -9 of PostgreSQL': () => process.kill(service.postgres() as number, 'SIGKILL'),
  'another worker takes the lease': () => pass(21),
  'the clock jumps by a day': () => pass(86_400),
};
const CELLS = [
  ...[...LIGHTNING_STEPS, 'authorized'].map((step) => [step, 'kill -9 of that process'] as const),
  ['ln-sent', 'kill -9 of the node'] as const,
  ...['ln-committed', 'ln-answered'].flatMap((step) =>
    (['kill -9 of PostgreSQL', 'another worker takes the lease', 'the clock jumps by a day'] as const).map(
      (what) => [step, what] as const,
    ),
  ),
];

test.each(CELLS)('at "%s", %s: the invoice is paid once', { timeout: TIMEOUT }, async (step, what) => {
  const to = await invoice({ expires_in: 31_536_000 });
  writeFileSync(failpoint, step);
  const id = await request(to);
  const pid = await until(async () => heldProcess(), `${step} is reached`);
  if (BEFORE_SENDING.includes(step)) expect((await received(to)).payments).toEqual([]);
  await Promise.race([happenings[what](pid), delay(3_000)]);
  rmSync(waiting, { force: true });
  await until(async () => {
    await pass(21);
    return (await payout(id)).status === 'completed' ? true : null;
  }, `${id} is completed`);
  expect((await received(to)).payments).toHaveLength(1);
});

test('and after all of it the books balance with the list of the node', { timeout: TIMEOUT }, async () => {
  await pass(61);
  await until(async () => {
    await isGreen();
    return true;
  }, 'the audit is green');
});

test('a node that was restored stops payouts, and what it has forgotten stays reserved', { timeout: TIMEOUT }, async () => {
  const to = await invoice({ behaviour: 'hold' });
  await node({ fault: 'forgets', for: 1 });
  const id = await request(to);
  await until(async () => {
    await pass(2);
    return (await payout(id)).held_reason === 'unknown_outcome' ? true : null;
  }, 'it is noticed');
  expect((await payout(id)).status).toBe('processing');
  const next = await ask('/request_payout', {
    method: 'lightning',
    amount: '0.0001',
    destination: (await invoice()).payment_request,
  });
  expect(next.payout).toMatchObject({ status: 'pending' });
});
