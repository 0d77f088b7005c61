// The real `npm start` in the sandbox: bitcoin payouts from the request to the block, and what a node, a reorganisation or kill -9 does on the
// way. Whatever happens, the outside world sees exactly one payment of each, and the audit is green.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../cli/run.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 120_000;
type Json = Record<string, unknown>;

const { folder, remove } = dataFolderFor();
let service: Service;
let base: string;
let token: string;

async function ask(path: string, body: object = {}): Promise<Json> {
  const answer = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(path.startsWith('/sandbox/') ? body : { access_token: token, ...body }),
  });
  const json = (await answer.json()) as Json;
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status} ${JSON.stringify(json)}`);
  return json;
}
async function signIn(): Promise<void> {
  token = '';
  token = (await ask('/auth', { username: 'demo', password: 'demo-demo-demo' })).access_token as string;
}
const mine = (blocks = 1) => ask('/sandbox/mine', { currency: 'BTC', blocks });
const available = async (): Promise<string> => ((await ask('/get_account_info')).balances as Json).BTC as string;

/** Gives the demo merchant some bitcoin, final. */
async function earn(usd: string): Promise<void> {
  const { transaction_id } = await ask('/create_transaction', { amount: usd, crypto_selected: 'BTC' });
  await ask('/sandbox/pay', { transaction_id });
  await mine(6);
  const seen = await ask('/check_transaction', { transaction_id, status_was: 'pending', wait_seconds: 20 });
  expect(seen.status).toBe('succeeded');
}
const address = async (): Promise<string> => (await ask('/sandbox/address', { currency: 'BTC' })).address as string;
const payout = async (of: string): Promise<Json> => (await ask('/check_payout', { payout_id: of })).payout as Json;

async function request(to: string, amount = '0.001'): Promise<string> {
  const { payout: made } = await ask('/request_payout', { method: 'bitcoin', amount, destination: to });
  expect(made).toMatchObject({ status: 'processing', amount, method: 'bitcoin' });
  return (made as Json).id as string;
}

/** Asks until something is so; there is no other way to wait for a payout yet. */
async function until<T>(look: () => Promise<T | null>, what: string): Promise<T> {
  for (const end = performance.now() + 60_000; performance.now() < end; await delay(100)) {
    const found = await look();
    if (found !== null) return found;
  }
  throw new Error(`it never came: ${what}`);
}
const sent = (id: string) =>
  until(async () => {
    const now = await payout(id);
    return now.txid === null ? null : now;
  }, `${id} is sent`);
const becomes = (id: string, status: string) =>
  until(async () => {
    const now = await payout(id);
    return now.status === status ? now : null;
  }, `${id} is ${status}`);
const received = (at: string) => ask('/sandbox/receive', { currency: 'BTC', address: at });
/** The one payment at an address outside. */
const arrival = (at: string) =>
  until(async () => {
    const { payments } = (await received(at)) as { payments: Json[] };
    return payments[0] ?? null;
  }, `a payment at ${at}`);

async function isGreen(): Promise<void> {
  const { out } = await runCli(['audit'], { BURSAR_DATA_DIR: folder });
  expect(out.split('\n').filter((line) => /^(red|stopped)/.test(line))).toEqual([]);
}

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0', BURSAR_RATE_LIMIT_SCALE: '100' } });
  base = await service.ready;
  await signIn();
  await earn('5000.00');
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

describe('a bitcoin payout', () => {
  test('is held, sent, and completed with the first block; the destination gets exactly the amount', { timeout: TIMEOUT }, async () => {
    const before = await available();
    const to = await address();
    const id = await request(to, '0.00123456');
    expect(Number(await available())).toBeLessThan(Number(before) - 0.00123456);
    const now = await sent(id);
    expect(now).toMatchObject({ status: 'processing', held_reason: null, error: null, completed_at: null, fee: null, destination: to });
    expect(await arrival(to)).toMatchObject({ txid: now.txid, amount: '0.00123456', confirmations: 0 });
    await mine();
    const done = await becomes(id, 'completed');
    expect(done).toMatchObject({ txid: now.txid, fee_currency: 'BTC', error: null });
    expect(BigInt(Math.round((Number(before) - Number(await available())) * 1e8))).toBe(
      123_456n + BigInt(Math.round(Number(done.fee) * 1e8)),
    );
    await isGreen();
  });

  test('the same bytes are sent again after the answer of the node was lost, and after it refused', { timeout: TIMEOUT }, async () => {
    for (const fault of ['lose_answers', 'reject'] as const) {
      const to = await address();
      await ask('/sandbox/node', { currency: 'BTC', fault, for: 1 });
      const id = await request(to);
      const { txid } = await sent(id);
      await ask('/sandbox/clock', { advance_seconds: 700 });
      await signIn();
      expect(await arrival(to)).toMatchObject({ txid });
      await mine();
      await becomes(id, 'completed');
      expect((await received(to)).payments).toHaveLength(1);
    }
    await isGreen();
  });

  test('a reorganisation under a completed one changes no status; the same transaction is mined again', { timeout: TIMEOUT }, async () => {
    const to = await address();
    const id = await request(to);
    const { txid } = await sent(id);
    await mine();
    const done = await becomes(id, 'completed');
    await ask('/sandbox/reorg', { currency: 'BTC', depth: 1 });
    expect(await payout(id)).toEqual(done);
    await mine(7);
    expect(await arrival(to)).toMatchObject({ txid });
    expect((await payout(id)).status).toBe('completed');
    await isGreen();
  });

  test('many that are asked for together are paid by few transactions', { timeout: TIMEOUT }, async () => {
    const places = await Promise.all(Array.from({ length: 20 }, address));
    const ids = await Promise.all(places.map((to) => request(to)));
    const all = await Promise.all(ids.map(sent));
    expect(new Set(all.map((one) => one.txid)).size).toBeLessThanOrEqual(3);
    await mine();
    for (const id of ids) await becomes(id, 'completed');
    for (const to of places) expect(await received(to)).toMatchObject({ received: '0.00100000' });
    await isGreen();
  });
});
