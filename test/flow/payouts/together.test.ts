// Requests of one merchant that arrive together share a database transaction, and each has the answer that it would have had alone.
import { expect, test } from 'vitest';
import { Refusal } from '../../../src/core/refusal.ts';
import type { Context } from '../../../src/flow/context.ts';
import { FEE_MAX, OUTSIDE } from '../../support/funded.ts';
import {
  BTC,
  counts,
  ctx,
  ledgerFindings,
  merchantsForAll,
  of,
  request,
  row,
  shopNotFinal,
  shopWith,
  trip,
  world,
} from './merchants.ts';

merchantsForAll();

type Asked = readonly [amount: string, destination?: string];
/** What a merchant is told about a request. */
async function told(work: Promise<Awaited<ReturnType<typeof request>>>): Promise<unknown> {
  return work.then(
    ({ status, step, heldReason, amountText, amount, feeMax, internalTo, sequence }) => {
      return { status, step, heldReason, amountText, amount, feeMax, internalTo, sequence };
    },
    (error) => (error instanceof Refusal ? [error.code, error.param, error.message] : Promise.reject(error)),
  );
}
async function oneByOne(merchantId: bigint, all: readonly Asked[], on: Context = ctx): Promise<unknown[]> {
  const answers: unknown[] = [];
  for (const [amount, destination] of all) answers.push(await told(request(merchantId, amount, destination ?? OUTSIDE, on)));
  return answers;
}
const together = (merchantId: bigint, all: readonly Asked[], on: Context = ctx): Promise<unknown[]> =>
  Promise.all(all.map(([amount, destination]) => told(request(merchantId, amount, destination ?? OUTSIDE, on))));
/** How many database transactions wrote a merchant's payouts, and how many of these there are. */
const written = async (merchantId: bigint): Promise<unknown> =>
  (
    await world.admin.query(
      'select count(distinct xmin::text)::int as transactions, count(*)::int as payouts from payouts where merchant_id = $1',
      [merchantId],
    )
  ).rows[0];

test('each is decided about as if it came alone after those before it', async () => {
  const [alone, many, paid] = [await shopWith(BTC / 100n), await shopWith(BTC / 100n), await shopWith(0n)];
  const { address: another } = await world.create(1_000_00n, 'BTC', paid);
  const owned = new Map<bigint, string>();
  for (const shop of [alone, many]) owned.set(shop, (await world.create(1_000_00n, 'BTC', shop)).address);
  const all = (merchantId: bigint): readonly Asked[] => [
    ['0.001'],
    ['0.00009999'],
    ['0.001', owned.get(merchantId) ?? ''],
    ['0.002', another],
    ['0.01'],
    ['0.00691'],
    ['all'],
    ['0.001'],
  ];
  const expected = await oneByOne(alone, all(alone));
  expect(await together(many, all(many))).toEqual(expected);
  expect(expected.map((one) => (Array.isArray(one) ? one[0] : 'taken'))).toEqual([
    'taken',
    'payout_below_minimum',
    'invalid_destination',
    'taken',
    'insufficient_balance',
    'taken',
    'payout_below_minimum',
    'insufficient_balance',
  ]);
  expect(await written(many)).toEqual({ transactions: 1, payouts: 3 });
  expect([await of(many, 'available'), await of(many, 'held')]).toEqual([await of(alone, 'available'), await of(alone, 'held')]);
  expect(await of(many, 'held')).toBe(991_000n + 2n * FEE_MAX);
  expect(await ledgerFindings()).toEqual([]);
});

test('"all" takes what the requests before it left, and leaves nothing to those after it', async () => {
  const merchantId = await shopWith(BTC / 100n);
  const [first, all, last] = await together(merchantId, [['0.004'], ['all'], ['0.001']]);
  expect(first).toMatchObject({ status: 'processing', amount: 400_000n });
  expect(all).toMatchObject({ status: 'processing', amount: 600_000n - 2n * FEE_MAX, amountText: '0.00592000' });
  expect(last).toEqual(['insufficient_balance', 'amount', expect.any(String)]);
  expect(await of(merchantId, 'available')).toBe(0n);
});

