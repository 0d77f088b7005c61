// The invariants of payouts in the audit: each is made red on purpose, by what a bug or somebody in the database could have done.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { postEntries } from '../../../src/store/ledger/ledger.ts';
import { fund, OUTSIDE, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

let world: ServiceOnDatabase;
let shops = 0;
let merchantId: bigint;
let payoutId: string;
beforeAll(async () => {
  world = await openServiceOnDatabase();
  await tellFee(world.ctx);
});
afterAll(() => world.drop());
beforeEach(async () => {
  shops += 1;
  merchantId = await world.openShop(`audited${shops}`);
  await fund(world.ctx, merchantId, 100_000_000n);
  await setSettings(world.ctx, { merchantId, scopes: new Set(['payouts'] as const), change: { payoutApprovalAbove: '0' } });
  payoutId = (await requestPayout(world.ctx, { merchantId, amount: '0.5', destination: OUTSIDE })).id;
  expect(await red()).toEqual([]);
});

/** Ids of the invariants of payouts that are red for this test's merchant or payout. */
async function red(): Promise<string[]> {
  const of = (await world.findings()).filter(
    (finding) => finding.includes(payoutId) || finding.includes(`merchant ${merchantId} `),
  );
  return [...new Set(of.map((finding) => finding.split(':')[0] as string))]
    .filter((id) => /^(INV-5|INV-12|PAY-1)$/.test(id))
    .sort();
}
const sql = (text: string, ...values: unknown[]) => world.admin.query(text, values);
const post = (key: string, postings: { account: string; amount: bigint }[]) =>
  postEntries(world.ctx.db, [
    {
      entry: { key: `po:${payoutId}:${key}`, kind: 'payout_hold', postings, parts: [] },
      transactionId: null,
      payoutId,
      atMs: world.now(),
    },
  ]);
const account = (kind: 'held' | 'available') => `merchant:${merchantId}:${kind}:BTC`;

test('INV-5: more is held than open payouts need', async () => {
  await post('more', [
    { account: account('available'), amount: 7n },
    { account: account('held'), amount: -7n },
  ]);
  expect(await red()).toEqual(['INV-5']);
});

test('INV-12: a payout that was released twice', async () => {
  await cancelPayout(world.ctx, { merchantId, payoutId });
  await post('2:release', [
    { account: account('available'), amount: 5n },
    { account: 'asset:chain:BTC', amount: -5n },
  ]);
  expect(await red()).toEqual(['INV-12']);
});

test('INV-5, INV-12 and PAY-1: a payout that somebody ended by hand', async () => {
  await sql(`update payouts set status = 'failed', step = 'ended', held_reason = null, error = 'x' where id = $1`, payoutId);
  expect(await red()).toEqual(['INV-12', 'INV-5', 'PAY-1']);
});

test('PAY-1: a history with a step that is none', async () => {
  await sql(
    `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
       values ($1, $2, 2, 'payout.completed', 'completed', 'pending', 'x', now()), ($1, $2, 3, 'payout.pending', 'pending', 'completed', 'x', now())`,
    merchantId,
    payoutId,
  );
  await sql('update payouts set sequence = 3 where id = $1', payoutId);
  expect(await red()).toEqual(['PAY-1']);
});

test('PAY-1: an event is missing, or says something else than the one before it', async () => {
  await sql('update payouts set sequence = 2 where id = $1', payoutId);
  expect(await red()).toEqual(['PAY-1']);
  await sql(
    `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
       values ($1, $2, 2, 'payout.reorged', 'processing', null, 'x', now())`,
    merchantId,
    payoutId,
  );
  expect(await red()).toEqual(['PAY-1']);
});
