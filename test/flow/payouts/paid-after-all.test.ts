// A batch that failed for good by blocks which the chain has left, and whose transaction is mined after all: an operator has it booked, and
// payouts go on. After each the audit is green.
import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import type { SignedTransaction } from '../../../src/core/signer-wire.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { recordCondition } from '../../../src/store/chain/node-conditions.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import { mustAskSigner } from '../../../src/store/payouts/after-restore/emptied-batches.ts';
import type { Batch } from '../../../src/store/payouts/batch-rows.ts';
import { giveUpBatch } from '../../../src/store/payouts/batches.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { AMOUNT, cleared, eventsOf, fails, looked, minedAfterAll, owed, recover } from './failed-batches.ts';

batchServiceForEach();

test('its payout is completed, what was given back is taken again, and payouts go on', async () => {
  await batches.earn();
  const before = await service.available();
  const id = await batches.request();
  const batch = await batches.formed();
  const transaction = await batches.signed(batch);
  await fails(batch);
  expect(await service.available()).toBe(before);
  await minedAfterAll(batch, transaction);
  const [stop] = await openBreakers(ctx.db);
  expect(stop!.findings.join()).toContain(`bursar payout recover ${transaction.txid}`);
  await looked();
  expect((await service.findings()).join()).toContain('INV-10');

  const fee = BigInt(transaction.fee);
  expect(await recover(transaction.txid)).toEqual({ payoutIds: [id], lost: 0n, fee, currency: 'BTC' });
  expect(await batches.row(id)).toMatchObject({ status: 'completed', fee: transaction.fee, error: null });
  expect([await service.available(), await batches.held(), await owed()]).toEqual([before - AMOUNT - fee, 0n, 0n]);
  expect(await service.balance('expense:reorg_loss:BTC')).toBe(0n);
  expect((await eventsOf(id)).slice(-3)).toEqual(['payout.failed', 'payout.processing', 'payout.completed']);
  await cleared();
  expect(await progress(ctx, batch.id)).toBe('waiting');
  expect(await openBreakers(ctx.db)).toEqual([]);
  // what comes back of it can be spent
  await batches.request('0.003');
  expect((await batches.formed()).inputs.map(({ txid }) => txid)).toEqual([transaction.txid]);
});

test('one that had been completed before costs its merchant what it had cost, whatever its transaction takes', async () => {
  await batches.earn();
  const before = await service.available();
  const id = await batches.request();
  const batch = await batches.formed();
  const cheap = await batches.signed(batch);
  const dear = await batches.signed(batch, 2, 2_000n);
  await batches.mined(batch, cheap);
  expect(await progress(ctx, batch.id)).toBe('confirmed');
  await service.vanish('BTC', 1);
  await fails(batch, 'displaced');
  expect(await service.available()).toBe(before);
  await minedAfterAll(batch, dear);
  await recover(dear.txid);
  expect(await batches.row(id)).toMatchObject({ status: 'completed', fee: cheap.fee });
  expect(await service.available()).toBe(before - AMOUNT - BigInt(cheap.fee));
  expect(await service.balance('expense:network_fee:BTC')).toBe(BigInt(dear.fee) - BigInt(cheap.fee));
  await cleared();
});

test('what its merchant has spent in between he owes, and nothing of his is signed until he has repaid it', async () => {
  await batches.earn();
  await batches.request('0.006');
  const batch = await batches.formed();
  const transaction = await batches.signed(batch);
  await fails(batch);
  await batches.earn();
  const next = await batches.request('0.017');
  await minedAfterAll(batch, transaction);
  const there = await service.available();
  await recover(transaction.txid);
  const whole = 600_000n + BigInt(transaction.fee);
  expect([await service.available(), await owed()]).toEqual([0n, whole - there]);
  await cleared();
  expect(await formBatch(ctx, 'BTC', 1_000n)).toMatchObject({ outcome: expect.not.stringMatching('formed') });
  expect((await batches.row(next)).status).toBe('processing');
});

test('the change that a batch had spent which is dead with it is there again', async () => {
  await batches.earn();
  const ids = [await batches.request()];
  const first = await batches.formed();
  const transaction = await batches.signed(first);
  await batches.mined(first, transaction);
  expect(await progress(ctx, first.id)).toBe('confirmed');
  ids.push(await batches.request());
  const second = await batches.formed();
  expect(second.inputs.map(({ txid }) => txid)).toEqual([transaction.txid]);
  await batches.mined(second, await batches.signed(second));
  expect(await progress(ctx, second.id)).toBe('confirmed');
  await service.vanish('BTC', 2);
  service.spend(randomBytes(32).toString('hex'), first.inputs);
  await service.mine(6);
  for (const { id } of [first, second]) expect(await progress(ctx, id)).toBe('displaced');
  await cleared();
  await minedAfterAll(first, transaction);
  await recover(transaction.txid);
  await cleared();
  expect(await Promise.all(ids.map(async (id) => (await batches.row(id)).status))).toEqual(['completed', 'failed']);
  await batches.request();
  expect((await batches.formed()).inputs.map(({ txid }) => txid)).toEqual([transaction.txid]);
});

