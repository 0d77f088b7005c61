// What the signer compares before it lets our node pay, one by one: the worker, or whoever owns the database, asks for what must not be paid, and the node
// is never asked. On the simulated node.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { LightningPayer } from '../../src/core/lightning/payer.ts';
import type { AuthorizedPayment } from '../../src/core/signer-wire.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { createPaying, type Paying, type PayingOptions } from '../../src/signer/lightning/paying.ts';
import { openPaymentJournal, type PaymentJournal } from '../../src/signer/lightning/payment-journal.ts';
import { createTurns } from '../../src/signer/turns.ts';
import { clearBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import type { LightningStep } from '../../src/worker/payouts/lightning/steps.ts';
import { AMOUNT, at, clock, close, invoice, open, outgoing } from './funded-payouts.ts';

type Decoded = Awaited<ReturnType<LightningPayer['decode']>>;
/** What the node reads in every invoice, while it is set. */
let read: Decoded | null = null;
/** What the journal has of every payout, while it is set. */
let journalled: { readonly has: ReturnType<PaymentJournal['ofPayout']> } | null = null;
/** What the node was asked to pay. */
let orders: Parameters<LightningPayer['send']>[0][] = [];

const around = (payer: LightningPayer): LightningPayer => ({
  ...payer,
  decode: async (request) => read ?? payer.decode(request),
  send(order) {
    orders.push(order);
    return payer.send(order);
  },
});
const forgetful = (journal: PaymentJournal): PaymentJournal => ({
  ...journal,
  ofPayout: (id) => (journalled === null ? journal.ofPayout(id) : journalled.has),
});
beforeAll(async () => {
  await open({}, around, { journalled: forgetful });
  // its owner can do without what the database checks by itself
  const { rows } = await at.admin.query(
    `select conname from pg_constraint where conrelid = 'payouts'::regclass and contype = 'c'`,
  );
  for (const { conname } of rows) await at.admin.query(`alter table payouts drop constraint ${conname}`);
});
afterAll(close);
beforeEach(() => {
  [read, journalled, orders] = [null, null, []];
});
afterEach(() => at.admin.query(`update payouts set step = 'ended', status = 'failed', error = 'over' where step <> 'ended'`));

type Asked = { readonly id: string; readonly hash: string; readonly asking: Parameters<typeof at.paying.send>[0] };
/** A payout of which the worker has died at a step. */
async function payout(diesAt: LightningStep, amountMsat?: bigint): Promise<Asked> {
  const { request, hash } = invoice('pay', amountMsat);
  const { id } = await at.request(request, AMOUNT);
  await at.look({}, diesAt);
  const { lease_epoch: epoch } = await at.payment(id);
  return { id, hash, asking: { payoutId: id, leaseEpoch: String(epoch) } };
}
/** As the owner of the database writes it, whatever its triggers say. */
async function write(text: string, values: readonly unknown[]): Promise<void> {
  const session = await at.admin.connect();
  try {
    await session.query('set session_replication_role = replica');
    await session.query(text, [...values]);
  } finally {
    await session.query('set session_replication_role = origin');
    session.release();
  }
}
const written = (payoutId: string) => ({ payoutId, paymentHash: 'ab'.repeat(32), takes: '1010', authorizedAtMs: clock.now() });
const ofAnotherHash = (payoutId: string): AuthorizedPayment => ({ sequence: 1, ...written(payoutId) });
/** A signer that has no node to pay with. */
const withoutPayer = (journal: PayingOptions['journal']): Paying =>
  createPaying({
    network: 'regtest',
    payer: null,
    db: at.ctx.db,
    journal,
    channels: () => Promise.reject(new Error('nobody asks for channels')),
    intentKeys: async () => [],
    limits: {},
    countedAlone: createTurns(),
    leftBesides: async () => [],
    now: clock.now,
  });
const refusal = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'accepted',
    (error: { readonly rule?: string }) => error.rule ?? error.constructor.name,
  );