test('what must wait for blocks waits, and what waits counts as still there', async () => {
  const limited: Context = { ...ctx, unfinalPayoutMinor: 10_000_00n };
  const all: readonly Asked[] = [['0.09'], ['0.02'], ['0.005'], ['0.03'], ['0.001']];
  const expected = await oneByOne(await shopNotFinal(), all, limited);
  const many = await shopNotFinal();
  expect(await together(many, all, limited)).toEqual(expected);
  expect(expected.map((one) => (one as { heldReason: string | null }).heldReason)).toEqual([
    null,
    'not_final',
    null,
    'not_final',
    null,
  ]);
  expect(await written(many)).toEqual({ transactions: 1, payouts: 5 });
  await world.mine(3);
});

test('how much may leave before credits are final is measured to the satoshi', async () => {
  const limited: Context = { ...ctx, unfinalPayoutMinor: 10_000_00n };
  // a tenth of a bitcoin with its fee is worth exactly the limit
  for (const [amount, heldReason] of [
    ['0.09996', null],
    ['0.09996001', 'not_final'],
  ] as const)
    expect(await together(await shopNotFinal(), [[amount]], limited)).toMatchObject([{ heldReason }]);
  await world.mine(3);
});

test('what fails without being refused fails as what it is, and nothing is written', async () => {
  const merchantId = await shopWith(BTC / 100n);
  const before = await counts();
  const bytes = (): never => {
    throw new Error('no randomness');
  };
  const broken: Context = { ...ctx, ports: { ...ctx.ports, rng: { ...ctx.ports.rng, bytes } } };
  const settled = await Promise.allSettled(['0.001', '0.002'].map((amount) => request(merchantId, amount, OUTSIDE, broken)));
  expect(settled).toMatchObject([{ reason: { message: 'no randomness' } }, { reason: { message: 'no randomness' } }]);
  expect(await counts()).toEqual(before);
});

test('nothing is written for requests that are all refused', async () => {
  const merchantId = await shopWith(BTC / 100n);
  const before = await counts();
  const answers = await together(merchantId, [['0.00001'], ['0.01'], ['0.5']]);
  expect(answers.map((one) => (one as string[])[0])).toEqual([
    'payout_below_minimum',
    'insufficient_balance',
    'insufficient_balance',
  ]);
  expect(await counts()).toEqual(before);
});

test('one that the database refuses fails alone: the others are taken, once', async () => {
  const merchantId = await shopWith(BTC / 100n);
  await world.admin.query(`create function refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$;
    create trigger refuse before insert on payouts for each row when (new.amount_text = '0.0013') execute function refuse()`);
  const settled = await Promise.allSettled(['0.001', '0.0013', '0.002'].map((amount) => request(merchantId, amount)));
  await world.admin.query('drop trigger refuse on payouts; drop function refuse');
  expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(await written(merchantId)).toEqual({ transactions: 2, payouts: 2 });
  expect(await of(merchantId, 'held')).toBe(300_000n + 2n * FEE_MAX);
});

test('requests of two merchants do not wait for each other', async () => {
  const [locked, free] = [await shopWith(BTC / 100n), await shopWith(BTC / 100n)];
  const sql = await world.admin.connect();
  try {
    await sql.query('begin');
    await sql.query(`select ledger.lock_balances($1)`, [[`merchant:${locked}:available:BTC`]]);
    // neither does a refusal that needs no look at the balance
    const refused = await together(locked, [['0.0001'], ['0.00001']]);
    expect(refused.map((one) => (one as string[])[0])).toEqual(['payout_below_minimum', 'payout_below_minimum']);
    const waits = together(locked, [['0.001'], ['0.002']]);
    expect(await told(request(free, '0.001'))).toMatchObject({ status: 'processing' });
    await sql.query('rollback');
    expect(await waits).toMatchObject([{ status: 'processing' }, { status: 'processing' }]);
  } finally {
    sql.release(true);
  }
});

test('what stops payouts is looked at for each transaction', async () => {
  const merchantId = await shopWith(BTC / 100n);
  await trip();
  const answers = await together(merchantId, [['0.001'], ['0.002']]);
  expect(answers).toMatchObject([
    { status: 'pending', heldReason: 'breaker' },
    { status: 'pending', heldReason: 'breaker' },
  ]);
  const { rows } = await world.admin.query('select id from payouts where merchant_id = $1', [merchantId]);
  for (const { id } of rows) expect(await row(id)).toMatchObject({ status: 'pending', step: 'held' });
});
