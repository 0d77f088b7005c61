// A merchant of a running sandbox who asks for bitcoin payouts, and the outside world that they go to.
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { runCli } from '../cli/run.ts';

type Json = Record<string, unknown>;

/** @param where asked before each call: a service that was started again has another address */
export function payoutClient(where: { readonly base: () => string; readonly folder: string }) {
  let token = '';

  async function ask(path: string, body: object = {}): Promise<Json> {
    const answer = await fetch(where.base() + path, {
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
  /** Once a transaction that was paid is credited. */
  const credited = (transactionId: unknown) =>
    until(async () => {
      const { status } = await ask('/check_transaction', { transaction_id: transactionId });
      return status === 'succeeded' || status === 'settled' ? true : null;
    }, `${transactionId} is credited`);
  const address = async (): Promise<string> => (await ask('/sandbox/address', { currency: 'BTC' })).address as string;
  const payout = async (of: string): Promise<Json> => (await ask('/check_payout', { payout_id: of })).payout as Json;

  async function request(to: string, amount = '0.001'): Promise<string> {
    const { payout: made } = await ask('/request_payout', { method: 'bitcoin', amount, destination: to });
    expect(made).toMatchObject({ status: 'processing', amount, method: 'bitcoin' });
    return (made as Json).id as string;
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
    const { out } = await runCli(['audit'], { BURSAR_DATA_DIR: where.folder });
    expect(out.split('\n').filter((line) => /^(red|stopped)/.test(line))).toEqual([]);
    expect(out).toContain('INV-12');
  }
  return { ask, signIn, mine, available, earn, credited, address, payout, request, sent, becomes, received, arrival, isGreen };
}

/** Asks until something is so: a merchant has no other way to wait for a payout. What fails meanwhile is asked again. */
export async function until<T>(look: () => Promise<T | null>, what: string): Promise<T> {
  let last: unknown = '';
  for (const end = performance.now() + 180_000; performance.now() < end; await delay(100)) {
    const found = await look().catch((error: unknown) => {
      last = error;
      return null;
    });
    if (found !== null) return found;
  }
  throw new Error(`it never came: ${what} ${String(last)}`);
}
