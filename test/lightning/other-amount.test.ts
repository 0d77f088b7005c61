// Our node pays each payment hash once. What it has paid for a hash with another amount than a payout's, or for more than that may cost, is no evidence for that
// payout, though the preimage is right: an invoice without an amount may have been paid by the operator, or for a payout that he has called failed, and whoever
// has the macaroon that pays chooses whose channels take the fee. On the simulated node.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../src/flow/audit.ts';
import { holdUnknownPayment } from '../../src/flow/lightning/payout-progress.ts';
import { bookOwnPayment } from '../../src/flow/lightning/unasked-payments.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { openBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import { unaskedHashes } from '../../src/store/lightning/sent-payments.ts';
import {
  AMOUNT,
  at,
  clock,
  close,
  looks,
  MINUTE,
  open,
  outgoing,
  pass,
  status,
  toldAfterAMinute as told,
} from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const withoutAmount = (behaviour: 'pay' | 'hold') =>
  outgoing().invoice({ amountMsat: 0n, expirySeconds: 30 * 86_400, behaviour });
const waitsForOperator = { status: 'processing', heldReason: 'unknown_outcome', error: null };

test('what the operator has paid for less does not complete a payout: an operator decides', async () => {
  const to = withoutAmount('pay');
  outgoing().send(to.request, 1_000_000n, 1_000_000n);
  const { id } = await at.request(to.request, '0.0001');
  await looks(1);
  expect(await at.payout(id)).toMatchObject(waitsForOperator);
  expect(at.troubles.at(-1)).toBe(
    `payout ${id}: the Lightning node has paid ${to.hash} with 1000000 thousandths of a satoshi for a fee of 2000, and the payout sends 10000 satoshis for at most 100: it was paid for somebody else; decide (bursar payout resolve)`,
  );
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  await looks(3, 61_000);
  expect(await at.payout(id)).toMatchObject(waitsForOperator);
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'failed', evidence: 'the node had paid it before' }, at.paying.track);
  expect(await at.available()).toBe(500_000n);
});

test('nor does what is paid late for a payout that was called failed complete the next one to the invoice, for more', async () => {
  const to = withoutAmount('hold');
  const first = await at.request(to.request, '0.00001');
  await at.look({
    async send(asked) {
      await at.paying.send(asked);
      // an operator is sure, and is wrong
      await holdUnknownPayment(at.ctx, { payoutId: first.id, leaseEpoch: BigInt(asked.leaseEpoch) });
      return { state: 'unanswered', reason: 'it lies on the wire' };
    },
  });
  outgoing().leaveChannel(to.hash);
  pass(2 * MINUTE);
  await resolvePayout(at.ctx, { payoutId: first.id, outcome: 'failed', evidence: 'it hangs' }, at.paying.track);
  expect(await at.available()).toBe(500_000n);
  const next = await at.request(to.request, '0.0001');
  await looks(1);
  outgoing().resolve(to.hash, true);
  await looks(2);
  expect(await at.payout(next.id)).toMatchObject(waitsForOperator);
  expect(await at.available()).toBe(500_000n - 10_100n);
});

test('what was paid with another amount stops payouts also while a payout to the invoice waits, and its operator can book it', async () => {
  const to = withoutAmount('pay');
  // payouts wait until somebody has looked
  await tripBreaker(at.ctx.db, { name: 'payouts', by: ['test'], findings: ['a test'], atMs: clock.nowMs });
  const { id } = await at.request(to.request, AMOUNT);
  expect(await status(id)).toBe('pending');
  expect(await told()).toEqual([]);
  outgoing().send(to.request, 100_000_000n, 1_000_000n);
  expect((await told()).map((one) => one.slice(0, 4))).toEqual(['LN-5', 'LN-7']);
  expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toContain('LN-5');
  expect(await bookOwnPayment(at.ctx, to.hash)).toBe(100_101n);
  expect(await clearAfterAudit(at.ctx, await runAudit(at.ctx), 'test')).toBe(1);
  expect(await told()).toEqual([]);
});

