// The real `npm start` in the sandbox: currencies of all five chains go back to their customers, from the decision to the block, while the worker is
// killed. Each customer gets exactly one payment of what came in less the network fee, and the audit is green.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FAILPOINT, WAITING } from '../../src/main/sandbox/failpoints.ts';
import { runCli } from '../cli/run.ts';
import { payoutClient, until } from '../support/payout-client.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 240_000;
type Json = Record<string, unknown>;
type Refund = { status: string; amount: string; fee: string; txid: string | null; destination: string };

/** The depth that is final, and how its payments come to wait for a decision. */
const CURRENCIES = [
  { code: 'BTC', final: 6, from: 'succeeded' },
  { code: 'LTC', final: 12, from: 'declined' },
  { code: 'BCH', final: 10, from: 'review' },
  { code: 'DASH', final: 12, from: 'declined' },
  { code: 'DOGE', final: 60, from: 'review' },
] as const;
type Currency = (typeof CURRENCIES)[number];

const { folder, remove } = dataFolderFor();
const environment = { BURSAR_SANDBOX_BLOCK_SECONDS: '0', BURSAR_RATE_LIMIT_SCALE: '100' };
let service: Service;
let base = '';
const { ask, signIn, isGreen } = payoutClient({ base: () => base, folder });

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment });
  base = await service.ready;
  await signIn();
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

const units = (amount: string): bigint => BigInt(amount.replace('.', ''));
const mine = ({ code }: Pick<Currency, 'code'>, blocks: number) => ask('/sandbox/mine', { currency: code, blocks });
const status = async (id: string): Promise<string> => (await ask('/check_transaction', { transaction_id: id })).status as string;
const becomes = (id: string, wanted: string) =>
  until(async () => ((await status(id)) === wanted ? wanted : null), `${id} is ${wanted}`);
const refundOf = async (id: string): Promise<Refund | null> =>
  (await ask('/check_transaction', { transaction_id: id, expand: ['refund'] })).refund as Refund | null;
const outside = async (code: string): Promise<string> => (await ask('/sandbox/address', { currency: code })).address as string;
const received = (code: string, at: string) =>
  ask('/sandbox/receive', { currency: code, address: at }) as Promise<{ received: string; payments: Json[] }>;
const reimburse = (id: string, destination: string, more: object = {}) =>
  ask('/resolve_transaction', { transaction_id: id, action: 'reimburse', destination, ...more });
async function create(code: string): Promise<{ id: string; amount: string }> {
  const made = await ask('/create_transaction', { amount: '80.00', crypto_selected: code });
  return { id: made.transaction_id as string, amount: made.crypto_amount as string };
}
/** Mines until the reimbursement is in a block, and returns it. */
async function confirmed(id: string, currency: Currency): Promise<Refund> {
  await mine(currency, currency.final);
  await until(async () => (await refundOf(id))?.txid ?? null, `the reimbursement of ${id} is signed`);
  return until(async () => {
    await mine(currency, 1);
    const now = await refundOf(id);
    return now?.status === 'completed' ? now : null;
  }, `the reimbursement of ${id} is confirmed`);
}

test('currencies of every chain go back once, less the network fee, whatever dies on the way', { timeout: TIMEOUT }, async () => {
  await ask('/set_settings', { late_payments: 'review' });
  const all: { currency: Currency; id: string; amount: string; paid: bigint; to: string }[] = [];
  for (const currency of CURRENCIES) {
    const { id, amount } = await create(currency.code);
    all.push({ currency, id, amount, paid: units(amount), to: await outside(currency.code) });
  }
  const half = (amount: string): string => (Number(amount) / 2).toFixed(8);
  for (const one of all) {
    if (one.currency.from === 'declined') one.paid = units(half(one.amount));
    if (one.currency.from === 'declined') await ask('/sandbox/pay', { transaction_id: one.id, amount: half(one.amount) });
    if (one.currency.from === 'succeeded') await ask('/sandbox/pay', { transaction_id: one.id });
    if (one.currency.from !== 'review') await mine(one.currency, 2);
  }
  await ask('/sandbox/clock', { advance_seconds: 1_000 });
  await signIn();
  for (const one of all) {
    if (one.currency.from === 'review') await ask('/sandbox/pay', { transaction_id: one.id });
    if (one.currency.from === 'review') await mine(one.currency, 6);
    await becomes(one.id, one.currency.from);
  }
  // earlier than final: taken, and waits
  for (const { currency, id, to } of all) {
    const key = { idempotency_key: `back ${id}` };
    const taken = await until(() => reimburse(id, to, key), 'it is taken');
    expect(taken).toMatchObject({ transaction: { transaction_id: id, status: currency.from } });
    await expect(reimburse(id, to)).rejects.toThrow('not_resolvable');
    expect(await reimburse(id, to, key)).toEqual(taken);
  }
  expect(await refundOf(all[1]!.id)).toMatchObject({ status: 'pending', txid: null, destination: all[1]!.to });
  process.kill(service.processOf('worker') as number, 'SIGKILL');
  for (const { currency, id, paid, to } of all) {
    const refund = await confirmed(id, currency);
    await becomes(id, 'reimbursed');
    expect(units(refund.amount) + units(refund.fee)).toBe(paid);
    expect(units(refund.fee)).toBeGreaterThan(0n);
    const arrived = await received(currency.code, to);
    expect(arrived.payments).toMatchObject([{ txid: refund.txid, amount: refund.amount }]);
    await mine(currency, currency.final);
  }
  for (const { currency, to } of all) expect((await received(currency.code, to)).payments).toHaveLength(1);
  const { data } = await ask('/list_payouts');
  expect(data).toEqual([]);
  await isGreen();
});

