// Payouts and reimbursements that need many of our outputs: the fee of as many inputs is held, and one that cannot be paid with what is held
// waits for all to see and can be cancelled.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { reimburseTransaction } from '../../../src/flow/payouts/reimbursements.ts';
import { readReadiness } from '../../../src/flow/readiness.ts';
import { resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { postEntries } from '../../../src/store/ledger/ledger.ts';
import { saveFeeRate } from '../../../src/store/payouts/fee-rates.ts';
import { createHeldPayouts } from '../../../src/worker/payouts/held-payouts.ts';
import { batchesOf } from '../../support/batches.ts';
import { fund, OUTSIDE, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const RATE = 10_000n;
let service: ServiceOnDatabase;
let ctx: Context;
let batches: ReturnType<typeof batchesOf>;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ ctx } = service);
  batches = batchesOf(service);
  await saveFeeRate(ctx.db, 'BTC', RATE, ctx.ports.clock.now());
});
afterEach(() => service.drop());

/** One transaction that is paid in so many outputs. */
async function outputs(count: number, each: bigint): Promise<string> {
  const { transactionId } = await service.create((each * BigInt(count)) / 10n);
  await service.pay(
    transactionId,
    Array.from({ length: count }, () => each),
  );
  await service.mine(6);
  await service.judge();
  return transactionId;
}
const look = () => createHeldPayouts(ctx, (_id, error) => expect(error).toBeNull()).run();
const WAITS = { status: 'pending', step: 'held', held_reason: 'approval' };

test('the fee of the inputs that the amount needs is held, and it leaves at the fee of its request', async () => {
  await outputs(40, 1_000_000n);
  const id = await batches.request('0.35');
  // 35 inputs and one for the fee, four of which every payout holds for, at three times the rate
  expect(await batches.row(id)).toMatchObject({ fee_max: String(30n * (400n + 32n * 68n)) });
  const { outcome } = await formBatch(ctx, 'BTC', RATE);
  expect(outcome).toBe('formed');
  expect((await batches.row(id)).step).toBe('batched');
  expect(await service.findings()).toEqual([]);
});

test('one whose large output is gone is pending, can be cancelled, and goes on by itself when the fee has fallen', async () => {
  await outputs(1, 30_000_000n);
  await outputs(40, 1_000_000n);
  const first = await batches.request('0.28');
  service.pass(1);
  const second = await batches.request('0.30');
  expect(await batches.row(second)).toMatchObject({ fee_max: String(30n * 400n) });
  expect((await formBatch(ctx, 'BTC', RATE, 1)).outcome).toBe('formed');
  expect((await batches.row(first)).step).toBe('batched');
  expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'fee_too_high' });
  expect(await batches.row(second)).toMatchObject(WAITS);
  await service.wait(31_000);
  await look();
  expect(await batches.row(second)).toMatchObject({ status: 'processing', step: 'queued' });
  expect((await formBatch(ctx, 'BTC', 3_000n)).outcome).toBe('formed');
  expect(await service.findings()).toEqual([]);
});

test('one that waits for a lower fee can be cancelled, and holds up nobody behind it', async () => {
  await outputs(1, 30_000_000n);
  await outputs(40, 1_000_000n);
  await batches.request('0.28');
  service.pass(1);
  const second = await batches.request('0.30');
  await formBatch(ctx, 'BTC', RATE, 1);
  service.pass(1);
  const third = await batches.request('0.01');
  expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('formed');
  expect((await batches.row(third)).step).toBe('batched');
  expect(await batches.row(second)).toMatchObject(WAITS);
  const { problems } = await readReadiness(ctx, []);
  expect(problems.join()).toContain(`payout ${second} waits: its network fee would be above what is held for it`);
  const of = { merchantId: service.merchantId, payoutId: second };
  expect(await cancelPayout(ctx, of)).toMatchObject({ status: 'failed', error: 'cancelled' });
});

test('small outputs are spent along only where what is held covers it', async () => {
  await tellFee(ctx);
  await outputs(1, 5_000_000n);
  await outputs(70, 20_000n);
  const id = await batches.request('0.04');
  await service.admin.query('update payouts set fee_max = 700 where id = $1', [id]);
  expect((await formBatch(ctx, 'BTC', 1_000n)).outcome).toBe('formed');
  const { rows } = await service.admin.query('select count(*)::int as n from outgoing_inputs');
  expect(rows[0].n).toBe(1);
});

