// What the journal holds decides what may be signed next: of all transactions that were ever signed for a payout only one can be mined.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Signing } from '../../src/signer/signing.ts';
import { asking } from './asking.ts';
import { openTestSigner, requestFor, type TestSigner, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
let at: TestSigner;
let signing: Signing;
beforeAll(async () => {
  at = await openTestSigner();
  signing = await at.start();
});
afterAll(() => at.close());
const { ready, refused } = asking(
  () => at,
  () => signing,
);

describe('what was signed before', () => {
  it('same_bytes: is given again, the same bytes, also to the next lease and when nothing else would be allowed any more', async () => {
    const { payout, request } = await ready();
    const first = await signing.sign(request);
    await at.owner.query("update payouts set status = 'failed', step = 'ended', error = 'x' where id = $1", [payout.id]);
    await at.owner.query("update outgoing_batches set state = 'dead', lease_epoch = 9 where id = $1", [payout.batchId]);
    expect(await signing.sign({ ...request, leaseEpoch: '2' })).toEqual(first);
  });

  it('is not given under its number for other content', async () => {
    const { payout, request } = await ready();
    await signing.sign(request);
    const other = requestFor([payout], request.inputs, { fee: 1_001n });
    await refused(other, 'number', /was signed with other content/);
    await refused({ ...request, change: { ...request.change!, index: 8 } }, 'number', /was signed with other content/);
  });

  it('is followed by the next number only', async () => {
    const { request } = await ready();
    await refused({ ...request, number: 2 }, 'number', /the next number of batch \S+ is 1, not 2/);
    await signing.sign(request);
    await refused({ ...request, number: 3 }, 'number', /is 2, not 3/);
  });

  it('is replaced only by what shares an input with each of them and pays the same', async () => {
    const batchId = await at.batch();
    const payouts = [await at.payout({ batchId }), await at.payout({ batchId })];
    const [a, b, c] = [at.input(WHOLE), at.input(WHOLE), at.input(WHOLE)];
    await signing.sign(requestFor(payouts, [a]));
    await refused(requestFor(payouts, [b], { number: 2 }), 'conflict', /transaction 1 of batch \S+ shares no input/);
    await signing.sign(requestFor(payouts, [a, b], { number: 2, fee: 2_000n }));
    // with the second only
    await refused(requestFor(payouts, [b, c], { number: 3 }), 'conflict', /transaction 1 of batch \S+ shares no input/);
    // another one leaves the batch: not the same payees
    await at.owner.query("update payouts set batch_id = null, step = 'queued' where id = $1", [payouts[1]!.id]);
    await refused(requestFor([payouts[0]!], [a], { number: 3 }), 'conflict', /pays others, or other amounts/);
  });

  it('signer_conflict: binds its payouts to their batch, whatever the database says later', async () => {
    const { payout, request } = await ready();
    await signing.sign(request);
    const batchId = await at.batch();
    await at.owner.query('update payouts set batch_id = $2 where id = $1', [payout.id, batchId]);
    await refused(requestFor([{ ...payout, batchId }], [at.input(WHOLE)]), 'conflict', /was signed in batch/);
    await refused(requestFor([{ ...payout, batchId }], request.inputs), 'conflict', /was signed in batch/);
  });

  it('keeps its inputs for its batch until that is dead', async () => {
    const one = await ready();
    await signing.sign(one.request);
    const other = await ready();
    const request = requestFor([other.payout], one.request.inputs);
    const states = ['reserved', 'signed', 'mined', 'final'];
    for (const state of states) {
      await at.owner.query('update outgoing_batches set state = $2 where id = $1', [one.payout.batchId, state]);
      await refused(request, 'conflict', /belongs to batch \S+, which is not dead/);
    }
    await at.owner.query("update outgoing_batches set state = 'dead' where id = $1", [one.payout.batchId]);
    await signing.sign(request);
  });
});

describe('a journal that is older than the database', () => {
  async function attempt(batchId: string, number: number, txid: string): Promise<void> {
    const sql = `insert into outgoing_attempts (batch_id, number, currency, txid, raw, fee, vbytes, lease_epoch, sequence, signed_at)
                 values ($1, $2, 'BTC', $3, '\\x00', 1, 1, 1, 1, now())`;
    await at.owner.query(sql, [batchId, number, txid]);
  }
  it('signs nothing that touches what it does not know', async () => {
    const { payout, request } = await ready();
    await attempt(payout.batchId, 1, randomBytes(32).toString('hex'));
    await refused(request, 'journal', /was lost, or is an older copy/);
    const other = await ready();
    const { txid } = await signing.sign(other.request);
    const next = {
      ...other.request,
      number: 2,
      change: { index: 7, amount: (BigInt(other.request.change!.amount) - 500n).toString() },
    };
    await attempt(other.payout.batchId, 1, txid);
    await signing.sign(next);
    // it knows the number, with another transaction
    await attempt(other.payout.batchId, 2, randomBytes(32).toString('hex'));
    await refused({ ...next, number: 3 }, 'journal', /attempt 2 of batch/);
  });
});