const WRITTEN: readonly (readonly [what: string, text: string, rule: string])[] = [
  ['is held', `update payouts set step = 'held', held_reason = 'cool_down' where id = $1`, 'stopped'],
  ['has ended', `update payouts set status = 'failed', error = 'x' where id = $1`, 'payout'],
  ['waits for a person', `update payouts set status = 'pending' where id = $1`, 'payout'],
  ['was sent before', `update lightning_payments set state = 'sent', node = 'another' where payout_id = $1`, 'payout'],
  ['is of a transaction here', `update payouts set internal_to = 'txn_other' where id = $1`, 'payout'],
  ['is for more than was signed', `update payouts set amount = amount + 1 where id = $1`, 'intent'],
  ['costs more than was signed', `update payouts set fee_max = fee_max + 1 where id = $1`, 'intent'],
  ['holds nothing', `update ledger.entry set key = key || ' gone' where key = 'po:' || $1 || ':hold'`, 'hold'],
  [
    'has given back what it held',
    `with held as (select id from ledger.entry where key = 'po:' || $1 || ':hold')
     update ledger.entry e set key = 'po:' || $1 || ':release' from held
      where e.id = (select max(o.id) from ledger.entry o where o.id <> held.id and o.key not like 'po:%')`,
    'hold',
  ],
  ['is of another lease', `update lightning_payments set lease_epoch = lease_epoch + 1 where payout_id = $1`, 'lease'],
];

test.each(WRITTEN)('a payout that %s is not authorized, and the node is asked for nothing', async (_what, text, rule) => {
  const { id, asking } = await payout('ln-leased');
  await write(text, [id]);
  expect(await refusal(at.paying.authorize(asking))).toBe(rule);
  expect(await refusal(at.paying.send(asking))).not.toBe('accepted');
  expect(orders).toEqual([]);
});

const READ: readonly (readonly [what: string, read: (hash: string) => Decoded, rule: string])[] = [
  ['nothing', () => ({ refused: 'unknown feature' }), 'invoice'],
  ['another payment hash', () => ({ paymentHash: 'ab'.repeat(32), amountMsat: 1_000_000n }), 'invoice'],
  ['a thousandth of a satoshi more', (hash) => ({ paymentHash: hash, amountMsat: 1_000_001n }), 'destination'],
  ['another amount', (hash) => ({ paymentHash: hash, amountMsat: 999_000n }), 'destination'],
];
test.each(READ)('an invoice in which the node reads %s is not authorized', async (_what, reads, rule) => {
  const { hash, asking } = await payout('ln-leased');
  read = reads(hash);
  expect(await refusal(at.paying.authorize(asking))).toBe(rule);
});
test.each(READ)('an invoice in which the node reads %s after it was authorized is not paid', async (_what, reads) => {
  const { hash, asking } = await payout('ln-committed');
  read = reads(hash);
  expect(await refusal(at.paying.send(asking))).not.toBe('accepted');
  expect(orders).toEqual([]);
});

test('while payouts are stopped nothing is authorized, and what was authorized before goes on', async () => {
  const [first, second] = [await payout('ln-authorized'), await payout('ln-leased')];
  await tripBreaker(at.ctx.db, { name: 'payouts', by: ['a test'], findings: ['a test'], atMs: clock.now() });
  expect(await refusal(at.paying.authorize(second.asking))).toBe('stopped');
  expect(await refusal(at.paying.authorize(first.asking))).toBe('accepted');
  await clearBreakers(at.ctx.db, 'a test', clock.now());
});

test('while its merchant owes something it is not authorized', async () => {
  const { asking } = await payout('ln-leased');
  const owes = async (amount: bigint): Promise<void> => {
    const postings = [
      { account: `asset:receivable:merchant:${at.merchantId}:BTC`, amount },
      { account: 'equity:operator:BTC', amount: -amount },
    ];
    const entry = { key: `loss ${amount}`, kind: 'loss', postings, parts: [] };
    await postEntries(at.ctx.db, [{ entry, transactionId: null, atMs: clock.now() }]);
  };
  await owes(5n);
  expect(await refusal(at.paying.authorize(asking))).toBe('stopped');
  await owes(-5n);
  expect(await refusal(at.paying.authorize(asking))).toBe('accepted');
});

test('without a node to pay with nothing is authorized, and nothing is given back', async () => {
  const without = withoutPayer(() => Promise.reject(new Error('nobody needs it')));
  const { asking } = await payout('ln-leased');
  for (const ask of [() => without.authorize(asking), () => without.send(asking), () => without.node()])
    await expect(ask()).rejects.toThrow('BURSAR_LND_PAY_MACAROON');
  expect(await without.giveBackFailed()).toBe(false);
});

test('one that is authorized again counts once, and under one payment hash only', async () => {
  const before = at.leaving().length;
  const { asking, hash, id } = await payout('ln-authorized');
  expect(await at.paying.authorize(asking)).toMatchObject({ payoutId: id, paymentHash: hash });
  expect(at.leaving()).toHaveLength(before + 1);
  journalled = { has: ofAnotherHash(id) };
  expect(await refusal(at.paying.authorize(asking))).toBe('payout');
});

