// What a worker had leased when it died: the next worker of its machine goes on with it at once, and leaves alone what a living one has.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ChainPort } from '../../../src/core/ports.ts';
import type { Context } from '../../../src/flow/context.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { leaseBatch, readBatch } from '../../../src/store/payouts/batch-rows.ts';
import { payoutJobs } from '../../../src/worker/payouts/job.ts';
import { OUTSIDE, tellFee } from '../../support/funded.ts';
import { tellingTo } from '../../support/payout-jobs.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const LEASE_MS = 20_000;
const DEAD = 'here 11-111';
const ALIVE = 'here 22-222';
const ELSEWHERE = 'there 33-333';
let world: ServiceOnDatabase;
let ctx: Context;
beforeAll(async () => {
  world = await openServiceOnDatabase();
  await tellFee(world.ctx);
  // a node that nobody asks: the look asks none
  const node = { currency: 'BTC', send: () => Promise.reject(new Error('nobody sends')) } as unknown as ChainPort;
  const chains = new Map([['BTC' as const, node]]);
  ctx = { ...world.ctx, ports: { ...world.ctx.ports, chains } };
  for (let n = 0; n < 3; n++) {
    const { transactionId } = await world.create(50_000_00n);
    await world.pay(transactionId, 50_000_000n);
  }
  await world.mine(6);
  await world.judge();
});
afterAll(() => world.drop());

/** A batch that a worker has leased. */
async function leased(owner: string): Promise<string> {
  await requestPayout(ctx, { merchantId: world.merchantId, amount: '0.1', destination: OUTSIDE });
  const formed = await formBatch(ctx, 'BTC', 1_000n);
  if (formed.outcome !== 'formed') throw new Error(formed.outcome);
  const nowMs = world.now();
  const not: string[] = [];
  expect(await leaseBatch(ctx.db, { owner, currency: 'BTC', nowMs, untilMs: nowMs + LEASE_MS, not })).toBe(formed.batchId);
  return formed.batchId;
}
const row = async (id: string) =>
  (await world.admin.query('select lease_owner, lease_until, due_at, lease_epoch from outgoing_batches where id = $1', [id]))
    .rows[0];
const isFree = async (id: string): Promise<boolean> => (await row(id)).lease_until === null;
/** The job of a worker that begins. */
function lookJob(isGone?: (owner: string) => boolean) {
  const signing = {
    sign: async () => Promise.reject(new Error('nobody asks for a signature')),
    signed: async () => ({ transactions: [], more: false }),
  };
  const options = { signing, owner: 'here 44-444', intents: async () => null, ...(isGone === undefined ? {} : { isGone }) };
  const [look] = payoutJobs(ctx, ['BTC'], options, (made) => made(tellingTo([])));
  if (look === undefined) throw new Error('there is no job');
  return look;
}

test('the first look of a worker ends the leases of those that are gone, and no others', async () => {
  const [dead, alive, elsewhere] = [await leased(DEAD), await leased(ALIVE), await leased(ELSEWHERE)];
  const { lease_epoch: epoch } = await row(dead);
  await lookJob().run();
  expect([await isFree(dead), await isFree(alive), await isFree(elsewhere)]).toEqual([false, false, false]);
  const asked: string[] = [];
  const look = lookJob((owner) => {
    asked.push(owner);
    return owner === DEAD;
  });
  await look.run();
  expect(asked.sort()).toEqual([DEAD, ALIVE, ELSEWHERE]);
  expect([await isFree(dead), await isFree(alive), await isFree(elsewhere)]).toEqual([true, false, false]);
  expect(await row(dead)).toMatchObject({ lease_owner: null, lease_epoch: epoch });
  // it is the next that is due, under an epoch of its own
  const nowMs = world.now();
  const lease = { owner: 'here 44-444', currency: 'BTC' as const, nowMs, untilMs: nowMs + LEASE_MS, not: [] };
  expect(await leaseBatch(ctx.db, lease)).toBe(dead);
  expect((await readBatch(ctx.db, dead, { lock: false }))?.leaseEpoch).toBe(BigInt(epoch) + 1n);
  expect(await leaseBatch(ctx.db, lease)).toBeNull();
  // a worker asks once, when it begins: whom it takes for dead later is nobody that it was started after
  await world.admin.query('update outgoing_batches set lease_owner = $2 where id = $1', [alive, DEAD]);
  await look.run();
  expect(await isFree(alive)).toBe(false);
});
