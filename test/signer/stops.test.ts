// What stops payouts stops the signer too: a request may have lain with it for an hour while a merchant came to owe something.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { intentBytes } from '../../src/core/payouts/intent.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { asking } from './asking.ts';
import { newId, openTestSigner, requestFor, type TestSigner, type Wanted, WHOLE } from './setup.ts';

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

/** A reimbursement, and its request. What it holds lay in suspense, or was available. */
async function reimbursement(from: 'available' | 'suspense') {
  const batchId = await at.batch();
  const reimburses = newId('txn');
  if (from === 'available') return refundOf(await at.payout({ batchId, reimburses }));
  const wanted = { ...(await at.payout({ batchId: await at.batch() })), id: newId('po'), batchId, reimburses };
  const line = (account: string, amount: bigint) => ({ account, amount });
  const [suspense, payable] = [`suspense:${reimburses}:BTC`, `refund_payable:${reimburses}:BTC`];
  for (const [key, postings] of [
    [newId('dep'), [line('asset:chain:BTC', wanted.amount), line(suspense, -wanted.amount)]],
    [`po:${wanted.id}:hold`, [line(suspense, wanted.amount), line(payable, -wanted.amount)]],
  ] as const)
    await postEntries(at.db, [
      { entry: { key, kind: 'test_hold', postings, parts: [] }, transactionId: null, payoutId: null, atMs: at.clock.nowMs },
    ]);
  await at.insertPayout(wanted, at.intents.sign(intentBytes(at.intentOf(wanted))));
  return refundOf(wanted);
}
function refundOf(back: Wanted) {
  const output = {
    payoutId: back.id,
    script: back.script,
    amount: (back.amount - 1_000n).toString(),
    total: back.amount.toString(),
  };
  return { ...requestFor([back], [at.input(WHOLE)], { fee: 0n }), outputs: [output] };
}

it('sends back what lay in suspense whatever a merchant owes, what was his only when he owes nothing, and nothing while payouts are stopped', async () => {
  const [suspended, his] = [await reimbursement('suspense'), await reimbursement('available')];
  await owe(1n, 5n);
  await trip();
  await refused(suspended, 'stopped', /payouts are stopped/);
  await at.owner.query("update breakers set cleared_at = now(), cleared_by = 'test'");
  await signing.sign(suspended);
  await refused(his, 'stopped', /owes something/);
  await owe(1n, -5n);
  await signing.sign(his);
});
