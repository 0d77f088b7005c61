// A worker that is refused a signature gives its reservation up, but never one for which a signature exists or can still come to be.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { Signing } from '../../src/signer/signing.ts';
import { raiseLease } from '../../src/store/payouts/batch-rows.ts';
import { giveUpBatch } from '../../src/store/payouts/batches.ts';
import { openTestSigner, requestFor, type TestSigner, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
let at: TestSigner;
let signing: Signing;
beforeAll(async () => {
  at = await openTestSigner();
  signing = await at.start();
});
afterAll(() => at.close());

async function reserved() {
  const batchId = await at.batch();
  const payout = await at.payout({ batchId });
  const read = async () => {
    const { rows } = await at.owner.query(
      'select b.state, p.step, p.batch_id from payouts p left join outgoing_batches b on b.id = $1 where p.id = $2',
      [batchId, payout.id],
    );
    return [rows[0].state, rows[0].step, rows[0].batch_id];
  };
  return { batchId, payout, request: requestFor([payout], [at.input(WHOLE)]), read };
}

it('a raised lease ends every signature under the one before', async () => {
  const { batchId, request } = await reserved();
  expect(await raiseLease(at.db, batchId, 1n)).toBe(2n);
  expect(await raiseLease(at.db, batchId, 1n)).toBeNull();
  await expect(signing.sign(request)).rejects.toMatchObject({ rule: 'lease' });
  expect((await signing.signed(0, batchId)).transactions).toEqual([]);
  await signing.sign({ ...request, leaseEpoch: '2' });
});

it('a reservation is given up under its own lease only', async () => {
  const { batchId, read } = await reserved();
  await giveUpBatch(at.db, batchId, 0n);
  await giveUpBatch(at.db, batchId, 2n);
  expect(await read()).toEqual(['reserved', 'batched', batchId]);
  await giveUpBatch(at.db, batchId, 1n);
  expect(await read()).toEqual([null, 'queued', null]);
});

it.each(['signed', 'mined', 'final'])('a batch that is %s is not given up', async (state) => {
  const { batchId, read } = await reserved();
  await at.owner.query('update outgoing_batches set state = $2 where id = $1', [batchId, state]);
  await giveUpBatch(at.db, batchId, 1n);
  expect(await read()).toEqual([state, 'batched', batchId]);
});
