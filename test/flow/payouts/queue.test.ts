// Payouts that cannot be paid now: they are told, and do not stop the ones behind them.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { type StoredKey, spendingKey } from '../../../src/store/chain/xpubs.ts';
import { insertOwnAddress } from '../../../src/store/payouts/own-outputs.ts';
import { fund, OUTSIDE, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const RATE = 1_000n;
let service: ServiceOnDatabase;
let ctx: Context;

beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ ctx } = service);
  await tellFee(ctx);
});
afterEach(() => service.drop());

/** Outputs of 100,000 satoshi. */
async function earn(times: number): Promise<void> {
  for (let n = 0; n < times; n++) {
    const { transactionId } = await service.create(100_00n);
    await service.pay(transactionId, 100_000n);
  }
  await service.mine(6);
  await service.judge();
}
const request = async (amount: string): Promise<string> =>
  (await requestPayout(ctx, { merchantId: service.merchantId, amount, destination: OUTSIDE })).id;
async function oneLargeOutput(): Promise<void> {
  const key = (await spendingKey(ctx.db, 'BTC')) as StoredKey;
  const { script } = ctx.ports.addresses.ownOf('BTC', key.xpub).derive(0);
  await insertOwnAddress(ctx.db, key.id, 'BTC', { index: 0, script });
  await service.admin.query(
    `insert into own_outputs (currency, txid, vout, amount, script, height, block_hash, booked) values ('BTC', repeat('ab', 32), 0, 50000000, $1, 90, 'x', true)`,
    [Buffer.from(script)],
  );
}
const row = async (id: string) => (await service.admin.query('select * from payouts where id = $1', [id])).rows[0];

describe('a payout that cannot be paid now', () => {
  test('because it needs more outputs than a transaction may spend waits for the operator, and does not stop those behind it', async () => {
    const key = (await spendingKey(ctx.db, 'BTC')) as StoredKey;
    const { script } = ctx.ports.addresses.ownOf('BTC', key.xpub).derive(0);
    await insertOwnAddress(ctx.db, key.id, 'BTC', { index: 0, script });
    await service.admin.query(
      `insert into own_outputs (currency, txid, vout, amount, script, height, block_hash, booked)
         select 'BTC', encode(sha256(n::text::bytea), 'hex'), 0, 15000, $1, 90, 'x', true from generate_series(1, 250) n`,
      [Buffer.from(script)],
    );
    await fund(ctx, service.merchantId, 5_000_000n);
    const large = await request('0.034');
    service.pass(1);
    const small = [await request('0.001'), await request('0.001')];
    const formed = await formBatch(ctx, 'BTC', RATE);
    expect(formed).toMatchObject({ outcome: 'formed', tooLarge: [large] });
    expect(await row(large)).toMatchObject({ status: 'pending', step: 'held', held_reason: 'approval' });
    for (const id of small) expect(await row(id)).toMatchObject({ status: 'processing', step: 'batched' });
  });

  test('because its fee would be above what it holds hides none behind it, however many they are', async () => {
    await fund(ctx, service.merchantId, 300_000_000n);
    const dear = await request('0.001');
    await service.admin.query(
      `insert into payouts (id, merchant_id, method, amount_text, currency, amount, fee_max, destination, script, status, step, intent_key, intent, created_at)
         select 'payout_dear' || n, merchant_id, method, amount_text, currency, amount, fee_max, destination, script, status, step, intent_key, intent, created_at
           from payouts, generate_series(1, 1000) n where id = $1`,
      [dear],
    );
    await service.admin.query('update payouts set fee_max = 1000');
    service.pass(1);
    const able = await request('0.001');
    await service.admin.query('update payouts set fee_max = 10000 where id = $1', [able]);
    await oneLargeOutput();
    // those that are left out are out of the way of the next look
    await formBatch(ctx, 'BTC', 60_000n);
    await formBatch(ctx, 'BTC', 60_000n);
    expect(await row(able)).toMatchObject({ status: 'processing', step: 'batched' });
  });

  test('because its fee would be above what it holds, or our outputs do not suffice, does not stop those behind it', async () => {
    await earn(30);
    await fund(ctx, service.merchantId, 5_000_000n);
    // 27 inputs are dearer than the 4,000 that are held; one is not
    const many = await request('0.026');
    await service.admin.query('update payouts set fee_max = 4000');
    const above = await request('0.04');
    service.pass(1);
    const small = await request('0.001');
    expect((await formBatch(ctx, 'BTC', 5_000n)).outcome).toBe('formed');
    expect(await row(small)).toMatchObject({ step: 'batched' });
    // it says so, and can be cancelled
    expect(await row(many)).toMatchObject({ status: 'pending', step: 'held', held_reason: 'approval' });
    expect(await row(above)).toMatchObject({ status: 'processing', step: 'queued', held_reason: null });
  });
});
