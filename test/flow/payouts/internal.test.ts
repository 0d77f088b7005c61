// A payout to the address of another merchant's transaction here: an entry pays it, nothing leaves, and the transaction's rules hold as ever.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { bookInternalPayouts } from '../../../src/flow/payouts/internal-payouts.ts';
import { requestPayout } from '../../../src/flow/payouts/life.ts';
import { cancelTransaction } from '../../../src/flow/transactions/life.ts';
import { createHeldPayouts } from '../../../src/worker/payouts/held-payouts.ts';
import { batchesOf, RATE } from '../../support/batches.ts';
import { OUTSIDE, owe, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const EARNED = 3_000_000n;
let service: ServiceOnDatabase;
let ctx: Context;
let other: bigint;
let batches: ReturnType<typeof batchesOf>;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ ctx } = service);
  await tellFee(ctx);
  batches = batchesOf(service);
  await batches.earn(3);
  other = await service.openShop('other');
});
afterEach(() => service.drop());

/** A transaction of the other merchant, and what pays it. */
async function invoice(usd = 1_000_00n): Promise<{ id: string; address: string; due: bigint }> {
  const { transactionId: id } = await service.create(usd, 'BTC', other);
  const { rows } = await service.admin.query('select address, amount_due from transactions where id = $1', [id]);
  return { id, address: rows[0].address, due: BigInt(rows[0].amount_due) };
}
const btc = (minor: bigint): string => `${minor / 100_000_000n}.${(minor % 100_000_000n).toString().padStart(8, '0')}`;
const pay = (destination: string, amount: string, merchantId = service.merchantId) =>
  requestPayout(ctx, { merchantId, method: 'bitcoin', amount, destination });
const available = (merchantId: bigint) => service.balance(`merchant:${merchantId}:available:BTC`);
const status = async (id: string): Promise<string> => (await service.row(id)).status as unknown as string;
async function booked(): Promise<void> {
  await bookInternalPayouts(ctx);
  await service.judge();
}
const green = async () => expect(await service.findings()).toEqual([]);

describe('a payout to a transaction of another merchant', () => {
  test('costs no fee, pays it at once and for good, and nothing moves on the chain', async () => {
    const { id, address, due } = await invoice();
    const made = await pay(address, btc(due));
    expect(made).toMatchObject({ status: 'processing', feeMax: 0n });
    expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
    await green();
    await bookInternalPayouts(ctx);
    expect(await batches.row(made.id)).toMatchObject({ status: 'completed', fee: '0', batch_id: null });
    await green();
    await service.judge();
    expect(await status(id)).toBe('succeeded');
    expect([await available(service.merchantId), await available(other)]).toEqual([EARNED - due, due]);
    expect(await service.balance('asset:chain:BTC')).toBe(EARNED);
    await green();
    await booked();
    await service.mine(8);
    await service.judge();
    expect(await available(other)).toBe(due);
    await green();
  });

  test('of all leaves nothing, and what is above the price lies in suspense', async () => {
    const { id, address, due } = await invoice();
    expect(await pay(address, 'all')).toMatchObject({ amount: EARNED });
    await booked();
    expect([await available(service.merchantId), await available(other)]).toEqual([0n, due]);
    expect([await status(id), await service.balance(`suspense:${id}:BTC`)]).toEqual(['succeeded', EARNED - due]);
    await green();
  });

  test('that comes after a cancel is in review, like every late payment', async () => {
    const { id, address, due } = await invoice();
    await cancelTransaction(ctx, { merchantId: other, transactionId: id });
    await pay(address, btc(due));
    await booked();
    expect([await status(id), await available(other)]).toEqual(['review', 0n]);
    await green();
  });

  test('waits while its merchant owes something or payouts are stopped, as others do', async () => {
    const { id, address, due } = await invoice();
    const made = await pay(address, btc(due));
    await owe(ctx, service.merchantId, 5n);
    await booked();
    await createHeldPayouts(ctx, (_id, error) => expect(error).toBeNull()).run();
    expect(await batches.row(made.id)).toMatchObject({ status: 'processing', held_reason: 'receivable' });
    expect(await status(id)).toBe('started');
    await owe(ctx, service.merchantId, -5n);
    await createHeldPayouts(ctx, (_id, error) => expect(error).toBeNull()).run();
    await booked();
    expect(await status(id)).toBe('succeeded');
  });

  test('is booked once, by any number of workers', async () => {
    const { address, due } = await invoice();
    const made = await Promise.all([pay(address, btc(due)), pay(address, btc(due))]);
    await Promise.all([bookInternalPayouts(ctx), bookInternalPayouts(ctx), bookInternalPayouts(ctx)]);
    await service.judge();
    for (const { id } of made) expect((await batches.row(id)).status).toBe('completed');
    expect(await available(service.merchantId)).toBe(EARNED - 2n * due);
    expect(await available(other)).toBe(due);
    await green();
  });

  test('can be paid out again, and the outputs that the first merchant has earned pay for it', async () => {
    const { address, due } = await invoice();
    await pay(address, btc(due));
    await booked();
    const { id } = await requestPayout(ctx, { merchantId: other, method: 'bitcoin', amount: 'all', destination: OUTSIDE });
    const batch = await batches.formed();
    expect(batch.payouts.map((payout) => payout.id)).toEqual([id]);
    await batches.mined(batch, await batches.signed(batch), 1);
    await green();
  });
});

test("one's own address is refused, and so is one of another currency", async () => {
  const { transactionId } = await service.create(1_000_00n);
  const own = (await service.admin.query('select address from transactions where id = $1', [transactionId])).rows[0].address;
  await expect(pay(own, '0.001')).rejects.toMatchObject({ code: 'invalid_destination' });
  const { id, address } = await invoice();
  await service.admin.query(`update transactions set currency = 'LTC' where id = $1`, [id]);
  await expect(pay(address, '0.001')).rejects.toMatchObject({ code: 'invalid_destination' });
});
