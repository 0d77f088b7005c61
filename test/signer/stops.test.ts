// What stops payouts stops the signer too: a request may have lain with it for an hour while a merchant came to owe something.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Signing } from '../../src/signer/signing.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { asking } from './asking.ts';
import { newId, openTestSigner, requestFor, type TestSigner, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
let at: TestSigner;
let signing: Signing;
beforeEach(async () => {
  at = await openTestSigner();
  signing = await at.start();
  await at.fund(1n, 'LTC', WHOLE);
}, 120_000);
afterEach(() => at.close());
const { ready, refused } = asking(
  () => at,
  () => signing,
);

/** A merchant owes so much LTC; a negative amount repays it. */
async function owe(merchantId: bigint, amount: bigint): Promise<void> {
  const postings = [
    { account: `asset:receivable:merchant:${merchantId}:LTC`, amount },
    { account: 'asset:chain:LTC', amount: -amount },
  ];
  const entry = { key: newId('owe'), kind: 'test_owes', postings, parts: [] };
  await postEntries(at.db, [{ entry, transactionId: null, atMs: at.clock.nowMs }]);
}
const trip = () =>
  at.owner.query(
    "insert into breakers (name, tripped_by, findings, tripped_at, seen_at) values ('payouts', '{INV-1}', '{x}', now(), now())",
  );

it('signs no first transaction for a merchant who owes something in any currency, alone or in a batch, until that is repaid', async () => {
  const batchId = await at.batch();
  const payouts = [await at.payout({ batchId, merchantId: 2n }), await at.payout({ batchId, merchantId: 1n })];
  const request = requestFor(payouts, [at.input(WHOLE)]);
  await owe(1n, 5n);
  await refused(request, 'stopped', new RegExp(`the merchant of payout ${payouts[1]?.id} owes something`));
  const other = await at.payout({ batchId: await at.batch(), merchantId: 2n });
  await signing.sign(requestFor([other], [at.input(WHOLE)]));
  await owe(1n, -5n);
  await signing.sign(request);
});

it('signs no first transaction while payouts are stopped', async () => {
  const { request } = await ready();
  await trip();
  await refused(request, 'stopped', /payouts are stopped/);
  await at.owner.query("update breakers set cleared_at = now(), cleared_by = 'test'");
  await signing.sign(request);
});

it('gives what was signed again, and replaces it: one of them may be on its way', async () => {
  const { payout, request } = await ready();
  const first = await signing.sign(request);
  await owe(1n, 5n);
  await trip();
  expect(await signing.sign(request)).toEqual(first);
  expect(await signing.sign(requestFor([payout], request.inputs, { number: 2, fee: 2_000n }))).toMatchObject({ fee: '2000' });
});

it("sends a customer's payments back whatever his merchant owes, but not while payouts are stopped", async () => {
  await at.owner.query('alter table payouts drop constraint payouts_reimburses_fkey');
  const back = await at.payout({ batchId: await at.batch(), reimburses: newId('txn') });
  const total = back.amount.toString();
  const output = { payoutId: back.id, script: back.script, amount: (back.amount - 1_000n).toString(), total };
  const request = { ...requestFor([back], [at.input(WHOLE)], { fee: 0n }), outputs: [output] };
  await owe(1n, 5n);
  await trip();
  await refused(request, 'stopped', /payouts are stopped/);
  await at.owner.query("update breakers set cleared_at = now(), cleared_by = 'test'");
  await signing.sign(request);
});
