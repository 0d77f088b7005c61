// A payout that was recovered, or was final, when the chain leaves its block again, below the final depth: as often as it happens its merchant has
// what it cost back, or is charged once, and the audit is green.
import { beforeEach, describe, expect, test } from 'vitest';
import { progress } from '../../../src/flow/payouts/progress.ts';
import type { Batch } from '../../../src/store/payouts/batch-rows.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { AMOUNT, cleared, eventsOf, fails, minedAfterAll, owed, recover } from './failed-batches.ts';

batchServiceForEach();

describe('a second reorganisation below the final depth', () => {
  let before: bigint;
  let id: string;
  let batch: Batch;
  beforeEach(async () => {
    await batches.earn();
    before = await service.available();
    id = await batches.request();
    batch = await batches.formed();
  });
  const isGivenBack = async (): Promise<void> => {
    expect(await batches.row(id)).toMatchObject({ status: 'failed', error: 'displaced' });
    expect([await service.available(), await batches.held(), await owed()]).toEqual([before, 0n, 0n]);
  };

  test.each([
    ['had been completed before', true],
    ['had failed before', false],
  ])('gives back what was recovered and %s, and it is recovered again, as often as it happens', async (_, isCompleted) => {
    const transaction = await batches.signed(batch);
    const cost = AMOUNT + BigInt(transaction.fee);
    if (isCompleted) {
      await batches.mined(batch, transaction);
      expect(await progress(ctx, batch.id)).toBe('confirmed');
      await service.vanish('BTC', 1);
    }
    await fails(batch, isCompleted ? 'displaced' : 'failed');
    for (const _ of [1, 2]) {
      await minedAfterAll(batch, transaction);
      await recover(transaction.txid);
      expect([await service.available(), await service.balance('expense:reorg_loss:BTC')]).toEqual([before - cost, 0n]);
      await cleared();
      await service.vanish('BTC', 6);
      expect(await progress(ctx, batch.id)).toBe('reorged');
      await fails(batch, 'displaced');
      await isGivenBack();
    }
    expect((await eventsOf(id)).slice(-3)).toEqual(['payout.completed', 'payout.reorged', 'payout.failed']);
  });

  test('repays what its merchant owes of it before anything is available', async () => {
    const transaction = await batches.signed(batch);
    const cost = AMOUNT + BigInt(transaction.fee);
    await batches.mined(batch, transaction);
    await progress(ctx, batch.id);
    await service.vanish('BTC', 1);
    await fails(batch, 'displaced');
    // another one takes nearly all in between
    await batches.earn();
    const other = await batches.request('0.019');
    await minedAfterAll(batch, transaction);
    const there = await service.available();
    await recover(transaction.txid);
    expect([await service.available(), await owed()]).toEqual([0n, cost - there]);
    await cleared();
    await service.vanish('BTC', 6);
    await fails(batch, 'displaced');
    expect([await service.available(), await owed()]).toEqual([there, 0n]);
    expect((await batches.row(other)).status).toBe('processing');
  });

  test.each([
    ['dearer', 0],
    ['cheaper', 2],
  ])(
    'puts a %s one of its transactions in the place of the one that was final: the service bears what it takes',
    async (_, first) => {
      const all = [
        await batches.signed(batch),
        await batches.signed(batch, 2, 2_000n),
        await batches.signed(batch, 3, 3_000n),
      ] as const;
      const charged = BigInt(all[first]!.fee);
      const borne = async (): Promise<bigint> =>
        (await service.balance('expense:network_fee:BTC')) - (await service.balance('income:network_fee:BTC'));
      await batches.mined(batch, all[first]!);
      expect(await progress(ctx, batch.id)).toBe('confirmed');
      await service.vanish('BTC', 1);
      for (const [n, next] of [all[1], all[2], all[0], all[0], all[1]].entries()) {
        // what is mined again at once was never seen to be gone
        if (n % 2 === 0) await progress(ctx, batch.id);
        await batches.mined(batch, next, 1);
        expect(await progress(ctx, batch.id)).toBe('moved');
        await cleared();
        await service.mine(5);
        expect(await progress(ctx, batch.id)).toBe('final');
        expect([await service.available(), await borne()]).toEqual([before - AMOUNT - charged, BigInt(next.fee) - charged]);
        await cleared();
        await service.vanish('BTC', 6);
      }
      await fails(batch, 'displaced');
      await isGivenBack();
      expect(await borne()).toBe(0n);
    },
  );
});
