// Reimbursements of large payments on a chain with several nodes: they leave once two nodes hold the blocks down to the final depth.
import { expect, test } from 'vitest';
import type { NodeAgreement } from '../../../src/core/ports.ts';
import { recordCondition } from '../../../src/store/chain/node-conditions.ts';
import { ctx, green, refundServiceForEach, reimburse, service, status } from './refund-service.ts';

refundServiceForEach();

const LARGE = 5_000_00n;
const LARGE_PAID = 5_000_000n;
const CONTESTED: NodeAgreement = { state: 'contested', reason: 'at height 100 …' };

/** The worker has read up to the tip of its node and records what the nodes say of each other. */
async function nodesSay(agreement: NodeAgreement): Promise<void> {
  const { hash, height } = await blockBelow(0);
  const ready = { state: 'ready', height, hash, tipTimeMs: service.now(), peers: 2 } as const;
  await recordCondition(ctx.db, 'BTC', { ...ready, agreement }, service.now());
}
/** Two nodes hold what was read, up to so many blocks below the tip. */
const agreeUpTo = async (below: number): Promise<void> => nodesSay({ state: 'agreed', ...(await blockBelow(below)) });

async function blockBelow(depth: number): Promise<{ height: number; hash: string }> {
  const found = await service.admin.query(
    `select height, hash from blocks where currency = 'BTC' order by height desc offset $1 limit 1`,
    [depth],
  );
  return found.rows[0];
}
const step = async (id: string): Promise<string> =>
  (await service.admin.query('select step from payouts where reimburses = $1', [id])).rows[0].step;

async function paidWithTwoNodes(): Promise<string> {
  await agreeUpTo(0);
  const { transactionId: id } = await service.create(LARGE);
  await service.pay(id, LARGE_PAID);
  await service.mine(3);
  await agreeUpTo(0);
  await service.judge();
  expect(await status(id)).toBe('succeeded');
  await reimburse(id);
  return id;
}

test('one goes on by itself when the second node has the blocks that make its payments final', async () => {
  const id = await paidWithTwoNodes();
  await service.mine(3);
  await service.judge();
  expect(await step(id)).toBe('held');
  await agreeUpTo(1);
  await service.judge();
  expect(await step(id)).toBe('held');
  await agreeUpTo(0);
  await service.judge();
  expect(await step(id)).toBe('queued');
  await green();
});

test('one goes on by itself when a contradiction between the nodes has ended', async () => {
  const id = await paidWithTwoNodes();
  await nodesSay(CONTESTED);
  await service.mine(3);
  await service.judge();
  expect(await step(id)).toBe('held');
  await agreeUpTo(0);
  await service.judge();
  expect(await step(id)).toBe('queued');
});