describe('where there are many small outputs', () => {
  const spent = async () => (await service.admin.query('select amount from outgoing_inputs order by amount')).rows;
  beforeEach(async () => {
    await tellFee(ctx);
    await outputs(1, 5_000_000n);
    await outputs(70, 20_000n);
  });

  test('ten are spent along while fees are low, and come back as change', async () => {
    const id = await batches.request('0.04');
    const batch = await batches.formed(4_000n);
    expect((await spent()).map(({ amount }) => amount)).toEqual([...Array.from({ length: 10 }, () => '20000'), '5000000']);
    await batches.mined(batch, await batches.signed(batch, 1, 4_000n), 6);
    expect(await progress(ctx, batch.id)).toBe('final');
    const { fee, status } = await batches.row(id);
    expect(status).toBe('completed');
    const { rows } = await service.admin.query('select amount from own_outputs');
    expect(rows).toEqual([{ amount: String(5_200_000n - 4_000_000n - BigInt(fee)) }]);
    expect(await service.findings()).toEqual([]);
  });

  test('none is while fees are higher, nor for a reimbursement, which a customer pays', async () => {
    await batches.request('0.04');
    await batches.formed(5_001n);
    expect(await spent()).toEqual([{ amount: '5000000' }]);
    const paid = await outputs(1, 3_000_000n);
    const asked = { merchantId: service.merchantId, transactionId: paid, destination: OUTSIDE, part: null, currency: null };
    await reimburseTransaction(ctx, asked);
    expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('formed');
    expect(await spent()).toEqual([{ amount: '3000000' }, { amount: '5000000' }]);
  });

  test('none is where fifty would not be left of them', async () => {
    await service.admin.query('update payments set spent = true where amount = 20000 and id % 3 = 0');
    await batches.request('0.04');
    await batches.formed();
    expect(await spent()).toEqual([{ amount: '5000000' }]);
  });
});

test('all of a balance, of which a higher fee has made outputs worth less than their own input, waits for all to see, and goes when that has fallen', async () => {
  await tellFee(ctx);
  await outputs(1, 1_000_000n);
  await outputs(50, 600n);
  const id = await batches.request('all');
  await service.admin.query('update payouts set amount = 1015000, fee_max = 15000 where id = $1', [id]);
  expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('no_liquidity');
  expect(await batches.row(id)).toMatchObject(WAITS);
  expect((await readReadiness(ctx, ['BTC'])).problems.join()).toContain(
    `${id} waits: some of our outputs are worth less than it costs to spend them today`,
  );
  await service.wait(31_000);
  await look();
  expect((await formBatch(ctx, 'BTC', 1_000n)).outcome).toBe('formed');
  expect((await batches.row(id)).step).toBe('batched');
});

test('a reimbursement of many outputs leaves too', async () => {
  const id = await outputs(40, 1_000_000n);
  const asked = { merchantId: service.merchantId, transactionId: id, destination: OUTSIDE, part: null, currency: null };
  await reimburseTransaction(ctx, asked);
  expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('formed');
  expect(await service.findings()).toEqual([]);
});

test('without a key of the signer in use, payouts and reimbursements are refused', async () => {
  await outputs(1, 1_000_000n);
  const id = await outputs(1, 1_000_000n);
  const before = await batches.request();
  await service.admin.query(`update account_xpubs set confirmed_at = null where currency = 'BTC'`);
  await expect(batches.request()).rejects.toMatchObject({ code: 'currency_unavailable' });
  const asked = { merchantId: service.merchantId, transactionId: id, destination: OUTSIDE, part: null, currency: null };
  await expect(reimburseTransaction(ctx, asked)).rejects.toMatchObject({ code: 'currency_unavailable' });
  expect((await service.admin.query('select count(*)::int as n from payouts')).rows[0].n).toBe(1);
  expect((await readReadiness(ctx, [])).problems.join()).toContain(`payout ${before} waits for a key`);
});

