// The judge, merchants who reimburse, accept and cancel, and the driver of payouts work on the same rows at once: nobody waits in a circle, nothing is lost
// or doubled, and whoever comes second gets an ordinary refusal.
import { expect, test, vi } from 'vitest';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { giveUpUnsignedBatch, holdForOperator } from '../../../src/flow/payouts/waiting-for-operator.ts';
import { cancelTransaction, resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { readBatch } from '../../../src/store/payouts/batch-rows.ts';
import { randomBelow } from '../../support/random.ts';
import { capital, ctx, green, PAID, RATE, refundServiceForEach, reimburse, service } from './refund-service.ts';

refundServiceForEach();

vi.setConfig({ testTimeout: 240_000 });
const ROUNDS = 12;
const TRANSACTIONS = 6;
const REFUSED = new Set(['not_resolvable', 'transaction_not_cancellable', 'insufficient_balance', 'amount_below_minimum']);

async function deadlocks(): Promise<number> {
  await service.admin.query('select pg_stat_force_next_flush()').catch(() => undefined);
  const text = 'select deadlocks::int as n from pg_stat_database where datname = current_database()';
  return (await service.admin.query(text)).rows[0].n;
}

test('judge, reimbursements, acceptances, cancels and batches side by side', async () => {
  const below = randomBelow(20_261_123);
  await capital();
  const ids: string[] = [];
  for (let n = 0; n < TRANSACTIONS; n++) ids.push((await service.create(500_00n)).transactionId);
  await service.wait(17 * 60_000);
  await service.judge();
  for (const id of ids) await service.pay(id, [PAID / 2n, PAID / 3n]);
  await service.mine(1);
  const any = (): string => ids[below(ids.length)] as string;
  const merchantId = service.merchantId;
  const answers: string[] = [];
  const noted = (work: Promise<unknown>): Promise<void> =>
    work.then(
      () => void answers.push('done'),
      (error: { code?: string }) => {
        if (!REFUSED.has(error.code ?? '')) throw error;
        answers.push(error.code as string);
      },
    );

  /** A batch is formed and given up, or its payout held: nothing is signed, so that all of it happens again. */
  async function drives(): Promise<void> {
    const outcome = await formBatch(ctx, 'BTC', RATE);
    if (outcome.outcome !== 'formed') return;
    const batch = await readBatch(ctx.db, outcome.batchId, { lock: false });
    if (batch !== null) await giveUpUnsignedBatch(ctx, batch, batch.leaseEpoch, null);
    const [payout] = batch?.payouts ?? [];
    if (payout !== undefined && below(4) === 0)
      await ctx.db.transaction((sql) => holdForOperator(ctx, sql, { payoutId: payout.id, why: 'above the limit' }));
  }
  const chores: readonly (() => Promise<void>)[] = [
    () => service.judge(),
    () => service.judge(),
    () => noted(reimburse(any())),
    () => noted(reimburse(any())),
    () => noted(resolveTransaction(ctx, { merchantId, transactionId: any(), action: 'accept', part: null })),
    () => noted(cancelTransaction(ctx, { merchantId, transactionId: any() })),
    drives,
    drives,
    async () => {
      await service.admin.query('insert into due_marks (transaction_id) select unnest($1::text[])', [ids]);
    },
  ];
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(chores.map((chore) => chore()));
    if (round % 3 === 2) await service.mine(2);
    await green();
  }
  expect(await deadlocks()).toBe(0);
  expect(new Set(answers)).toContain('done');
  expect(new Set(answers)).toContain('not_resolvable');
});
