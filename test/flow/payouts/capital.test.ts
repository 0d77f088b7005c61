// What strangers, and operators, send to our own addresses: capital. Our change is known to everybody who reads the chain, so anybody can.
import { beforeEach, describe, expect, test } from 'vitest';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { bookCapital, newOwnAddresses } from '../../../src/flow/payouts/own-outputs.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { readWork } from '../../../src/store/payouts/batches.ts';
import { RATE } from '../../support/batches.ts';
import { batches, ctx, service } from './batch-service.ts';

/** An address of our own, as the change of a payout has one. */
async function ownScript(): Promise<string> {
  const [own] = (await newOwnAddresses(ctx, 'BTC', 1)) ?? [];
  return Buffer.from(own?.script ?? []).toString('hex');
}
const capital = () => service.balance('equity:operator:BTC');

test('what a miner makes with his block at our change is spent by no batch before it is mature: no node would take the batch', async () => {
  await batches.earn();
  const made = service.spend('cd'.repeat(32), [], [{ vout: 0, script: await ownScript(), amountMinor: 5_000_000n }], true);
  await service.mine(6);
  await bookCapital(ctx, 'BTC');
  expect(await capital()).toBe(0n);
  await batches.request();
  const batch = await batches.formed();
  expect(batch.inputs.map(({ txid }) => txid)).not.toContain(made.facts.txid);
  await batches.mined(batch, await batches.signed(batch));
  await service.mine(92);
  await bookCapital(ctx, 'BTC');
  expect(await capital()).toBe(0n);
  await service.mine(1);
  await bookCapital(ctx, 'BTC');
  expect(await capital()).toBe(5_000_000n);
  await batches.request();
  expect((await batches.formed()).inputs.map(({ txid }) => txid)).toContain(made.facts.txid);
});

test('what anybody sends there is capital at its final depth, and can be spent from then on', async () => {
  await batches.earn();
  const sent = service.spend('ab'.repeat(32), [], [{ vout: 0, script: await ownScript(), amountMinor: 5_000_000n }]);
  await service.mine(5);
  await bookCapital(ctx, 'BTC');
  expect(await capital()).toBe(0n);
  await service.mine(1);
  await bookCapital(ctx, 'BTC');
  expect(await capital()).toBe(5_000_000n);
  await batches.request();
  expect(await formBatch(ctx, 'BTC', RATE)).toMatchObject({ outcome: 'formed' });
  const { rows } = await service.admin.query('select txid from outgoing_inputs');
  expect(rows).toEqual([{ txid: sent.facts.txid }]);
  expect(await service.findings()).toEqual([]);
});

describe('capital that a reorganisation below its final depth takes out of its block', () => {
  const txid = 'ab'.repeat(32);
  async function arrives(): Promise<void> {
    service.spend(txid, [], [{ vout: 0, script: await script, amountMinor: 5_000_000n }]);
    await service.mine(6);
    await look();
    expect(await capital()).toBe(5_000_000n);
  }
  let script: Promise<string>;
  /** What the worker's job does of it; the audit is green before and after. */
  async function look(): Promise<void> {
    expect(await service.findings()).toEqual([]);
    const work = await readWork(ctx.db, ctx.ports.clock.now());
    if (work.some(({ currency, unbooked }) => currency === 'BTC' && unbooked)) await bookCapital(ctx, 'BTC');
    expect(await service.findings()).toEqual([]);
  }
  beforeEach(() => {
    script = ownScript();
  });

  test('is booked as lost, and as capital again each time it is back at that depth', async () => {
    await batches.earn();
    for (const _ of [1, 2]) {
      await arrives();
      await service.vanish('BTC', 7);
      await look();
      expect(await capital()).toBe(0n);
      // nothing of it is looked for again while it is in no block
      expect(await readWork(ctx.db, ctx.ports.clock.now())).toEqual([]);
    }
    await arrives();
    const { rows } = await service.admin.query(`select key from ledger.entry where kind like 'capital%' order by id`);
    expect(rows.map(({ key }) => key)).toEqual([
      `capital:btc:${txid}:0`,
      `capital_lost:btc:${txid}:0`,
      `capital:btc:${txid}:0#2`,
      `capital_lost:btc:${txid}:0#2`,
      `capital:btc:${txid}:0#3`,
    ]);
  });

  test('stays booked while a batch spends it, whose bytes are sent again and mined with it', async () => {
    await batches.earn();
    await arrives();
    await batches.request();
    const batch = await batches.formed();
    expect(batch.inputs.map((input) => input.txid)).toEqual([txid]);
    const signed = await batches.signed(batch);
    await batches.mined(batch, signed);
    expect(await progress(ctx, batch.id)).toBe('confirmed');
    await service.vanish('BTC', 8);
    expect(await progress(ctx, batch.id)).toBe('reorged');
    await look();
    expect(await capital()).toBe(5_000_000n);
    service.spend(txid, [], [{ vout: 0, script: await script, amountMinor: 5_000_000n }]);
    await batches.mined(batch, signed);
    expect(await progress(ctx, batch.id)).toBe('moved');
    await look();
    await service.mine(5);
    expect(await progress(ctx, batch.id)).toBe('final');
    await look();
    expect(await capital()).toBe(5_000_000n);
  });
});
