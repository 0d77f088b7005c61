// A reimbursement that was asked for before its payments are booked has taken nothing yet: what a restored database has forgotten may look as if it had paid
// that one, and its payments may never come.
import { expect, test } from 'vitest';
import { readRefund, reimburseTransaction } from '../../../src/flow/payouts/reimbursements.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { found, knownOutput, nextOwn } from './forgotten-transactions.ts';

batchServiceForEach();

const ELSEWHERE = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';
const ELSEWHERE_SCRIPT = '0014751e76e8199196d454941c45d1b3a323f1433bd6';
const EXCESS = 200_000n;
const FEE = 1_410n;

/** A transaction that is paid, and an excess of it that is not mined yet and is to go back. */
async function unbooked() {
  await batches.earn(3);
  const { transactionId } = await service.create(50_000n);
  await service.pay(transactionId, 500_000n);
  await service.mine(6);
  await service.judge();
  const excess = await service.pay(transactionId, EXCESS);
  await service.judge();
  const { merchantId } = service;
  const asked = { merchantId, transactionId, destination: ELSEWHERE, part: 'excess', currency: null } as const;
  await reimburseTransaction(ctx, asked);
  const { rows } = await service.admin.query('select id from payouts where reimburses = $1', [transactionId]);
  return { transactionId, excess, refund: rows[0].id as string };
}
async function forgotten(amountMinor: bigint) {
  return found(
    [await knownOutput()],
    [
      { script: ELSEWHERE_SCRIPT, amountMinor },
      { script: await nextOwn(), amountMinor: 1_000_000n - amountMinor - FEE },
    ],
    [],
  );
}
const failed = (payoutId: string) => resolvePayout(ctx, { payoutId, outcome: 'failed', evidence: 'the customer was asked' });

test('is not taken as paid by what was forgotten, and nothing stands when its payments never come', async () => {
  const { transactionId, excess, refund } = await unbooked();
  const { recover } = await forgotten(EXCESS - FEE);
  expect(await recover()).toMatchObject({ payoutIds: [], alike: [refund] });
  expect(await batches.row(refund)).toMatchObject({ status: 'processing', step: 'held', held_reason: 'unknown_outcome' });
  await service.reorganise([excess]);
  await service.mine(7);
  await service.judge();
  await failed(refund);
  await service.judge();
  expect(await service.findings()).toEqual([]);
  expect(await readRefund(ctx, transactionId)).toMatchObject({ status: 'failed' });
});

test('ends by itself when its payment is never mined, also while a person is asked', async () => {
  await batches.earn(3);
  const { recover } = await forgotten(150_000n);
  const { transactionId, refund } = await unbooked();
  expect(await recover()).toMatchObject({ alike: [refund] });
  await service.wait(73 * 3_600_000);
  await service.judge();
  expect(await readRefund(ctx, transactionId)).toMatchObject({ status: 'failed' });
  expect(await service.findings()).toEqual([]);
});
