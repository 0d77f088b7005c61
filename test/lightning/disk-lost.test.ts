// A node whose disk was lost comes back with its key, and has forgotten every payment that it ever made. What it had listed before needs nobody's word; what
// it had not, and what was under way, waits for its operator. On the simulated node, put back from a copy of its beginning.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { acceptForgotten } from '../../src/flow/lightning/unasked-payments.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { AMOUNT, at, close, engine, invoice, looks, open, outgoing, toldAfterAMinute as red, status } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

async function paid(): Promise<{ readonly id: string; readonly hash: string }> {
  const { request, hash } = invoice();
  const { id } = await at.request(request, AMOUNT);
  await looks(2);
  expect(await status(id)).toBe('completed');
  return { id, hash };
}
const ofPayments = (told: readonly string[]): readonly string[] => told.filter((one) => one.startsWith('LN-5'));

test('only what it had not listed yet is asked of its operator, however many payments it has forgotten', async () => {
  const putBack = engine.backup();
  for (let n = 0; n < 3; n++) await paid();
  // one that is listed as under way, and paid afterwards, is not listed as paid
  const to = invoice('hold');
  const last = { id: (await at.request(to.request, AMOUNT)).id, hash: to.hash };
  await looks(2);
  expect(ofPayments(await red())).toEqual([]);
  outgoing().resolve(to.hash, true);
  await looks(2);
  expect(await status(last.id)).toBe('completed');
  await putBack();
  // the first finds its connections closed
  await looks(2);
  expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['LN-5']);
  expect(ofPayments(await red())).toEqual([expect.stringMatching(`^LN-5: ${last.id} was paid .* does not list ${last.hash}`)]);
  expect(await acceptForgotten(at.ctx, last.hash)).toBe(last.id);
  expect(ofPayments(await red())).toEqual([]);
});

test('a number that it gives again belongs to the new payment, and takes nothing from the old one', async () => {
  const putBack = engine.backup();
  const old = await paid();
  expect(ofPayments(await red())).toEqual([]);
  await putBack();
  await looks(2);
  await at.admin.query(`update breakers set cleared_at = now(), cleared_by = 'test' where cleared_at is null`);
  const again = await paid();
  const [first, second] = [await at.payment(old.id), await at.payment(again.id)];
  expect(first.payment_index).toBe(second.payment_index);
  expect(ofPayments(await red())).toEqual([]);
});
