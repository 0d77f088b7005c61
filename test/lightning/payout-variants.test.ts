// The protections of the model of Lightning payouts, each by its name, as the driver, the signer's rules and the database hold them; and what a
// stolen database password, a limit or another merchant's invoice lead to. On the simulated node, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import { bookUnasked } from '../../src/flow/lightning/unasked-payments.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { cancelTransaction, createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
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
  merchant,
  open,
  outgoing,
  pass,
  status,
  toAnother,
  unheard,
} from './funded-payouts.ts';

const DAY = 86_400_000;
beforeEach(() => open());
afterEach(close);

test('commit_before_send: the node is asked only for what is committed', async () => {
  const to = invoice();
  const { id } = await at.request(to.request, AMOUNT);
  await at.look({}, 'ln-authorized');
  expect(outgoing().payment(to.hash)).toBeNull();
  expect(await at.payment(id)).toMatchObject({ state: 'waiting' });
  pass(21_000);
  let seen: unknown;
  await at.look({
    async send(asked) {
      seen = await at.payment(id);
      return at.paying.send(asked);
    },
  });
  expect(seen).toMatchObject({ state: 'sent', sends: 1 });
  expect(await status(id)).toBe('completed');
  expect(await at.compared()).toEqual([]);
});

test('timeout_is_unknown: no silence of signer or node, however long, is a failure', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look(unheard());
  const silent = { track: async () => Promise.reject(Object.assign(new Error('no answer'), { fault: 'node' })) };
  for (let hour = 0; hour < 30; hour++) {
    pass(60 * MINUTE);
    await at.look(silent);
    expect(await status(id)).toBe('processing');
  }
  outgoing().resolve(to.hash, true);
  await looks(1);
  expect(await status(id)).toBe('completed');
  expect(await at.compared()).toEqual([]);
});

test('send_deadline: FAILED counts when no request can arrive any more, and the node refuses one that comes later', async () => {
  const to = invoice('fail');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look({ send: async () => ({ state: 'unanswered', reason: 'it lies on the wire' }) });
  const { unanswered_until: until } = (await at.payment(id)) as { unanswered_until: Date };
  expect(until.getTime()).toBeGreaterThan(clock.nowMs);
  pass(1_500);
  await at.look();
  expect(outgoing().payment(to.hash)?.status).toBe('FAILED');
  for (let n = 0; n < 4; n++) {
    pass(15_000);
    await at.look();
    expect(await status(id)).toBe('processing');
  }
  pass(until.getTime() + MINUTE - clock.nowMs + 1_100);
  const payer = createLndPayer(async () => engine.payTarget());
  const late = { paymentRequest: to.request, amount: null, feeLimit: 10n, notAfterMs: until.getTime() };
  expect(await payer.send(late)).toMatchObject({ state: 'refused' });
  payer.close();
  await looks(2);
  expect(await at.payout(id)).toMatchObject({ status: 'failed', error: 'the recipient did not accept the payment' });
  expect(await at.available()).toBe(500_000n);
  expect(await at.compared()).toEqual([]);
});

test('detect_restore: a node that has forgotten what it took is noticed, and only a preimage is believed of it', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  outgoing().forget(to.hash);
  await looks(1);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['LN-5']);
  await looks(5, DAY);
  expect(await status(id)).toBe('processing');
  expect(outgoing().payment(to.hash)).toBeNull();
  outgoing().resolve(to.hash, true);
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'paid', evidence: 'the recipient shows the preimage' });
  expect(await at.payout(id)).toMatchObject({ status: 'completed', fee: 0n });
  expect(await at.findings()).toEqual([]);
});

test('a payment that another worker has made since this one asked the node how many it knows is no sign of a restored node', async () => {
  for (const { request } of [invoice(), invoice()]) await at.request(request, AMOUNT);
  const slow = async () => {
    const said = await at.paying.node();
    await at.look();
    return said;
  };
  await at.look({ node: slow });
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  expect(await at.findings()).toEqual([]);
});

test('unique_hash: one payout pays an invoice, whoever asks and however often', async () => {
  const other = await merchant();
  const to = invoice('fail');
  const [first, second] = await Promise.all([at.request(to.request, AMOUNT), at.request(to.request.toUpperCase(), AMOUNT)]);
  expect(second.id).toBe(first.id);
  expect(await code(at.request(to.request, AMOUNT, other))).toBe('invoice_already_used');
  await at.look();
  expect(await status(first.id)).toBe('failed');
  expect((await at.request(to.request, AMOUNT)).id).not.toBe(first.id);
});

test('stuck_asks_person: what no channel holds and the node never ends waits for an operator, and its word still counts', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  const hangs = { track: async (hash: string) => ({ ...(await at.paying.track(hash)), isPending: false }) };
  pass(50 * MINUTE);
  await at.look(hangs);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
  pass(20 * MINUTE);
  await at.look(hangs);
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect(at.troubles.at(-1)).toContain('bursar payout resolve');
  expect(await at.available()).toBe(500_000n - 1_010n);
  expect(await at.findings()).toEqual([]);
  const told = (await runAudit(at.ctx)).pages.flatMap(({ findings }) => findings);
  expect(told).toEqual([expect.stringContaining(`${id} by lightning is processing, unknown_outcome since`)]);
  outgoing().resolve(to.hash, false);
  await looks(6);
  expect(await status(id)).toBe('failed');
  expect(await at.available()).toBe(500_000n);
  expect(await at.compared()).toEqual([]);
});

