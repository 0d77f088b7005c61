// The real `npm start` in the sandbox while nodes hang (they take a call, and answer after a minute): each currency's payouts have a job of their
// own, so that those of the others are paid as quickly as ever, and exactly once.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { payoutClient, until } from '../support/payout-client.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 240_000;
/** A call to a node that hangs ends after this at the earliest: whoever waits for one takes longer. */
const SILENCE_MS = 15_000;
type Json = Record<string, unknown>;
const { folder, remove } = dataFolderFor();
let service: Service;
let base = '';
const { ask, signIn, mine, earn, address, request, arrival, becomes, received, isGreen } = payoutClient({
  base: () => base,
  folder,
});
const hang = async (codes: readonly string[], fault: 'hang' | null = 'hang'): Promise<void> => {
  for (const currency of codes) await ask('/sandbox/node', { currency, fault });
};

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  base = await service.ready;
  await signIn();
  await earn('5000.00');
  const { transaction_id } = await ask('/create_transaction', { amount: '5000.00', crypto_selected: 'USDT' });
  await ask('/sandbox/pay', { transaction_id });
  await ask('/sandbox/mine', { currency: 'ETH', blocks: 65 });
  const seen = await ask('/check_transaction', { transaction_id, status_was: 'pending', wait_seconds: 20 });
  expect(seen.status).toBe('succeeded');
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

test('bitcoin is paid while every other node hangs', { timeout: TIMEOUT }, async () => {
  const others = ['ETH', 'LTC', 'BCH', 'DASH', 'DOGE', 'BTC-LN'];
  // the second finds every job of the others in a call that hangs
  await hang(others);
  for (let n = 0; n < 2; n++) {
    const to = await address();
    const beganMs = performance.now();
    const id = await request(to);
    await arrival(to);
    expect(performance.now() - beganMs).toBeLessThan(SILENCE_MS - 1_000);
    await mine();
    await becomes(id, 'completed');
    expect((await received(to)).payments).toHaveLength(1);
  }
  await hang(others, null);
});

test('USDT is paid while the node of bitcoin hangs, and bitcoin once it answers again', { timeout: TIMEOUT }, async () => {
  const outside = (await ask('/sandbox/address', { currency: 'USDT' })).address as string;
  const to = await address();
  await hang(['BTC']);
  const late = await request(to);
  const beganMs = performance.now();
  const { payout } = await ask('/request_payout', { method: 'usdt', amount: '50', destination: outside });
  const there = () => ask('/sandbox/receive', { currency: 'USDT', address: outside });
  await until(async () => ((await there()).payments as Json[])[0] ?? null, 'USDT arrives');
  expect(performance.now() - beganMs).toBeLessThan(SILENCE_MS - 1_000);
  await ask('/sandbox/mine', { currency: 'ETH', blocks: 13 });
  await becomes((payout as Json).id as string, 'completed');
  await hang(['BTC'], null);
  await arrival(to);
  await mine();
  await becomes(late, 'completed');
  expect((await received(to)).payments).toHaveLength(1);
  await isGreen();
});
