// The real `npm start` in the sandbox: a credited payment that every mempool drops is lost after ten minutes (rule 17) and is credited again
// when it is back; one that was never credited waits for 72 hours (rule 15).
import { afterAll, beforeAll, expect, test } from 'vitest';
import { payoutClient } from '../support/payout-client.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 90_000;
type Json = Record<string, unknown>;

const { folder, remove } = dataFolderFor();
let service: Service;
let base: string;
const { ask, signIn, mine, available } = payoutClient({ base: () => base, folder });

const pay = async (): Promise<string> => {
  const { transaction_id } = await ask('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
  await ask('/sandbox/pay', { transaction_id });
  return transaction_id as string;
};
const becomes = async (id: string, status: string, was: string): Promise<void> => {
  let seen = await ask('/check_transaction', { transaction_id: id });
  if (seen.status === was) seen = await ask('/check_transaction', { transaction_id: id, status_was: was, wait_seconds: 10 });
  expect(seen.status).toBe(status);
};

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  base = await service.ready;
  await signIn();
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

test('a credited payment that is nowhere is lost after ten minutes and comes back with its credit', {
  timeout: TIMEOUT,
}, async () => {
  const id = await pay();
  await mine();
  await becomes(id, 'succeeded', 'pending');
  const credited = await available();
  await ask('/sandbox/reorg', { currency: 'BTC', depth: 1 });
  await ask('/sandbox/evict', { transaction_id: id });
  await ask('/sandbox/clock', { advance_seconds: 590 });
  expect((await ask('/check_transaction', { transaction_id: id })).status).toBe('succeeded');
  await ask('/sandbox/clock', { advance_seconds: 30 });
  await becomes(id, 'review', 'succeeded');
  expect(await available()).toBe('0.00000000');
  await ask('/sandbox/return', { transaction_id: id });
  await mine();
  await becomes(id, 'succeeded', 'review');
  expect(await available()).toBe(credited);
});

test('a payment that was never credited is withdrawn after 72 hours out of the mempool', { timeout: TIMEOUT }, async () => {
  const id = await pay();
  await becomes(id, 'pending', 'started');
  await ask('/sandbox/evict', { transaction_id: id });
  await ask('/sandbox/clock', { advance_seconds: 71 * 3_600 });
  await signIn();
  expect((await ask('/check_transaction', { transaction_id: id })).status).toBe('pending');
  await ask('/sandbox/clock', { advance_seconds: 3_700 });
  await signIn();
  // a day has passed as well, so the last look-up follows at once
  const { events } = await ask('/check_transaction', {
    transaction_id: id,
    status_was: 'timedout',
    wait_seconds: 10,
    expand: ['events'],
  });
  expect((events as Json[]).map((event) => event.status)).toEqual(['started', 'pending', 'timedout', 'timedout_checked']);
});