test('cancel_first: an invoice of another merchant is cancelled at the node, then booked, without a fee', async () => {
  const { other, made, id } = await toAnother();
  await at.look();
  expect(engine.node().find(await at.hashOf(made.transactionId))?.status).toBe('CANCELED');
  await at.work();
  expect(await at.payout(id)).toMatchObject({ status: 'completed', fee: 0n });
  expect(await at.path(made.transactionId)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
  expect(await at.balance(`merchant:${other}:available:BTC`)).toBe(10_000n);
  expect(await at.available()).toBe(490_000n);
  expect(await at.compared()).toEqual([]);
});

test('book_locks_owner: one that was paid from outside, or cancelled, in the meantime is paid by no entry', async () => {
  const { other, made, id } = await toAnother();
  await engine.pay(made.address, await at.hashOf(made.transactionId));
  await at.look();
  expect(await at.payout(id)).toMatchObject({ status: 'failed', error: 'invoice_expired' });
  await at.work();
  expect(await at.balance(`merchant:${other}:available:BTC`)).toBe(10_000n);
  expect(await at.available()).toBe(500_000n);
  const asked = { merchantId: other, usdMinor: 10_00n, method: 'BTC-LN', label: null, email: null } as const;
  const next = await createTransaction(at.ctx, asked);
  const second = await at.request(next.address, '0.0001');
  await cancelTransaction(at.ctx, { merchantId: other, transactionId: next.transactionId });
  await looks(1);
  expect(await status(second.id)).toBe('failed');
  expect(await at.available()).toBe(500_000n);
  expect(await code(at.request(next.address, '0.0001'))).toBe('invoice_expired');
  expect(await at.compared()).toEqual([]);
});

test('whoever has the database and no key of an API has nothing paid', async () => {
  const [mine, thief] = [invoice(), invoice()];
  const { id } = await at.request(mine.request, AMOUNT);
  await at.admin.query('update payouts set payment_request = $2, payment_hash = $3 where id = $1', [
    id,
    thief.request,
    thief.hash,
  ]);
  await looks(3);
  expect(await at.payout(id)).toMatchObject({ status: 'pending', heldReason: 'approval' });
  expect(outgoing().listed()).toEqual([]);
  const red = (await runAudit(at.ctx)).answers.filter(({ findings }) => findings.length > 0).map((answer) => answer.id);
  expect(red).toContain('INT-1');
});

test("what is above the signer's limits waits for the operator, and what was paid before counts", async () => {
  await close();
  await open({ BTC: { payout: 2_500n, hour: 3_000n, day: null } });
  const { id: first } = await at.request(invoice().request, AMOUNT);
  // what waits is asked for side by side: this one comes before the others
  await looks(1);
  const { id: large } = await at.request(invoice('pay', 3_000_000n).request, '0.00003');
  const { id: second } = await at.request(invoice('pay', 2_000_000n).request, '0.00002');
  await looks(2);
  expect(await Promise.all([first, large, second].map(status))).toEqual(['completed', 'pending', 'pending']);
  expect(outgoing().listed()).toHaveLength(1);
});

test('what the node has paid and nobody here has asked for turns the audit red, until an operator books it', async () => {
  const { request, hash: paymentHash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  const findings = await at.compared();
  expect(findings).toHaveLength(1);
  expect(findings[0]).toMatch(/^LN-5: .*which no payout here has asked for/);
  expect(await code(bookUnasked(at.ctx, { paymentHash, acceptsLoss: false }))).toBe('not_resolvable');
  expect(await bookUnasked(at.ctx, { paymentHash, acceptsLoss: true })).toBe(1_002n);
  expect(await bookUnasked(at.ctx, { paymentHash, acceptsLoss: true })).toBeNull();
  expect(await at.findings()).toEqual([]);
});

test('what the node has paid and nobody here has asked for stops payouts as soon as its list is read', async () => {
  await at.request(invoice().request, AMOUNT);
  await looks(2);
  await at.comparedPayments();
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  const { request, hash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  await at.comparedPayments();
  const found = { name: 'payouts', trippedBy: ['LN-5'], findings: [expect.stringContaining(hash)] };
  expect(await openBreakers(at.ctx.db)).toMatchObject([found]);
});

test('an invoice that expires while its payout waits ends it, and what it held comes back', async () => {
  const to = invoice();
  const { id } = await at.request(to.request, AMOUNT);
  engine.node().setTrouble({ down: true, fault: null, left: null });
  await looks(1);
  pass(61 * MINUTE);
  engine.node().setTrouble({ down: false, fault: null, left: null });
  await looks(1);
  expect(await at.payout(id)).toMatchObject({ status: 'failed', error: 'invoice_expired' });
  expect(await at.available()).toBe(500_000n);
  expect(outgoing().listed()).toEqual([]);
  expect(await at.compared()).toEqual([]);
});
