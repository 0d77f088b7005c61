// Database and signer were put back together to before a reimbursement, and it is asked for again, to another address: what has gone back of the same payment
// was booked as paid to nobody known, and nothing but its amount says what it was.
import { expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../../src/flow/audit.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { readRefund, reimburseTransaction } from '../../../src/flow/payouts/reimbursements.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { OUTSIDE } from '../../support/funded.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { found, knownOutput, nextOwn } from './forgotten-transactions.ts';

batchServiceForEach();

const ELSEWHERE_SCRIPT = '0014751e76e8199196d454941c45d1b3a323f1433bd6';
const PAID = 500_000n;
const FEE = 1_410n;

async function paid(amount = PAID): Promise<string> {
  const { transactionId } = await service.create(amount / 10n);
  await service.pay(transactionId, amount);
  await service.mine(6);
  await service.judge();
  return transactionId;
}
async function sentBack(amountMinor: bigint) {
  const pays = [
    { script: ELSEWHERE_SCRIPT, amountMinor },
    { script: await nextOwn(), amountMinor: 1_000_000n - amountMinor - FEE },
  ];
  return found([await knownOutput()], pays, []);
}
async function goOn(): Promise<void> {
  await service.mine(6);
  expect(await service.findings()).toEqual([]);
  await clearAfterAudit(ctx, await runAudit(ctx), 'ann');
}
async function reimburse(transactionId: string): Promise<string> {
  const { merchantId } = service;
  await reimburseTransaction(ctx, { merchantId, transactionId, destination: OUTSIDE, part: null, currency: null });
  const { rows } = await service.admin.query('select id from payouts where reimburses = $1 order by created_at desc, id desc', [
    transactionId,
  ]);
  return rows[0].id;
}
const formed = () => formBatch(ctx, 'BTC', 1_000n);

test.each(['paid', 'failed'] as const)(
  'it waits for a person, wherever it is to go, and is not asked about again: %s',
  async (outcome) => {
    await batches.earn(3);
    const id = await paid();
    const { recover } = await sentBack(PAID - FEE);
    expect(await recover()).toMatchObject({ payoutIds: [], lost: PAID - FEE, alike: [] });
    await goOn();
    const first = await reimburse(id);
    expect(await formed()).toMatchObject({ outcome: 'nothing', alike: [first] });
    expect(await batches.row(first)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
    await resolvePayout(ctx, { payoutId: first, outcome, evidence: 'the customer was asked' });
    expect(await service.findings()).toEqual([]);
    if (outcome === 'paid') {
      await service.judge();
      expect(await readRefund(ctx, id)).toMatchObject({ status: 'completed' });
      return;
    }
    await service.wait(1_000);
    const second = await reimburse(id);
    expect(await formed()).not.toHaveProperty('alike');
    expect(await batches.row(second)).toMatchObject({ step: 'batched' });
  },
);

test('one that is asked for already when that is booked waits then', async () => {
  await batches.earn(3);
  const refund = await reimburse(await paid());
  const { recover } = await sentBack(PAID - FEE);
  expect(await recover()).toMatchObject({ payoutIds: [], lost: PAID - FEE, alike: [refund] });
  expect(await batches.row(refund)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
});

test.each([
  ['of less than has gone', PAID - 2n * FEE],
  ['of much more than has gone', 2n * PAID],
])('one %s goes out', async (_, amount) => {
  await batches.earn(3);
  const id = await paid(amount);
  const { recover } = await sentBack(PAID - FEE);
  expect(await recover()).toMatchObject({ alike: [] });
  await goOn();
  await reimburse(id);
  expect(await formed()).toMatchObject({ outcome: 'formed' });
  expect(await formed()).not.toHaveProperty('alike');
});

test('one of what was paid for later goes out', async () => {
  await batches.earn(3);
  const { recover } = await sentBack(PAID - FEE);
  await recover();
  await goOn();
  await service.wait(1_000);
  await reimburse(await paid());
  const made = await formed();
  expect(made).toMatchObject({ outcome: 'formed' });
  expect(made).not.toHaveProperty('alike');
});
