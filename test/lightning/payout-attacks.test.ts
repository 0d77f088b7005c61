// What merchants, strangers and a node without enough in its channels can lead payouts over Lightning to: nobody else's payouts stop, and nothing that
// was paid is given back unseen. On the simulated node, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { PaymentFacts, SendAnswer } from '../../src/core/lightning/payer.ts';
import { bookUnasked } from '../../src/flow/lightning/unasked-payments.ts';
import { reconsiderPayout } from '../../src/flow/payouts/held-reasons.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import type { SignerLimits } from '../../src/signer/limits.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { fund } from '../support/funded.ts';
import { invoice as imitation } from '../support/invoice.ts';
import {
  AMOUNT,
  at,
  clock,
  close,
  code,
  engine,
  invoice,
  looks,
  MINUTE,
  open,
  outgoing,
  pass,
  status,
  toAnother,
} from './funded-payouts.ts';

/** While it is set, our node says nothing of an invoice, and `heard` is called when it is asked. */
let silence: { readonly until: Promise<void>; readonly heard: () => void } | null = null;
const openSilenced = (limits: SignerLimits = {}): Promise<void> =>
  open(limits, (payer) => ({
    ...payer,
    async decode(request) {
      silence?.heard();
      await silence?.until;
      return payer.decode(request);
    },
  }));
beforeEach(() => openSilenced());
afterEach(close);

test('an invoice that somebody has signed with the payment hash of an invoice here is refused, and stops nobody', async () => {
  const { made, id } = await toAnother();
  const hash = await at.hashOf(made.transactionId);
  for (const sat of [1, 10_000, null]) {
    const forged = imitation({ sat, hash, atMs: clock.nowMs });
    expect(await code(at.request(forged, '0.0001'))).toBe('invalid_destination');
    expect(await code(at.request(forged, '0.00000001'))).toBe('invalid_destination');
  }
  await at.look();
  await at.work();
  expect(await status(id)).toBe('completed');
  expect(await code(at.request(imitation({ hash, atMs: clock.nowMs }), '0.0001'))).toBe('invalid_destination');
  expect(await at.compared()).toEqual([]);
});

test('an invoice whose first payout failed and whose second one paid it is no riddle after a start of the database', async () => {
  const to = outgoing().invoice({ amountMsat: 0n, expirySeconds: 86_400, behaviour: 'pay' });
  const failing = {
    send: async (): Promise<SendAnswer> => ({ state: 'taken', payment: failed(to.hash, 'FAILURE_REASON_NO_ROUTE') }),
  };
  const told = { track: async () => ({ payment: failed(to.hash, 'FAILURE_REASON_NO_ROUTE'), isPending: false }) };
  const first = await at.request(to.request, AMOUNT);
  await at.look({ ...failing, ...told });
  expect(await status(first.id)).toBe('failed');
  // authorized, and expired before it was committed
  const second = await at.request(to.request, AMOUNT);
  await at.look({}, 'ln-authorized');
  await at.admin.query(`update payouts set invoice_expires_at = $2 where id = $1`, [second.id, new Date(clock.nowMs)]);
  pass(21_000);
  await at.look();
  expect(await status(second.id)).toBe('failed');
  const third = await at.request(to.request, AMOUNT);
  await at.look();
  expect(await status(third.id)).toBe('completed');
  await at.ctx.db.query({ text: `update comparisons set timeline = 'another'` });
  const asked: string[] = [];
  pass(16_000);
  await at.look({
    track(hash) {
      asked.push(hash);
      return at.paying.track(hash);
    },
  });
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  // what the node has had its last word on is not asked about again: there may be very many
  expect(asked).toHaveLength(1);
  expect(await at.compared()).toEqual([]);
});

const failed = (paymentHash: string, failure: string): PaymentFacts => ({
  paymentHash,
  status: 'failed',
  amountMsat: '1000000',
  feeMsat: '0',
  preimage: null,
  failure,
  paymentIndex: '0',
  isPartOpen: false,
});

