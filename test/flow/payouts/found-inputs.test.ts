// A batch failed because strangers had spent its outputs for good, and a reorganisation deeper than that takes their spends out of their blocks:
// the outputs are ours again, and what was booked as lost of them is not.
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import type { Outpoint } from '../../../src/core/ports.ts';
import type { SignedTransaction } from '../../../src/core/signer-wire.ts';
import { bookCapital, newOwnAddresses } from '../../../src/flow/payouts/own-outputs.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import type { Batch } from '../../../src/store/payouts/batch-rows.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { cleared, fails, looked, recover } from './failed-batches.ts';

batchServiceForEach();

const lost = () => service.balance('expense:reorg_loss:BTC');
let id: string;
let batch: Batch;
let transaction: SignedTransaction;
beforeEach(async () => {
  await batches.earn();
  id = await batches.request();
  batch = await batches.formed();
  transaction = await batches.signed(batch);
  await fails(batch);
  expect(await lost()).toBe(1_000_000n);
});
/** What the driver does of the batch once the chain has shown something of it. */
async function look(): Promise<void> {
  expect(await progress(ctx, batch.id)).toBe('waiting');
  await looked();
}

test('they pay the next payout, as often as it happens', async () => {
  for (const round of [1, 2]) {
    await service.vanish('BTC', 6);
    await look();
    expect([round, await lost(), await service.findings()]).toEqual([round, 0n, []]);
    const next = await batches.request();
    const other = await batches.formed();
    expect(other.inputs).toMatchObject([{ txid: batch.inputs[0]?.txid }]);
    await batches.signed(other);
    // it fails in the same way, and its loss is its own
    await fails(other);
    expect(await batches.row(next)).toMatchObject({ status: 'failed' });
    expect(await lost()).toBe(1_000_000n);
    batch = other;
  }
});

test('where the same spend is mined in another block they stay lost throughout', async () => {
  const [{ by }] = (await service.admin.query('select spent_by as by from outgoing_inputs')).rows;
  await service.vanish('BTC', 6);
  service.spend(by, batch.inputs);
  await service.mine(1);
  expect(await progress(ctx, batch.id)).toBe('unsettled');
  expect(await lost()).toBe(1_000_000n);
  await cleared();
  await service.mine(5);
  await look();
  expect(await lost()).toBe(1_000_000n);
  await cleared();
});

test('and whose transaction is mined after that look stops payouts, and is booked by an operator', async () => {
  await service.vanish('BTC', 6);
  await look();
  await batches.mined(batch, transaction, 6);
  await progress(ctx, batch.id);
  expect((await openBreakers(ctx.db))[0]?.findings.join()).toContain(`bursar payout recover ${transaction.txid}`);
  await recover(transaction.txid);
  expect(await batches.row(id)).toMatchObject({ status: 'completed', fee: transaction.fee });
  expect(await lost()).toBe(0n);
  await cleared();
  // a stranger's spend of what nobody here has spent is none of the batch's
  await service.vanish('BTC', 6);
  await progress(ctx, batch.id);
  await batches.mined(batch, transaction, 6);
  await progress(ctx, batch.id);
  await cleared();
});

test('and which a stranger takes again are lost to nobody before an operator has looked', async () => {
  await service.vanish('BTC', 6);
  await look();
  service.spend(randomBytes(32).toString('hex'), batch.inputs);
  await service.mine(6);
  await look();
  expect(await lost()).toBe(0n);
});

describe('what a dead batch could not spend, because what had made it was undone for good,', () => {
  const payer = [{ txid: 'ee'.repeat(32), vout: 3 }];
  /** A batch that has failed because its only output is undone, by six blocks in the place of those that had it. */
  async function failedBy(undone: readonly Outpoint[], at: { readonly blocks: number }): Promise<void> {
    await batches.request();
    batch = await batches.formed();
    transaction = await batches.signed(batch);
    await service.vanish('BTC', at.blocks);
    service.spend(randomBytes(32).toString('hex'), undone);
    await service.mine(6);
    await service.judge();
    expect(await progress(ctx, batch.id)).toBe('failed');
    await looked();
  }
  const isDue = async () => (await service.admin.query(`select id from outgoing_batches where due_at = '-infinity'`)).rows.length;

  test('pays again once it is back: capital', async () => {
    const [own] = (await newOwnAddresses(ctx, 'BTC', 1)) ?? [];
    const script = Buffer.from(own?.script ?? []).toString('hex');
    const arrives = () => service.spend('ab'.repeat(32), payer, [{ vout: 0, script, amountMinor: 5_000_000n }]);
    arrives();
    await service.mine(6);
    await bookCapital(ctx, 'BTC');
    await failedBy(payer, { blocks: 6 });
    await bookCapital(ctx, 'BTC');
    expect(await service.balance('equity:operator:BTC')).toBe(0n);
    await cleared();
    await service.vanish('BTC', 7);
    expect(await isDue()).toBe(1);
    await look();
    arrives();
    await service.mine(6);
    await bookCapital(ctx, 'BTC');
    await cleared();
    expect(await service.balance('equity:operator:BTC')).toBe(5_000_000n);
    await batches.request();
    expect((await batches.formed()).inputs).toMatchObject([{ txid: 'ab'.repeat(32) }]);
  });

  test('pays again once it is back: a payment', async () => {
    const { transactionId } = await service.create(2_000_00n);
    const paid = await service.pay(transactionId, 2_000_000n, { inputs: payer });
    await service.mine(6);
    await service.judge();
    await failedBy(payer, { blocks: 6 });
    await cleared();
    await service.vanish('BTC', 7);
    expect(await isDue()).toBe(1);
    await look();
    service.spend(paid.facts.txid, payer, paid.facts.outputs);
    await service.mine(6);
    await service.judge();
    await cleared();
    await batches.request('0.018');
    expect((await batches.formed()).inputs).toMatchObject([{ txid: paid.facts.txid }]);
  });
});
