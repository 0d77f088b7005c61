// The real `npm start` in the sandbox, whose signer's folder is put back to an older copy while the database is not: what has left since counts for the
// signer's limits all the same.
import { execFileSync } from 'node:child_process';
import { renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { payoutClient, until } from '../support/payout-client.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 240_000;
const { folder, remove } = dataFolderFor();
let service: Service;
let base = '';
const client = payoutClient({ base: () => base, folder });
const { ask, signIn, earn, address, payout, request, sent, received } = client;

async function begin(): Promise<void> {
  service = startService({
    dataFolder: folder,
    environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0', BURSAR_SIGNER_LIMITS: 'BTC:day=0.0035' },
  });
  base = await service.ready;
  await signIn();
}
beforeAll(begin, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

test('what left on chain and over Lightning since the copy counts', { timeout: TIMEOUT }, async () => {
  await earn('5000.00');
  await service.stop();
  const copy = join(folder, 'copy-of-signer');
  execFileSync('cp', ['-a', join(folder, 'signer'), copy]);
  await begin();
  await sent(await request(await address()));
  const { payment_request } = await ask('/sandbox/invoice', { amount: '0.001' });
  const lightning = { method: 'lightning', amount: '0.001', destination: payment_request };
  const paid = (await ask('/request_payout', lightning)).payout as { id: string };
  await client.becomes(paid.id, 'completed');
  await service.stop();
  rmSync(join(folder, 'signer'), { recursive: true });
  renameSync(copy, join(folder, 'signer'));
  await begin();

  // 0.002 have left, each with its highest fee, and this would be 0.004
  const to = await address();
  const third = await request(to, '0.002');
  const held = await until(async () => {
    const now = await payout(third);
    return now.status === 'pending' || now.txid !== null ? now : null;
  }, 'the signer is asked');
  expect(held).toMatchObject({ status: 'pending', held_reason: 'approval', txid: null });
  expect((await received(to)).payments).toEqual([]);
  await sent(await request(await address()));
});
