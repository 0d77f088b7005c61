// The real `npm start` in the sandbox: bitcoin payouts from the request to the block, and what a node, a reorganisation or kill -9 does on the
// way. Whatever happens, the outside world sees exactly one payment of each, and the audit is green.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { payoutClient } from '../support/payout-client.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 120_000;
const { folder, remove } = dataFolderFor();
let service: Service;
let base = '';
const { ask, signIn, mine, available, earn, address, payout, request, sent, becomes, received, arrival, isGreen } = payoutClient({
  base: () => base,
  folder,
});

beforeAll(async () => {
  service = startService({
    dataFolder: folder,
    environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0', BURSAR_RATE_LIMIT_SCALE: '100' },
  });
  base = await service.ready;
  await signIn();
  await earn('5000.00');
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

describe('a bitcoin payout', () => {
  test('is held, sent, and completed with the first block; the destination gets exactly the amount', {
    timeout: TIMEOUT,
  }, async () => {
    const before = await available();
    const to = await address();
    const id = await request(to, '0.00123456');
    expect(Number(await available())).toBeLessThan(Number(before) - 0.00123456);
    const now = await sent(id);
    expect(now).toMatchObject({
      status: 'processing',
      held_reason: null,
      error: null,
      completed_at: null,
      fee: null,
      destination: to,
    });
    expect(await arrival(to)).toMatchObject({ txid: now.txid, amount: '0.00123456', confirmations: 0 });
    await mine();
    const done = await becomes(id, 'completed');
    expect(done).toMatchObject({ txid: now.txid, fee_currency: 'BTC', error: null });
    expect(BigInt(Math.round((Number(before) - Number(await available())) * 1e8))).toBe(
      123_456n + BigInt(Math.round(Number(done.fee) * 1e8)),
    );
    await isGreen();
  });

  test('the same bytes are sent again after the answer of the node was lost, and after it refused', {
    timeout: TIMEOUT,
  }, async () => {
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

  test('a reorganisation under a completed one changes no status; the same transaction is mined again', {
    timeout: TIMEOUT,
  }, async () => {
    const to = await address();
    const id = await request(to);
    const { txid } = await sent(id);
    await arrival(to);
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