test('a payout whose merchant owes something since it was leased waits alone', async () => {
  const { id } = await at.request(invoice().request, AMOUNT);
  const owes = [
    { account: `asset:receivable:merchant:${at.merchantId}:BTC`, amount: 5n },
    { account: 'equity:operator:BTC', amount: -5n },
  ];
  await at.look({
    async authorize(asked) {
      const entry = { key: 'loss', kind: 'loss', postings: owes, parts: [] };
      await postEntries(at.ctx.db, [{ entry, transactionId: null, atMs: clock.nowMs }]);
      await reconsiderPayout(at.ctx, id);
      return at.paying.authorize(asked);
    },
  });
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'receivable' });
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  expect(outgoing().listed()).toEqual([]);
});

test('one that an operator found unpaid, and that the node has paid after all, is named by the audit until it is booked', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  pass(70 * MINUTE);
  outgoing().leaveChannel(to.hash);
  await at.look();
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'failed', evidence: 'it hangs' }, at.paying.track);
  outgoing().resolve(to.hash, true);
  await looks(1);
  expect(await at.compared()).toEqual([expect.stringMatching(/^LN-5: .* has failed, and node .* has paid/)]);
  expect(await bookUnasked(at.ctx, { paymentHash: to.hash, acceptsLoss: true })).toBe(1_002n);
  expect(await at.compared()).toEqual([]);
});

test('what our channels cannot send now waits until they can, or until its invoice has expired', async () => {
  const rich = { node: async () => ({ ...(await at.paying.node()), spendable: '1000000000000' }) };
  const [first, ...others] = Array.from({ length: 32 }, (_, n) => {
    const one = invoice('hold', 8_000_000_000_000n >> BigInt(n));
    outgoing().send(one.request, 0n, 1_000_000_000_000n);
    return one.hash;
  }).filter((hash) => outgoing().payment(hash)?.status === 'IN_FLIGHT');
  expect(others.length).toBeGreaterThan(5);
  const [to, late] = [invoice(), outgoing().invoice({ amountMsat: 1_000_000n, expirySeconds: 120, behaviour: 'pay' })];
  const { id } = await at.request(to.request, AMOUNT);
  const { id: short } = await at.request(late.request, AMOUNT);
  await at.look(rich);
  expect([to.hash, late.hash].map((hash) => outgoing().payment(hash)?.status)).toEqual(['FAILED', 'FAILED']);
  expect([await status(id), await status(short)]).toEqual(['processing', 'processing']);
  expect(await at.available()).toBe(500_000n - 2_020n);
  // it is not asked again as long as the node says that it has too little
  const listed = outgoing().listed().length;
  await looks(2);
  expect(outgoing().listed()).toHaveLength(listed);
  pass(MINUTE + 40_000);
  await at.look(rich);
  expect(await at.payout(short)).toMatchObject({ status: 'failed', error: 'the Lightning node could not send it' });
  outgoing().resolve(first as string, false);
  await looks(2);
  expect(await status(id)).toBe('completed');
  expect(outgoing().find(to.hash)?.receivedMsat).toBe(1_000_000n);
  expect(await at.available()).toBe(500_000n - 1_002n);
  for (const hash of others) outgoing().resolve(hash, false);
  expect(await at.compared()).toEqual([]);
});

test('bitcoin that came on the chain is paid out over channels of the operator, and no invariant turns red for it', async () => {
  const red = async () => [...new Set((await at.compared()).map((finding) => finding.split(':')[0]))];
  await fund(at.ctx, at.merchantId, 5_000_000n);
  // they came without a payment
  const before = await red();
  const { id } = await at.request(invoice('pay', 4_000_000_000n).request, '0.04');
  await at.look();
  expect(await status(id)).toBe('completed');
  expect(await at.balance('asset:ln:BTC')).toBe(500_000n - 4_004_001n);
  expect(await red()).toEqual(before);
});

