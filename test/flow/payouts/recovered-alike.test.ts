// A forgotten transaction that pays an address for which other payouts wait: what it has paid was requested again, perhaps for another amount.
import { expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../../src/flow/audit.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { found, knownOutput, nextOwn, scriptOf } from './forgotten-transactions.ts';

batchServiceForEach();

const ELSEWHERE = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';

/** One that pays somewhat more to the payout's address than it asks for. */
async function paidBefore(id: string) {
  const pays = [
    { script: await scriptOf(id), amountMinor: 202_000n },
    { script: await nextOwn(), amountMinor: 797_500n },
  ];
  return found([await knownOutput()], pays, []);
}

test.each(['paid', 'failed'] as const)(
  'a payout of another amount to the same address waits for a person: %s',
  async (outcome) => {
    await batches.earn(2);
    const available = await service.available();
    const id = await batches.request();
    const { id: other } = await requestPayout(ctx, { merchantId: service.merchantId, amount: '0.002', destination: ELSEWHERE });
    const { recover } = await paidBefore(id);
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
