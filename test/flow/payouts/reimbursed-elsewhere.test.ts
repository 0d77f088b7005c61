// Database and signer were put back together to before a reimbursement, and it is asked for again, to another address: what has gone back of the same payment
// was booked as paid to nobody known, and nothing but its amount says what it was.
import { expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../../src/flow/audit.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { readRefund, reimburseTransaction } from '../../../src/flow/payouts/reimbursements.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { OUTSIDE } from '../../support/funded.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { found, freeOutput, knownOutput, nextOwn, type Output } from './forgotten-transactions.ts';
import { openDriver } from './signer.ts';

batchServiceForEach();

const ELSEWHERE = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';
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
async function sentBack(amountMinor: bigint, from?: Output, after = 0) {
  const pays = [
    { script: ELSEWHERE_SCRIPT, amountMinor },
    { script: await nextOwn(after), amountMinor: 1_000_000n - amountMinor - FEE },
  ];
  return found([from ?? (await knownOutput())], pays, []);
}
async function goOn(): Promise<void> {
  await service.mine(6);
  expect(await service.findings()).toEqual([]);
  await clearAfterAudit(ctx, await runAudit(ctx), 'ann');
}
type To = { readonly part?: 'excess' | null; readonly destination?: string };
async function reimburse(transactionId: string, { part = null, destination = OUTSIDE }: To = {}): Promise<string> {
  const { merchantId } = service;
  await reimburseTransaction(ctx, { merchantId, transactionId, destination, part, currency: null });
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

test('one that has gone back together with another, which nobody knows any more, pays its own part of the fee', async () => {
  await batches.earn(3);
  const refund = await reimburse(await paid(), { destination: ELSEWHERE });
  const [part, other] = [FEE / 2n, 300_000n];
  const pays = [
    { script: ELSEWHERE_SCRIPT, amountMinor: PAID - part },
    { script: `0014${'11'.repeat(20)}`, amountMinor: other },
    { script: await nextOwn(), amountMinor: 1_000_000n - PAID - other - part },
  ];
  const { recover } = await found([await knownOutput()], pays, []);
  expect(await recover()).toMatchObject({ payoutIds: [refund], lost: other + part, fee: part });
  await goOn();
});

test('one of a transaction that was never paid as much goes out', async () => {
  await batches.earn(3);
  const id = await paid(PAID - 2n * FEE);
  const { recover } = await sentBack(PAID - FEE);
  expect(await recover()).toMatchObject({ alike: [] });
  await goOn();
  await reimburse(id);
  expect(await formed()).toMatchObject({ outcome: 'formed' });
  expect(await formed()).not.toHaveProperty('alike');
});

test('one of more than has gone waits: that may have been a part of it', async () => {
  await batches.earn(3);
  const id = await paid(2n * PAID - 100_000n);
  await (await sentBack(PAID - FEE)).recover();
  await goOn();
  await decided(await reimburse(id), 'failed');
  await reimburse(id);
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

/** A person is asked about this one, and finds it as he says. */
async function decided(payoutId: string, outcome: 'paid' | 'failed'): Promise<void> {
  expect(await formed()).toMatchObject({ outcome: 'nothing', alike: [payoutId] });
  await resolvePayout(ctx, { payoutId, outcome, evidence: 'the customer was asked' });
  await service.judge();
  await service.wait(1_000);
}

test.each([OUTSIDE, ELSEWHERE])(
  'that another customer had nothing back says nothing of the one who had: %s',
  async (destination) => {
    await batches.earn(3);
    const [one, other] = [await paid(), await paid()];
    await (await sentBack(PAID - FEE)).recover();
    await goOn();
    await decided(await reimburse(one), 'failed');
    const next = await reimburse(other, { destination });
    expect(await formed()).toMatchObject({ outcome: 'nothing', alike: [next] });
    await resolvePayout(ctx, { payoutId: next, outcome: 'paid', evidence: 'the customer was asked' });
    await service.wait(1_000);
    await reimburse(one);
    expect(await formed()).not.toHaveProperty('alike');
  },
);

test('one of which as much was lost several times is asked about once', async () => {
  await batches.earn(5);
  const id = await paid();
  for (let n = 0; n < 3; n++) {
    await (await sentBack(PAID - FEE)).recover();
    await goOn();
  }
  await decided(await reimburse(id), 'failed');
  await reimburse(id);
  expect(await formed()).not.toHaveProperty('alike');
});

/** A transaction that was paid as much as {@link paid}, 200,000 of it too much. */
async function paidTooMuch(): Promise<string> {
  const id = await paid(300_000n);
  await service.pay(id, 200_000n);
  await service.mine(6);
  await service.judge();
  return id;
}

test('in parts it waits too, until they are as much as was lost', async () => {
  await batches.earn(3);
  const id = await paidTooMuch();
  await (await sentBack(PAID - FEE)).recover();
  await goOn();
  await decided(await reimburse(id, { part: 'excess' }), 'paid');
  await decided(await reimburse(id), 'paid');
  expect(await service.findings()).toEqual([]);
});

test('what is found paid in parts explains nothing that has gone back to another customer', async () => {
  await batches.earn(5);
  const other = await paid(300_000n);
  const id = await paidTooMuch();
  for (const amount of [PAID - FEE, 300_000n - FEE]) {
    await (await sentBack(amount)).recover();
    await goOn();
  }
  await decided(await reimburse(id, { part: 'excess' }), 'paid');
  await decided(await reimburse(id), 'paid');
  await decided(await reimburse(other), 'paid');
  expect(await service.findings()).toEqual([]);
});

test('that a part was found unpaid says nothing of the rest, nor of what is lost later', async () => {
  await batches.earn(5);
  const id = await paidTooMuch();
  await (await sentBack(PAID - FEE)).recover();
  await goOn();
  await decided(await reimburse(id, { part: 'excess' }), 'failed');
  await decided(await reimburse(id), 'failed');
  await (await sentBack(PAID - FEE)).recover();
  await goOn();
  await decided(await reimburse(id), 'failed');
  await reimburse(id);
  expect(await formed()).not.toHaveProperty('alike');
});

test.each(['nobody', 'the signer'] as const)(
  'one that is in a batch for which nothing is stored waits too, where %s has a signature of it',
  async (who) => {
    await batches.earn(4);
    const { driver, signer, sent } = openDriver(service);
    const going = await reimburse(await paid());
    signer.fails = who === 'the signer' ? 'after' : 'before';
    const pass = () => driver.pass({ isQueued: true, signsNew: true, moves: false });
    await pass();
    expect(await batches.row(going)).toMatchObject({ step: 'batched' });
    const { recover } = await sentBack(PAID - FEE, await freeOutput(), 1);
    expect(await recover()).toMatchObject({ payoutIds: [], alike: [] });
    await goOn();
    signer.fails = null;
    for (let n = 0; n < 2; n++) {
      service.pass(60_000);
      await pass();
    }
    expect(sent).toEqual([]);
    expect(await batches.row(going)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
  },
);

test.each(['paid', 'failed'] as const)(
  'one whose payments are not booked yet is found %s without taking what is not there',
  async (outcome) => {
    await batches.earn(3);
    const id = await paid();
    await service.pay(id, 200_000n);
    await service.judge();
    const refund = await reimburse(id, { part: 'excess', destination: ELSEWHERE });
    const { recover } = await sentBack(150_000n);
    expect(await recover()).toMatchObject({ alike: [refund] });
    const decide = () => resolvePayout(ctx, { payoutId: refund, outcome, evidence: 'the customer was asked' });
    const isRefused = outcome === 'paid';
    if (isRefused) await expect(decide()).rejects.toMatchObject({ code: 'not_resolvable' });
    else await decide();
    await service.judge();
    await service.mine(6);
    await service.judge();
    if (isRefused) await decide();
    await service.judge();
    expect(await service.findings()).toEqual([]);
    expect(await readRefund(ctx, id)).toMatchObject({ status: outcome === 'paid' ? 'completed' : 'failed' });
    const { rows } = await service.admin.query(`select in_suspense from payments where transaction_id = $1 and amount = 200000`, [
      id,
    ]);
    expect(rows).toEqual([{ in_suspense: isRefused ? '0' : '200000' }]);
  },
);