test('a payment that the node is about to be asked for counts for the limits, also when somebody has released its hold meanwhile', async () => {
  await close();
  await openSilenced({ BTC: { payout: null, hour: 1_500n, day: null } });
  const { id } = await at.request(invoice('fail').request, AMOUNT);
  await at.look({}, 'ln-answered');
  const { lease_epoch: epoch } = await at.payment(id);
  pass(3 * MINUTE);
  let speak = (): void => undefined;
  const until = new Promise<void>((resolve) => {
    speak = resolve;
  });
  let late: Promise<unknown> = Promise.resolve();
  await at.admin.query(`update lightning_payments set lease_until = $2 where payout_id = $1`, [
    id,
    new Date(clock.now() + MINUTE),
  ]);
  await new Promise<void>((heard) => {
    silence = { until, heard };
    late = code(at.paying.send({ payoutId: id, leaseEpoch: String(epoch) }));
  });
  silence = null;
  const { rows } = await at.admin.query('select amount, fee_max, merchant_id from payouts where id = $1', [id]);
  const whole = BigInt(rows[0].amount) + BigInt(rows[0].fee_max);
  const entry = {
    key: `po:${id}:release`,
    kind: 'payout_released',
    postings: [
      { account: `merchant:${rows[0].merchant_id}:held:BTC`, amount: whole },
      { account: `merchant:${rows[0].merchant_id}:available:BTC`, amount: -whole },
    ],
    parts: [],
  };
  await postEntries(at.ctx.db, [{ entry, transactionId: null, payoutId: id, atMs: clock.now() }]);
  const other = await at.request(invoice().request, AMOUNT);
  await looks(1);
  expect(await at.payout(other.id)).toMatchObject({ status: 'pending', heldReason: 'approval' });
  speak();
  await late;
});

test('a payment that failed and no longer counts for the limits is never sent, whatever the owner of the database makes of its hold', async () => {
  await at.close();
  await engine.close();
  await open({ BTC: { payout: null, hour: 1_500n, day: null } });
  pass(MINUTE);
  const { id } = await at.request(invoice('fail').request, AMOUNT);
  await looks(2);
  expect(await status(id)).toBe('failed');
  pass(4 * MINUTE);
  const other = await at.request(invoice().request, AMOUNT);
  await looks(2);
  // the room of the first one was given back
  expect(await status(other.id)).toBe('completed');
  const sent = outgoing().listed().length;
  await at.admin.query('alter table ledger.entry disable trigger all');
  await at.admin.query(`update ledger.entry set key = key || ':gone' where key like $1 and key <> $2`, [
    `po:${id}:%`,
    `po:${id}:hold`,
  ]);
  await at.admin.query(`update payouts set status = 'processing', step = 'batched', error = null where id = $1`, [id]);
  const until = new Date(clock.now() + MINUTE);
  await at.admin.query(`update lightning_payments set state = 'sent', lease_until = $2 where payout_id = $1`, [id, until]);
  const { lease_epoch: epoch } = await at.payment(id);
  const asked = at.paying.send({ payoutId: id, leaseEpoch: String(epoch) });
  await expect(asked).rejects.toMatchObject({ name: 'SigningRefused', rule: 'limit' });
  expect(outgoing().listed()).toHaveLength(sent);
});

test('an invoice in which the node reads another payment hash than we do is not paid, and ends its payout', async () => {
  await at.close();
  await engine.close();
  await open({}, (payer) => ({
    ...payer,
    async decode(request) {
      const read = await payer.decode(request);
      return 'refused' in read ? read : { ...read, paymentHash: 'ab'.repeat(32) };
    },
  }));
  const to = invoice();
  const { id } = await at.request(to.request, AMOUNT);
  await looks(2);
  expect(await at.payout(id)).toMatchObject({
    status: 'failed',
    error: `the Lightning node reads the payment hash ${'ab'.repeat(32)} in it, and we ${to.hash}`,
  });
  expect(outgoing().payment(to.hash)).toBeNull();
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  expect(await at.available()).toBe(500_000n);
});