test('one that is covered by Lightning channels and not by outputs waits for all to see, hides nobody, and goes when outputs are there', async () => {
  await outputs(1, 1_000_000n);
  const lightning = [
    { account: 'asset:ln:BTC', amount: 50_000_000n },
    { account: `merchant:${service.merchantId}:available:BTC`, amount: -50_000_000n },
  ];
  const entry = { key: 'test:lightning', kind: 'test_funds', postings: lightning, parts: [] };
  await postEntries(ctx.db, [{ entry, transactionId: null, atMs: service.now() }]);
  const id = await batches.request('0.4');
  expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('no_liquidity');
  expect(await batches.row(id)).toMatchObject(WAITS);
  expect((await readReadiness(ctx, ['BTC'])).problems.join()).toContain(
    `${id} waits: our outputs on the chain are less than it takes`,
  );
  service.pass(1);
  const small = await batches.request('0.002');
  expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('formed');
  expect((await batches.row(small)).step).toBe('batched');
  await outputs(1, 60_000_000n);
  await service.wait(60_000);
  await look();
  expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('formed');
  expect((await batches.row(id)).step).toBe('batched');
});

/** What came to an address of another currency is credited, and its key is in that one's account. */
async function elsewhere(minor: bigint): Promise<void> {
  const { transactionId } = await service.create(50_00n, 'LTC');
  await service.pay(transactionId, minor, { currency: 'BTC' });
  await service.mine(8);
  await service.judge();
  const asked = { merchantId: service.merchantId, transactionId, action: 'accept', part: null } as const;
  await resolveTransaction(ctx, asked);
  await service.judge();
}

test('one that only payments to addresses of another currency cover waits for all to see, and can be cancelled', async () => {
  await outputs(1, 5_000_000n);
  await elsewhere(100_000_000n);
  const id = await batches.request('0.5');
  service.pass(1);
  const small = await batches.request('0.01');
  expect((await formBatch(ctx, 'BTC', 1_000n)).outcome).toBe('formed');
  expect((await batches.row(small)).step).toBe('batched');
  expect(await batches.row(id)).toMatchObject(WAITS);
  const of = { merchantId: service.merchantId, payoutId: id };
  expect(await cancelPayout(ctx, of)).toMatchObject({ status: 'failed', error: 'cancelled' });
  expect(await service.findings()).toEqual([]);
});

test('so does one that our outputs cover without its fee', async () => {
  await outputs(1, 5_000_000n);
  await elsewhere(100_000_000n);
  const id = await batches.request('0.0499995');
  expect((await formBatch(ctx, 'BTC', 1_000n)).outcome).toBe('no_liquidity');
  expect(await batches.row(id)).toMatchObject(WAITS);
});

test('one that only outputs of an imported key cover waits for all to see', async () => {
  await outputs(1, 5_000_000n);
  await outputs(1, 100_000_000n);
  const before = await service.admin.query(
    `update transactions set address_index = address_index + 1000 where usd_minor = 10000000`,
  );
  expect(before.rowCount).toBe(1);
  const id = await batches.request('0.5');
  expect((await formBatch(ctx, 'BTC', 1_000n)).outcome).toBe('no_liquidity');
  expect(await batches.row(id)).toMatchObject(WAITS);
});

test('a thousand that wait for outputs to become final cost next to nothing to look at, and hide nobody', async () => {
  await outputs(199, 2_000n);
  await fund(ctx, service.merchantId, 5_000_000_000n);
  const first = await batches.request('0.5');
  const columns = `merchant_id, method, amount_text, currency, amount, fee_max, destination, script, status, step, intent_key, intent, created_at`;
  await service.admin.query(
    `insert into payouts (id, ${columns}) select 'payout_copy' || n, ${columns} from payouts, generate_series(1, 998) n where id = $1`,
    [first],
  );
  const before = process.cpuUsage();
  expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('no_liquidity');
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1_000, 'milliseconds of this process; trying each takes 1,500').toBeLessThan(700);
  service.pass(1);
  const small = await batches.request('0.001');
  expect((await formBatch(ctx, 'BTC', RATE)).outcome).toBe('formed');
  expect((await batches.row(small)).step).toBe('batched');
});