describe('it is refused', () => {
  let batch: Batch;
  let transaction: SignedTransaction;
  beforeEach(async () => {
    await batches.earn();
    await batches.request();
    batch = await batches.formed();
    transaction = await batches.signed(batch);
  });

  test('while its batch is not dead, while no block has it, and before it is final', async () => {
    await expect(recover(transaction.txid)).rejects.toThrow(`is booked as batch ${batch.id}, which is signed`);
    await fails(batch);
    await expect(recover(transaction.txid)).rejects.toThrow('is in no block that was read');
    await minedAfterAll(batch, transaction, 5);
    const { rows } = await service.admin.query(`select height from chain_cursors where currency = 'BTC'`);
    // a reorganised chain is as long as before here
    await expect(recover(transaction.txid)).rejects.toThrow(`wait for block ${rows[0].height + 1}`);
    await service.mine(1);
    await recover(transaction.txid);
    await cleared();
  });

  test('until two of several nodes hold its final block, and the operator reads how that ends', async () => {
    await fails(batch);
    await minedAfterAll(batch, transaction);
    const { rows } = await service.admin.query(
      `select height, hash from blocks where currency = 'BTC' order by height desc limit 2`,
    );
    const agreed = async ({ height, hash }: { height: number; hash: string }) =>
      recordCondition(
        ctx.db,
        'BTC',
        { state: 'ready', ...rows[0], tipTimeMs: service.now(), peers: 2, agreement: { state: 'agreed', height, hash } },
        service.now(),
      );
    await agreed(rows[1]);
    await expect(recover(transaction.txid)).rejects.toThrow(`two of our nodes hold block ${rows[0].height}`);
    await expect(recover(transaction.txid)).rejects.toThrow('take it out of BURSAR_BTC_RPC_URL');
    await agreed(rows[0]);
    await recover(transaction.txid);
    await cleared();
  });

  test('whole where the process or its connection ends in the middle: all of it is booked, or nothing', async () => {
    await fails(batch);
    await minedAfterAll(batch, transaction);
    const lines = async () => (await service.admin.query('select count(*) from ledger.entry')).rows[0].count;
    const before = [await lines(), await service.available()];
    // its last write but two waits for the merchant's balance
    await service.admin.query('begin');
    await service.admin.query('select from ledger.balance for update');
    const cut = expect(recover(transaction.txid)).rejects.toThrow();
    const waiting = `pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await expect.poll(async () => (await service.admin.query(`select ${waiting}`)).rowCount, { timeout: 10_000 }).toBe(1);
    await service.admin.query(`select pg_terminate_backend(pid) from (select ${waiting}) w`);
    await service.admin.query('rollback');
    await cut;
    expect([await lines(), await service.available()]).toEqual(before);
    await recover(transaction.txid);
    await cleared();
  });

  test('a second time, also at the same moment, and for what was not signed here', async () => {
    await fails(batch);
    await minedAfterAll(batch, transaction);
    const all = await Promise.allSettled([recover(transaction.txid), recover(transaction.txid), recover(transaction.txid)]);
    expect(all.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected', 'rejected']);
    await expect(recover(transaction.txid)).rejects.toThrow('which is final');
    expect(await recover(randomBytes(32).toString('hex'))).toBeNull();
    await cleared();
  });
});

describe('an output that it had given back', () => {
  let first: Batch;
  let transaction: SignedTransaction;
  let id: string;
  let before: bigint;
  beforeEach(async () => {
    await batches.earn(2);
    before = await service.available();
    id = await batches.request('0.012');
    first = await batches.formed();
    expect(first.inputs).toHaveLength(2);
    transaction = await batches.signed(first);
    await fails(first);
  });

  test('and that nobody has is its own again: it is not spent a second time', async () => {
    await minedAfterAll(first, transaction);
    await recover(transaction.txid);
    await cleared();
    await batches.request('0.005');
    expect((await batches.formed()).inputs.map(({ txid }) => txid)).toEqual([transaction.txid]);
  });

  test('and that was reserved since is its own again, and who was to get it waits for another', async () => {
    const next = await batches.request('0.005');
    const reserved = await batches.formed();
    await minedAfterAll(first, transaction);
    await recover(transaction.txid);
    await cleared();
    expect(await batches.row(next)).toMatchObject({ status: 'processing', step: 'queued', batch_id: null });
    // its driver asks the signer, which has signed nothing for it
    expect(await mustAskSigner(ctx.db, 'BTC')).toBe(true);
    expect(await giveUpBatch(ctx.db, reserved.id, reserved.leaseEpoch + 1n)).toBe(true);
    expect(await service.findings()).toEqual([]);
  });

  test('and that was signed away since is its own again once that has failed', async () => {
    const next = await batches.request('0.005');
    const second = await batches.formed();
    await batches.signed(second);
    await minedAfterAll(first, transaction);
    await expect(recover(transaction.txid)).rejects.toThrow(`batch ${second.id} was given since, which is signed`);
    expect(await progress(ctx, second.id)).toBe('failed');
    await recover(transaction.txid);
    await cleared();
    expect(await service.balance('expense:reorg_loss:BTC')).toBe(0n);
    expect([(await batches.row(id)).status, (await batches.row(next)).status]).toEqual(['completed', 'failed']);
    expect(await service.available()).toBe(before - 1_200_000n - BigInt(transaction.fee));
  });
});