const COMMITTED: readonly (readonly [what: string, text: string, rule: string])[] = [
  ['has ended', `update payouts set status = 'failed', error = 'x' where id = $1`, 'payout'],
  ['is held', `update payouts set step = 'held', held_reason = 'unknown_outcome' where id = $1`, 'payout'],
  ['waits', `update lightning_payments set state = 'waiting', node = null where payout_id = $1`, 'payout'],
  ['another node was asked for', `update lightning_payments set node = 'another' where payout_id = $1`, 'payout'],
  ['has no lease', `update lightning_payments set lease_until = null where payout_id = $1`, 'lease'],
  ['is of another lease', `update lightning_payments set lease_epoch = lease_epoch + 1 where payout_id = $1`, 'lease'],
];
test.each(COMMITTED)('a committed payout that %s is not sent', async (_what, text, rule) => {
  const { id, asking } = await payout('ln-committed');
  await write(text, [id]);
  expect(await refusal(at.paying.send(asking))).toBe(rule);
  expect(orders).toEqual([]);
});

test('what the journal does not have, or has under another payment hash, is not sent', async () => {
  const { asking, id } = await payout('ln-committed');
  journalled = { has: null };
  expect(await refusal(at.paying.send(asking))).toBe('journal');
  journalled = { has: ofAnotherHash(id) };
  expect(await refusal(at.paying.send(asking))).toBe('journal');
  expect(orders).toEqual([]);
});

test('what the journal of a signer that was put back does not have any more waits for a person, who can give it back', async () => {
  const { id } = await payout('ln-committed');
  journalled = { has: null };
  // until then a request that was cut off may still arrive
  clock.nowMs += 600_000;
  await at.look();
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect(orders).toEqual([]);
  const { status, error } = await resolvePayout(
    at.ctx,
    { payoutId: id, outcome: 'failed', evidence: 'never sent' },
    at.paying.track,
  );
  expect([status, error]).toEqual(['failed', 'never sent']);
});

test('an invoice with another payment hash than the payout has is not sent, whatever the journal says', async () => {
  const { asking, id } = await payout('ln-committed');
  journalled = { has: ofAnotherHash(id) };
  read = { paymentHash: 'ab'.repeat(32), amountMsat: 1_000_000n };
  expect(await refusal(at.paying.send(asking))).toBe('payout');
  expect(orders).toEqual([]);
});

test('what was authorized is listed some at a time, from the first to the last', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-journal-'));
  const journal = await openPaymentJournal(folder, 'regtest', { now: Date.now });
  for (let n = 1; n <= 501; n++) await journal.append(written(`payout_${n}`));
  const listed = async (after: number) => {
    const { payments, more } = await withoutPayer(async () => journal).authorized(after);
    return [payments[0]?.sequence, payments.length, more];
  };
  expect(await listed(0)).toEqual([1, 500, true]);
  expect(await listed(1)).toEqual([2, 500, false]);
  expect(await listed(500)).toEqual([501, 1, false]);
  expect(await listed(501)).toEqual([undefined, 0, false]);
  await journal.close();
  rmSync(folder, { recursive: true });
});

test('the node is asked for the amount where the invoice has none, with the held fee and until the lease ends', async () => {
  const { asking, id } = await payout('ln-committed', 0n);
  const { lease_until: until } = await at.payment(id);
  expect(await at.paying.send(asking)).toMatchObject({ state: 'taken', payment: { status: 'succeeded', amountMsat: '1000000' } });
  expect(orders).toMatchObject([{ amount: 1_000n, feeLimit: 10n, notAfterMs: (until as Date).getTime() }]);
  const fixed = await payout('ln-committed');
  await at.paying.send(fixed.asking);
  expect(orders.at(-1)).toMatchObject({ amount: null, feeLimit: 10n });
  expect(outgoing().payment(fixed.hash)).not.toBeNull();
});

test('what is no request is refused as such', async () => {
  const { asking } = await payout('ln-leased');
  for (const over of [
    { payoutId: '' },
    { payoutId: 'x'.repeat(101) },
    { payoutId: 'a b' },
    { payoutId: 1 },
    { leaseEpoch: 1 },
    { leaseEpoch: '' },
    { leaseEpoch: '-1' },
    { leaseEpoch: '1'.repeat(19) },
  ])
    expect(await refusal((async () => at.paying.authorize({ ...asking, ...over } as never))())).toBe('RequestMalformed');
  expect(await refusal(at.paying.authorize({ ...asking, payoutId: 'x'.repeat(100) }))).toBe('payout');
  expect(await refusal(at.paying.authorize({ ...asking, leaseEpoch: '1'.repeat(18) }))).toBe('lease');
});