test('an excess goes back from a paid transaction by the operator’s command, and the status stays', {
  timeout: TIMEOUT,
}, async () => {
  const currency = CURRENCIES[0];
  const { id, amount } = await create(currency.code);
  await ask('/sandbox/pay', { transaction_id: id, amount: (Number(amount) * 1.5).toFixed(8) });
  await mine(currency, currency.final);
  await becomes(id, 'succeeded');
  const to = await outside(currency.code);
  const before = (await ask('/get_account_info')).balances as Json;
  const { out, code } = await runCli(['review', 'reimburse', id, '--destination', to, '--part', 'excess', '--json'], {
    BURSAR_DATA_DIR: folder,
  });
  expect([code, JSON.parse(out)]).toEqual([0, { transaction_id: id, status: 'succeeded' }]);
  const refund = await confirmed(id, currency);
  const excess = units((Number(amount) * 1.5).toFixed(8)) - units(amount);
  expect(units(refund.amount) + units(refund.fee)).toBe(excess);
  expect((await received(currency.code, to)).payments).toMatchObject([{ amount: refund.amount }]);
  expect(await status(id)).toBe('succeeded');
  expect((await ask('/get_account_info')).balances).toEqual(before);
  await isGreen();
});

/** A transaction that was paid over Lightning. */
async function paidOverLightning(): Promise<{ id: string; amount: string }> {
  const made = await create('BTC-LN');
  await ask('/sandbox/pay', { transaction_id: made.id });
  await becomes(made.id, 'succeeded');
  return made;
}
const invoice = async (of: object = {}) =>
  (await ask('/sandbox/invoice', of)) as { payment_request: string; payment_hash: string };
/** Waits for it; a payment that nobody has answered for is asked for again by the service's clock. */
async function reimbursed(id: string): Promise<Refund> {
  await until(async () => {
    await ask('/sandbox/clock', { advance_seconds: 21 });
    await signIn();
    return (await status(id)) === 'reimbursed' ? true : null;
  }, `${id} is reimbursed`);
  return (await refundOf(id)) as Refund;
}

test('what came in over Lightning goes back to an invoice, an address and an LNURL, each once', {
  timeout: TIMEOUT,
}, async () => {
  const named = (await ask('/sandbox/lnurl', { max: '1' })) as { lnurl: string; address: string };
  const { payment_request: to } = await invoice();
  let sent = 0n;
  for (const destination of [to, named.address, named.lnurl]) {
    const { id, amount } = await paidOverLightning();
    const key = { idempotency_key: `back ${id}` };
    const taken = await reimburse(id, destination, key);
    expect(taken).toMatchObject({ transaction: { transaction_id: id, status: 'succeeded' } });
    expect(await reimburse(id, destination, key)).toEqual(taken);
    const refund = await reimbursed(id);
    expect(refund).toMatchObject({ status: 'completed', destination, txid: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(units(refund.amount) + units(refund.fee)).toBe(units(amount));
    if (destination === to) expect(await received('BTC-LN', to)).toMatchObject({ received: refund.amount });
    else sent += units(refund.amount);
  }
  const arrived = await received('BTC-LN', named.address);
  expect(arrived.payments).toHaveLength(2);
  expect(units(arrived.received)).toBe(sent);
  const dishonest = (await ask('/sandbox/lnurl', { behaviour: 'other_amount' })) as { address: string };
  const { id } = await paidOverLightning();
  const before = (await ask('/get_account_info')).balances;
  for (const key of [{}, { idempotency_key: 'dishonest' }])
    await expect(reimburse(id, dishonest.address, key)).rejects.toThrow('invalid_destination');
  await expect(reimburse(id, (await invoice({ amount: '0.0001' })).payment_request)).rejects.toThrow('invoice_amount_mismatch');
  expect(await refundOf(id)).toBeNull();
  expect((await ask('/get_account_info')).balances).toEqual(before);
});

test.each(['ln-committed', 'ln-answered'])(
  'at "%s", kill -9 of that process: what came in over Lightning goes back once',
  { timeout: TIMEOUT },
  async (step) => {
    const waiting = join(folder, 'sandbox', WAITING);
    const { id } = await paidOverLightning();
    const { payment_request: to } = await invoice();
    writeFileSync(join(folder, 'sandbox', FAILPOINT), step);
    await reimburse(id, to);
    const pid = await until(
      async () => (existsSync(waiting) && Number(readFileSync(waiting, 'utf8'))) || null,
      `${step} is reached`,
    );
    expect(await refundOf(id)).toMatchObject({ status: 'pending' });
    process.kill(pid, 'SIGKILL');
    rmSync(waiting, { force: true });
    const refund = await reimbursed(id);
    expect((await received('BTC-LN', to)).payments).toMatchObject([{ amount: refund.amount }]);
    await isGreen();
  },
);