test('neither more nor less than a payout of its hash asks for, under way or paid, until a person has called that paid', async () => {
  const to = withoutAmount('pay');
  const { id } = await at.request(to.request, AMOUNT);
  outgoing().send(to.request, 1_000_001n, 1_000_000n);
  await looks(1);
  await told();
  for (const [state, msat] of [
    ['in_flight', 1_000_001n],
    ['succeeded', 999_999n],
  ] as const) {
    await at.admin.query('update lightning_sent set state = $1, amount_msat = $2', [state, msat]);
    expect(await unaskedHashes(at.ctx.db)).toEqual([to.hash]);
  }
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'paid', evidence: 'its recipient is content' });
  expect(await unaskedHashes(at.ctx.db)).toEqual([]);
});

/** Somebody has the node pay an invoice over channels of his own. */
function paidForAFeeOf(to: { readonly request: string; readonly hash: string }, feeMsat: bigint): void {
  Object.assign(outgoing().send(to.request, 1_000_000n, 1_000_000n), { feeMsat });
  outgoing().resolve(to.hash, true);
}

test('what was paid for more than a payout of its hash may cost was asked for by nobody, and completes none', async () => {
  expect(await told()).toEqual([]);
  const to = withoutAmount('hold');
  const { id } = await at.request(to.request, AMOUNT);
  paidForAFeeOf(to, 100_000_000n);
  await looks(2);
  expect(await at.payout(id)).toMatchObject(waitsForOperator);
  expect(at.troubles.at(-1)).toMatch(
    /for a fee of 100000000, and the payout sends 1000 satoshis for at most 10: it was paid for somebody else/,
  );
  expect((await told()).map((one) => one.slice(0, 4))).toEqual(['LN-5']);
  expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['LN-5']);
  expect(await bookOwnPayment(at.ctx, to.hash)).toBe(101_000n);
  pass(2 * MINUTE);
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'failed', evidence: 'the node had paid it before' }, at.paying.track);
  expect(await told()).toEqual([]);
  expect(await at.available()).toBe(500_000n);
});

test('what was paid for as much as a payout of its hash may cost completes it', async () => {
  const to = withoutAmount('hold');
  const { id } = await at.request(to.request, AMOUNT);
  paidForAFeeOf(to, 10_000n);
  await looks(1);
  expect(await at.payout(id)).toMatchObject({ status: 'completed', fee: 10n });
  expect(await told()).toEqual([]);
});

test('what an operator has booked is no payout besides: nobody calls that paid', async () => {
  expect(await told()).toEqual([]);
  const to = withoutAmount('pay');
  const { id } = await at.request(to.request, AMOUNT);
  outgoing().send(to.request, 100_000_000n, 1_000_000n);
  await looks(1);
  await told();
  expect(await bookOwnPayment(at.ctx, to.hash)).toBe(100_101n);
  const asPaid = resolvePayout(at.ctx, { payoutId: id, outcome: 'paid', evidence: 'its recipient is content' });
  await expect(asPaid).rejects.toThrow(/is booked: it was paid for somebody else/);
  pass(2 * MINUTE);
  await resolvePayout(at.ctx, { payoutId: id, outcome: 'failed', evidence: 'the operator has paid it' }, at.paying.track);
  expect(await told()).toEqual([]);
  expect(await at.available()).toBe(500_000n);
});

test('while it is booked nobody calls a payout of its hash paid, and the other way round', async () => {
  expect(await told()).toEqual([]);
  const to = withoutAmount('pay');
  const { id } = await at.request(to.request, AMOUNT);
  outgoing().send(to.request, 100_000_000n, 1_000_000n);
  await looks(1);
  await told();
  const both = await Promise.allSettled([
    bookOwnPayment(at.ctx, to.hash),
    resolvePayout(at.ctx, { payoutId: id, outcome: 'paid', evidence: 'its recipient is content' }),
  ]);
  const isBooked = both[0].status === 'fulfilled' && both[0].value !== null;
  expect([isBooked, both[1].status === 'fulfilled'].filter(Boolean)).toHaveLength(1);
});
