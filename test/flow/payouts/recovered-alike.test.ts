// A forgotten transaction that pays an address for which other payouts wait: what it has paid was requested again, perhaps for another amount.
import { expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../../src/flow/audit.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { found, freeOutput, knownOutput, nextOwn, type Output, scriptOf, unknownOutput } from './forgotten-transactions.ts';
import { openDriver } from './signer.ts';

batchServiceForEach();

const ELSEWHERE = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';
const ELSEWHERE_SCRIPT = '0014751e76e8199196d454941c45d1b3a323f1433bd6';

/** One that pays somewhat more to a script than its payout asks for. */
async function paidTo(script: string, from?: Output, amountMinor = 202_000n, after = 0) {
  const pays = [
    { script, amountMinor },
    { script: await nextOwn(after), amountMinor: 797_500n },
  ];
  return found([from ?? (await knownOutput())], pays, []);
}

test.each(['paid', 'failed'] as const)(
  'a payout of another amount to the same address waits for a person: %s',
  async (outcome) => {
    await batches.earn(2);
    const available = await service.available();
    const id = await batches.request();
    const { id: other } = await requestPayout(ctx, { merchantId: service.merchantId, amount: '0.002', destination: ELSEWHERE });
    const { recover } = await paidTo(await scriptOf(id));
    expect(await recover()).toMatchObject({ payoutIds: [], lost: 202_000n, alike: [id] });
    expect(await batches.row(id)).toMatchObject({ status: 'processing', held_reason: 'unknown_outcome' });
    expect(await batches.row(other)).not.toMatchObject({ held_reason: 'unknown_outcome' });
    await service.mine(6);
    expect(await service.findings()).toEqual([]);
    expect(await clearAfterAudit(ctx, await runAudit(ctx), 'ann')).toBe(1);
    await resolvePayout(ctx, { payoutId: id, outcome, evidence: 'asked' });
    expect(await batches.row(id)).toMatchObject({ status: outcome === 'paid' ? 'completed' : 'failed' });
    const { amount, fee_max: feeMax } = await batches.row(other);
    const open = BigInt(amount) + BigInt(feeMax);
    expect(await service.available()).toBe(available - open - (outcome === 'paid' ? 200_000n : 0n));
    expect(await service.findings()).toEqual([]);
  },
);

/** What waited is decided, and the next batch is formed of what is queued. */
async function goOn(): Promise<void> {
  await service.mine(6);
  expect(await service.findings()).toEqual([]);
  await clearAfterAudit(ctx, await runAudit(ctx), 'ann');
}
const formed = () => formBatch(ctx, 'BTC', 1_000n);
const again = async (amount: string, destination: string): Promise<string> =>
  (await requestPayout(ctx, { merchantId: service.merchantId, amount, destination })).id;

test.each(['paid', 'failed'] as const)(
  'the first payout that is requested to it after the recovery waits for a person, and no later one: %s',
  async (outcome) => {
    await batches.earn(3);
    const available = await service.available();
    const { recover } = await paidTo(ELSEWHERE_SCRIPT);
    expect(await recover()).toMatchObject({ payoutIds: [], lost: 202_000n, alike: [] });
    await goOn();
    const first = await again('0.0021', ELSEWHERE);
    const other = await batches.request();
    expect(await formed()).toMatchObject({ outcome: 'formed', alike: [first] });
    expect(await batches.row(first)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
    expect(await batches.row(other)).toMatchObject({ step: 'batched' });
    await resolvePayout(ctx, { payoutId: first, outcome, evidence: 'asked' });
    const later = await again('0.0021', ELSEWHERE);
    expect(await formed()).not.toHaveProperty('alike');
    expect(await batches.row(later)).toMatchObject({ step: 'batched' });
    expect(await batches.row(first)).toMatchObject({ status: outcome === 'paid' ? 'completed' : 'failed' });
    const open = await Promise.all([other, later].map(async (id) => batches.row(id)));
    const taken = open.reduce((sum, { amount, fee_max: feeMax }) => sum + BigInt(amount) + BigInt(feeMax), 0n);
    expect(await service.available()).toBe(available - taken - (outcome === 'paid' ? 210_000n : 0n));
    expect(await service.findings()).toEqual([]);
  },
);

test.each([
  ['exactly as much', '0.00202'],
  ['a little less', '0.002019'],
  ['more', '0.0024'],
])('that parts of it were found unpaid says nothing of one of %s', async (_, amount) => {
  await batches.earn(4);
  const { recover } = await paidTo(ELSEWHERE_SCRIPT);
  expect(await recover()).toMatchObject({ lost: 202_000n });
  await goOn();
  for (const small of ['0.001', '0.0011']) {
    const part = await again(small, ELSEWHERE);
    expect(await formed()).toMatchObject({ alike: [part] });
    await resolvePayout(ctx, { payoutId: part, outcome: 'failed', evidence: 'that was another' });
  }
  const whole = await again(amount, ELSEWHERE);
  expect(await formed()).toMatchObject({ outcome: 'nothing', alike: [whole] });
  expect(await batches.row(whole)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
  // others to the same address go
  await again('0.0012', ELSEWHERE);
  expect(await formed()).toMatchObject({ outcome: 'formed' });
  expect(await service.findings()).toEqual([]);
});

test('of two forgotten transactions the newer one is booked first: what it has paid is asked about all the same', async () => {
  await batches.earn(3);
  const id = await batches.request();
  const { recover } = await paidTo(await scriptOf(id), unknownOutput());
  const { lost, alike } = await recover();
  expect(lost).toBeLessThanOrEqual(0n);
  expect(alike).toEqual([id]);
});

test('two that have paid the same address ask about a payout each, one of as much first', async () => {
  await batches.earn(4);
  const waits = await again('0.0021', ELSEWHERE);
  const [first, second] = [await paidTo(ELSEWHERE_SCRIPT), await paidTo(ELSEWHERE_SCRIPT)];
  expect(await first.recover()).toMatchObject({ alike: [waits] });
  expect(await second.recover()).toMatchObject({ alike: [waits] });
  await goOn();
  const { rows } = await service.admin.query(`select distinct amount from lost_outputs`);
  expect(rows).toEqual([{ amount: '202000' }]);
  const other = await again('0.002', ELSEWHERE);
  service.pass(1);
  const alike = await again('0.00202', ELSEWHERE);
  expect(await formed()).toMatchObject({ outcome: 'formed', alike: [alike] });
  expect(await batches.row(other)).toMatchObject({ step: 'batched' });
});

/** Decides what waits, one after the other. */
const decide = (payoutId: string, outcome: 'paid' | 'failed') => resolvePayout(ctx, { payoutId, outcome, evidence: 'asked' });

test.each(['paid', 'failed'] as const)(
  'payouts to it wait until as much has been asked about as was paid, however small the first ones are: %s',
  async (outcome) => {
    await batches.earn(4);
    const { recover } = await paidTo(ELSEWHERE_SCRIPT);
    await recover();
    await goOn();
    const small = await again('0.001', ELSEWHERE);
    expect(await formed()).toMatchObject({ alike: [small] });
    await decide(small, outcome);
    // while the one is asked about, and after it
    const second = await again('0.001', ELSEWHERE);
    service.pass(1);
    const third = await again('0.003', ELSEWHERE);
    expect(await formed()).toMatchObject({ outcome: 'nothing', alike: [second, third] });
    const later = await again('0.003', ELSEWHERE);
    expect(await formed()).not.toHaveProperty('alike');
    expect(await batches.row(later)).toMatchObject({ step: 'batched' });
    expect(await service.findings()).toEqual([]);
  },
);

test('one that pays exactly what a payout asks for holds no other payout to its address', async () => {
  await batches.earn(3);
  const paid = await again('0.002', ELSEWHERE);
  const other = await again('0.0021', ELSEWHERE);
  const { recover } = await paidTo(ELSEWHERE_SCRIPT, undefined, 200_000n);
  expect(await recover()).toMatchObject({ payoutIds: [paid], alike: [] });
  await goOn();
  expect(await formed()).toMatchObject({ outcome: 'formed' });
  expect(await batches.row(other)).toMatchObject({ step: 'batched' });
});

test.each(['nobody', 'the signer'] as const)(
  'one that is in a batch for which nothing is stored waits too, where %s has a signature of it',
  async (who) => {
    await batches.earn(4);
    const { driver, signer, sent } = openDriver(service);
    const going = await again('0.0021', ELSEWHERE);
    // nobody has stored it, so nobody has sent it
    signer.fails = who === 'the signer' ? 'after' : 'before';
    const pass = () => driver.pass({ isQueued: true, signsNew: true, moves: false });
    await pass();
    expect(await batches.row(going)).toMatchObject({ step: 'batched' });
    const { recover } = await paidTo(ELSEWHERE_SCRIPT, await freeOutput(), 202_000n, 1);
    expect(await recover()).toMatchObject({ payoutIds: [], alike: [] });
    await goOn();
    signer.fails = null;
    for (let n = 0; n < 2; n++) {
      service.pass(60_000);
      await pass();
    }
    expect([sent.length, signer.journal.length]).toEqual([0, who === 'the signer' ? 1 : 0]);
    expect(await batches.row(going)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
    const next = await again('0.0021', ELSEWHERE);
    service.pass(60_000);
    await pass();
    expect(await batches.row(next)).toMatchObject({ step: 'batched' });
    expect([sent.length, await service.findings()]).toEqual([1, []]);
  },
);

/** A payout that a person is asked about, because a little less was lost to its address. */
async function askedAboutOne(): Promise<string> {
  await batches.earn(5);
  const lost = await paidTo(ELSEWHERE_SCRIPT, undefined, 199_000n);
  await lost.recover();
  await goOn();
  const asked = await again('0.002', ELSEWHERE);
  expect(await formed()).toMatchObject({ alike: [asked] });
  return asked;
}

test('one that is found paid by another forgotten transaction does not answer for what was lost before', async () => {
  const asked = await askedAboutOne();
  const other = await paidTo(ELSEWHERE_SCRIPT, undefined, 200_000n);
  expect(await other.recover()).toMatchObject({ payoutIds: [asked], alike: [] });
  await goOn();
  const next = await again('0.00199', ELSEWHERE);
  expect(await formed()).toMatchObject({ outcome: 'nothing', alike: [next] });
});

test.each(['known', 'unknown'] as const)(
  'one that a person has found paid does not answer for it any more when another transaction, of %s outputs, turns out to have paid it',
  async (outputs) => {
    const asked = await askedAboutOne();
    await decide(asked, 'paid');
    const other = await paidTo(ELSEWHERE_SCRIPT, outputs === 'unknown' ? unknownOutput() : undefined, 200_000n);
    expect(await other.recover()).toMatchObject({ payoutIds: [asked], alike: [] });
    await goOn();
    const next = await again('0.00199', ELSEWHERE);
    expect(await formed()).toMatchObject({ outcome: 'nothing', alike: [next] });
  },
);
