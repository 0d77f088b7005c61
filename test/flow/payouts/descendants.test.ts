// Batches whose outputs, or whose times, are not what they were: what spends the change of a dead batch is dead too, nodes that contradict each
// other decide nothing, and a clock that was fast holds nothing back.
import { describe, expect, test } from 'vitest';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { leaseBatch, readBatch } from '../../../src/store/payouts/batch-rows.ts';
import { readWork } from '../../../src/store/payouts/batches.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';

batchServiceForEach();

const lease = () => {
  const nowMs = ctx.ports.clock.now();
  return leaseBatch(ctx.db, { owner: 'next', currency: 'BTC', nowMs, untilMs: nowMs + 20_000, not: [] });
};

/** A payout, completed by the first block. */
async function completed() {
  const id = await batches.request();
  const batch = await batches.formed();
  await batches.mined(batch, await batches.signed(batch));
  expect(await progress(ctx, batch.id)).toBe('confirmed');
  return { id, batch };
}

test('a batch that spends the change of a dead one is dead too, at any depth, and its payouts are displaced', async () => {
  await batches.earn();
  const before = await service.available();
  const first = await completed();
  const second = await completed();
  const third = await completed();
  expect(second.batch.inputs[0]?.chain).toBe(1);
  await service.vanish('BTC', 3);
  for (const { batch } of [first, second, third]) expect(await progress(ctx, batch.id)).toBe('reorged');
  await service.admin.query('update outgoing_batches set due_at = null, lease_until = null');
  service.spend('ab'.repeat(32), first.batch.inputs);
  await service.mine(6);
  expect(await lease()).toBe(first.batch.id);
  expect(await progress(ctx, first.batch.id)).toBe('displaced');
  // each makes the next one due
  for (const { batch } of [second, third]) {
    expect(await lease()).toBe(batch.id);
    expect(await progress(ctx, batch.id)).toBe('displaced');
    expect((await readBatch(ctx.db, batch.id, { lock: false }))?.state).toBe('dead');
  }
  for (const { id } of [first, second, third])
    expect(await batches.row(id)).toMatchObject({ status: 'failed', error: 'displaced' });
  expect(await service.available()).toBe(before);
  await service.admin.query('update outgoing_batches set due_at = null');
  expect(await service.findings()).toEqual([]);
});

test('a batch that spends what a miner has paid with his block is dead once another block stands there for good', async () => {
  await service.create(100_000n);
  const { rows } = await service.admin.query(`select encode(script, 'hex') as script from transactions`);
  const made = service.spend('cd'.repeat(32), [], [{ vout: 0, script: rows[0].script, amountMinor: 1_000_000n }], true);
  await service.mine(100);
  await service.judge();
  const { id, batch } = await completed();
  expect(batch.inputs.map(({ txid }) => txid)).toEqual([made.facts.txid]);
  await service.vanish('BTC', 101);
  expect(await progress(ctx, batch.id)).toBe('displaced');
  expect(await batches.row(id)).toMatchObject({ status: 'failed', error: 'displaced' });
});

test('a batch whose times a fast clock has set is due when that clock is set back', async () => {
  await batches.earn();
  await batches.request();
  const batch = await batches.formed();
  const far = new Date(ctx.ports.clock.now() + 48 * 3_600_000);
  const plant = (dueAt: Date | null, leaseUntil: Date | null) =>
    service.admin.query('update outgoing_batches set due_at = $1, lease_until = $2', [dueAt, leaseUntil]);
  await plant(far, null);
  expect(await lease()).toBe(batch.id);
  await plant(new Date(ctx.ports.clock.now() - 1), far);
  expect(await readWork(ctx.db, ctx.ports.clock.now())).toMatchObject([{ currency: 'BTC', soon: true }]);
  expect(await lease()).toBe(batch.id);
  await plant(far, far);
  expect(await readWork(ctx.db, ctx.ports.clock.now())).toMatchObject([{ currency: 'BTC', soon: true, reserved: true }]);
  expect(await lease()).toBe(batch.id);
  // what is due later today, or leased, is left alone
  expect(await lease()).toBe(null);
  await plant(new Date(ctx.ports.clock.now() + 1_800_000), null);
  expect(await lease()).toBe(null);
});

describe('while our nodes contradict each other, or only one holds a block', () => {
  const said = (change: string) => service.admin.query(`update node_conditions set ${change} where currency = 'BTC'`);
  async function signed(amount: string) {
    await service.rate('100000.00');
    await batches.earn(1, 5_000_000n);
    const id = await batches.request(amount);
    const batch = await batches.formed();
    return { id, batch, transaction: await batches.signed(batch) };
  }

  test('nothing above the contested limit is completed', async () => {
    const { id, batch, transaction } = await signed('0.02');
    await batches.mined(batch, transaction);
    await said(`contested = 'our nodes hold different blocks at height 107'`);
    expect(await progress(ctx, batch.id)).toBe('unagreed');
    expect((await batches.row(id)).status).toBe('processing');
    await service.admin.query('update outgoing_batches set due_at = null');
    expect(await service.findings()).toEqual([]);
    await said('contested = null, (agreed_height, agreed_hash) = (select height, hash from blocks where height = 106)');
    expect(await progress(ctx, batch.id)).toBe('unagreed');
    await said('(agreed_height, agreed_hash) = (select height, hash from blocks where height = 107)');
    expect(await progress(ctx, batch.id)).toBe('confirmed');
    await service.mine(5);
    await said('(agreed_height, agreed_hash) = (select height, hash from blocks where height = 111)');
    expect(await progress(ctx, batch.id)).toBe('waiting');
    await said('(agreed_height, agreed_hash) = (select height, hash from blocks where height = 112)');
    expect(await progress(ctx, batch.id)).toBe('final');
    expect(await service.findings()).toEqual([]);
  });

  test('nothing fails by a foreign spend that one node alone holds, whatever it is worth', async () => {
    const { id, batch } = await signed('0.02');
    service.spend('ab'.repeat(32), batch.inputs);
    await service.mine(6);
    await said(`contested = 'our nodes hold different blocks at height 107'`);
    expect(await progress(ctx, batch.id)).toBe('waiting');
    expect((await batches.row(id)).status).toBe('processing');
    await service.admin.query('update payouts set usd_minor = 100000');
    expect(await progress(ctx, batch.id)).toBe('waiting');
    await said('contested = null, (agreed_height, agreed_hash) = (select height, hash from blocks where height = 112)');
    expect(await progress(ctx, batch.id)).toBe('failed');
  });
});
