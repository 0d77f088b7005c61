// What the node has under way for the hash of a payout that has failed here, under a number that nobody here knows: it came late, or somebody else has asked for it.
// It stops payouts, and its operator can let them go on before its recipient has decided, which may be for weeks.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../src/flow/audit.ts';
import { bookOwnPayment, bookUnasked, claimUnderWay } from '../../src/flow/lightning/unasked-payments.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { AMOUNT, at, close, code, invoice, looks, open, outgoing, status, toldAfterAMinute as told } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

test('it stops payouts until its operator has said that he knows of it, and is booked as lost once it has succeeded', async () => {
  expect(await told()).toEqual([]);
  const { request, hash } = invoice('hold');
  const { id } = await at.request(request, AMOUNT);
  await at.look();
  outgoing().resolve(hash, false);
  await looks(2);
  expect(await status(id)).toBe('failed');
  outgoing().send(request, 0n, 10_000n);
  await told();
  expect(await openBreakers(at.ctx.db)).toMatchObject([{ trippedBy: ['LN-5'] }]);
  const loss = { paymentHash: hash, acceptsLoss: true };
  expect(await code(bookUnasked(at.ctx, loss))).toBe('not_resolvable');
  expect(await claimUnderWay(at.ctx, hash)).toBe(1_000n);
  expect(await told()).toEqual([]);
  expect(await clearAfterAudit(at.ctx, await runAudit(at.ctx), 'test')).toBe(1);
  await told();
  expect(await openBreakers(at.ctx.db)).toEqual([]);
  outgoing().resolve(hash, true);
  expect((await told()).map((one) => one.slice(0, 4))).toEqual(['LN-5', 'LN-7']);
  expect(await code(bookOwnPayment(at.ctx, hash))).toBe('not_resolvable');
  expect(await bookUnasked(at.ctx, loss)).toBe(1_002n);
  expect(await told()).toEqual([]);
});

test("however much it is, and whatever is the operator's, who can take as much as before for what is his", async () => {
  expect(await told()).toEqual([]);
  const { request, hash } = invoice('hold');
  const { id } = await at.request(request, AMOUNT);
  await at.look();
  outgoing().resolve(hash, false);
  await looks(2);
  expect(await status(id)).toBe('failed');
  outgoing().send(request, 0n, 10_000n);
  await told();
  // the operator has 50 BTC there
  await at.admin.query('update lightning_sent set amount_msat = 6000000000000 where payment_hash = $1', [hash]);
  await at.admin.query('update payouts set amount = 6000000000 where id = $1', [id]);
  expect(await claimUnderWay(at.ctx, hash)).toBe(6_000_000_000n);
  const his = invoice('hold');
  outgoing().send(his.request, 0n, 10_000n);
  await at.comparedPayments();
  expect(await claimUnderWay(at.ctx, his.hash)).toBe(1_000n);
});
