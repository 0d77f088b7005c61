// A batch spends what a deep reorganisation has taken out of every block, and nothing that we watch shows what became of it: its payer's payer has
// spent something elsewhere. An operator gives it up.
import { beforeEach, describe, expect, test } from 'vitest';
import { giveUpPayout, newestToGiveUp } from '../../../src/flow/payouts/give-up.ts';
import { bookCapital, newOwnAddresses } from '../../../src/flow/payouts/own-outputs.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { readWork } from '../../../src/store/payouts/batches.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { looked } from './failed-batches.ts';

batchServiceForEach();

const txid = 'ab'.repeat(32);
const giveUp = (payoutId: string) => giveUpPayout(ctx, { payoutId, by: 'operator Ada', evidence: 'seen in an explorer' });
const tip = async (): Promise<number> =>
  (await service.admin.query(`select height from chain_cursors where currency = 'BTC'`)).rows[0].height;
/** What the worker's jobs do once the chain has shown something. */
async function bookOutputs(): Promise<void> {
  await looked();
  await service.judge();
  const work = await readWork(ctx.db, ctx.ports.clock.now());
  if (work.some(({ currency, unbooked }) => currency === 'BTC' && unbooked)) await bookCapital(ctx, 'BTC');
}

describe.each([
  ['capital', 5_000_000n],
  ['a payment', 3_000_000n],
] as const)('%s', (kind, amount) => {
  let script: string;
  let arrives: () => unknown;
  let id: string;
  let look: () => Promise<string>;
  let before: bigint;
  let batch: Awaited<ReturnType<typeof batches.formed>>;
  let signed: Awaited<ReturnType<typeof batches.signed>>;

  beforeEach(async () => {
    await batches.earn();
    if (kind === 'capital') {
      const [own] = (await newOwnAddresses(ctx, 'BTC', 1)) ?? [];
      script = Buffer.from(own?.script ?? []).toString('hex');
    } else {
      const { transactionId } = await service.create(amount / 10n);
      const { rows } = await service.admin.query(`select encode(script, 'hex') as script from transactions where id = $1`, [
        transactionId,
      ]);
      script = rows[0].script;
    }
    arrives = () => service.spend(txid, [{ txid: 'ee'.repeat(32), vout: 3 }], [{ vout: 0, script, amountMinor: amount }]);
    before = await service.available();
    arrives();
    await service.mine(6);
    await service.judge();
    await bookOutputs();
    id = await batches.request(kind === 'capital' ? '0.002' : '0.015');
    batch = await batches.formed();
    expect(batch.inputs.map((input) => input.txid)).toEqual([txid]);
    signed = await batches.signed(batch);
    look = () => progress(ctx, batch.id);
  });
  /** It was completed, and the chain leaves its block and that of what it spends. */
  async function vanishes(): Promise<void> {
    await batches.mined(batch, signed);
    expect(await look()).toBe('confirmed');
    await service.vanish('BTC', 7);
    expect(await look()).toBe('reorged');
  }

  test('fails once the chain has stood without it for as long as anything needs to be final', async () => {
    await vanishes();
    await service.mine(20);
    expect(await look()).toBe('waiting');
    expect(await newestToGiveUp(ctx, id)).toEqual({ currency: 'BTC', raw: Buffer.from(signed.raw, 'hex') });
    const height = await tip();
    await looked();
    expect(await giveUp(id)).toEqual({
      batchId: batch.id,
      currency: 'BTC',
      payoutIds: [id],
      outputs: [`${txid}:0`],
      decidedBy: height + 5,
    });
    // the driver looks at once
    expect((await service.admin.query(`select given_up from outgoing_batches where due_at = '-infinity'`)).rows).toEqual([
      { given_up: 'operator Ada: seen in an explorer' },
    ]);
    await service.mine(4);
    expect(await look()).toBe('waiting');
    await service.mine(1);
    expect(await look()).toBe('displaced');
    expect(await batches.row(id)).toMatchObject({ status: 'failed', error: 'displaced' });
    await service.wait(3_700_000);
    await bookOutputs();
    expect(await service.available()).toBe(before);
    expect(await service.balance('equity:operator:BTC')).toBe(0n);
    expect(await service.findings()).toEqual([]);
    // it stays with what failed, and is spent by nothing else
    expect(await look()).toBe('waiting');
    await expect(giveUp(id)).rejects.toThrow(`Batch ${batch.id} has failed already`);
  });

  test('is paid where a block has it before that, and an older word counts no more when it vanishes again', async () => {
    await vanishes();
    await giveUp(id);
    arrives();
    await service.mine(1);
    await service.vanish('BTC', 1);
    await service.mine(30);
    expect(await look()).toBe('waiting');
    expect(await batches.row(id)).toMatchObject({ status: 'completed' });
    arrives();
    await batches.mined(batch, signed, 6);
    expect(await look()).toBe('final');
    await bookOutputs();
    expect(await service.findings()).toEqual([]);
  });

  test('is not given up while it is in a block, and not where the chain shows what became of it', async () => {
    await expect(giveUp(id)).rejects.toThrow(`Nothing that batch ${batch.id} spends has vanished`);
    await batches.mined(batch, signed);
    await expect(giveUp(id)).rejects.toThrow('A block has its transaction');
    await look();
    await service.vanish('BTC', 7);
    await look();
    service.spend('cc'.repeat(32), [{ txid: 'ee'.repeat(32), vout: 3 }]);
    await service.mine(1);
    await expect(giveUp(id)).rejects.toThrow(`It is known what became of ${txid}:0`);
    await service.mine(5);
    expect(await look()).toBe('displaced');
  });
});

test('nothing else can be given up', async () => {
  await expect(giveUp('payout_none')).rejects.toMatchObject({ code: 'payout_not_found' });
  await batches.earn();
  const id = await batches.request();
  await expect(giveUp(id)).rejects.toThrow('It was paid from no output of ours that could vanish.');
  await batches.formed();
  await expect(newestToGiveUp(ctx, id)).rejects.toThrow('has vanished');
  await service.vanish('BTC', 6);
  await expect(newestToGiveUp(ctx, id)).rejects.toThrow('Nothing was signed for it');
});

test('what spends our own change is not given up: its own batch is sent again', async () => {
  await batches.earn();
  await batches.request();
  const first = await batches.formed();
  await batches.mined(first, await batches.signed(first), 6);
  await progress(ctx, first.id);
  const id = await batches.request();
  const second = await batches.formed();
  expect(second.inputs).toMatchObject([{ chain: 1 }]);
  await batches.signed(second);
  await service.vanish('BTC', 7);
  await expect(giveUp(id)).rejects.toThrow(`Nothing that batch ${second.id} spends has vanished`);
});
