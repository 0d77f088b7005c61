// A payment of the operator's own may be under way for days (a swap, a hold invoice): once he has said that it is his it stops nothing meanwhile.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../src/flow/audit.ts';
import { bookMissing, bookOwnPayment, bookUnasked, claimUnderWay } from '../../src/flow/lightning/unasked-payments.ts';
import { unaskedHashes } from '../../src/store/lightning/sent-payments.ts';
import { AMOUNT, at, close, code, invoice, looks, open, outgoing, status, toldAfterAMinute as told } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const operators = () => at.balance('asset:ln:operator:BTC');
function holds(): string {
  const { request, hash } = invoice('hold');
  outgoing().send(request, 0n, 10_000n);
  return hash;
}

test('it stops payouts until he has said so, and again once it has ended, until it is booked', async () => {
  expect(await told()).toEqual([]);
  const before = await operators();
  const hash = holds();
  expect(await told()).toEqual([expect.stringMatching(/^LN-5: /)]);
  expect(await unaskedHashes(at.ctx.db)).toEqual([hash]);
  expect(await claimUnderWay(at.ctx, hash)).toBe(1_000n);
  expect(await claimUnderWay(at.ctx, hash)).toBe(1_000n);
  expect(await told()).toEqual([]);
  // nor does it after a start of the database
  expect(await unaskedHashes(at.ctx.db)).toEqual([]);
  expect(await clearAfterAudit(at.ctx, await runAudit(at.ctx), 'test')).toBe(1);
  const { id } = await at.request(invoice().request, AMOUNT);
  await looks(3);
  expect(await status(id)).toBe('completed');
  expect(await code(bookOwnPayment(at.ctx, hash))).toBe('not_resolvable');
  expect(await code(bookUnasked(at.ctx, { paymentHash: hash, acceptsLoss: true }))).toBe('not_resolvable');
  expect(await operators()).toBe(before);
  outgoing().resolve(hash, true);
  expect((await told()).map((one) => one.slice(0, 4))).toEqual(['LN-5', 'LN-7']);
  const { rows } = await at.admin.query('select identity from lightning_nodes');
  expect(await code(bookMissing(at.ctx, rows[0].identity, 'own'))).toBe('not_resolvable');
  expect(await claimUnderWay(at.ctx, hash)).toBeNull();
  expect(await bookOwnPayment(at.ctx, hash)).toBe(1_002n);
  expect(await told()).toEqual([]);
  expect(before - (await operators())).toBe(1_002n);
});

test('one that fails is forgotten, and nothing is booked', async () => {
  expect(await told()).toEqual([]);
  const before = await operators();
  const hash = holds();
  await told();
  await claimUnderWay(at.ctx, hash);
  outgoing().resolve(hash, false);
  expect(await told()).toEqual([]);
  expect(await claimUnderWay(at.ctx, hash)).toBeNull();
  expect(await bookOwnPayment(at.ctx, hash)).toBeNull();
  expect(await operators()).toBe(before);
});

test('together they take no more than is his', async () => {
  expect(await told()).toEqual([]);
  const { rows } = await at.admin.query('select identity from lightning_nodes');
  const underWay = (index: number, hash: string, msat: bigint) =>
    at.admin.query(
      `insert into lightning_sent (node, payment_index, payment_hash, state, amount_msat, fee_msat, seen_at)
         values ($1, $2, $3, 'in_flight', $4, 0, now())`,
      [rows[0].identity, index, hash, msat],
    );
  const [first, second] = ['ab'.repeat(32), 'cd'.repeat(32)];
  const most = (await operators()) * 600n;
  await underWay(90, first, most);
  await underWay(91, second, most);
  expect(await code(claimUnderWay(at.ctx, first))).toBe('accepted');
  expect(await code(claimUnderWay(at.ctx, second))).toBe('not_resolvable');
});
