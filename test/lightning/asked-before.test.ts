// What a database that may have been put back does not know: which payments it asks the signer and the node about, and requests that may have been made after
// the copy. On the simulated node, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { STILL_ARRIVES_MS } from '../../src/flow/lightning/restored-payments.ts';
import { checkPayoutStatus } from '../../src/flow/payouts/reads.ts';
import { notSent } from '../../src/store/lightning/asked-before.ts';
import { copyDatabase } from '../support/postgres.ts';
import { AMOUNT, at, close, invoice, looks, MINUTE, open, outgoing, pass, status } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const request = async (to: { readonly request: string }): Promise<string> => (await at.request(to.request, AMOUNT)).id;

test('what was never sent is asked about, also where it has failed; what was sent is known, however it has ended', async () => {
  const [paid, failed, held] = [await request(invoice()), await request(invoice('fail')), await request(invoice('hold'))];
  for (const _look of [1, 2]) await looks(1);
  const expired = await request(outgoing().invoice({ amountMsat: 1_000_000n, expirySeconds: 70, behaviour: 'pay' }));
  pass(2 * MINUTE);
  await at.look();
  const waits = await request(invoice());
  const ids = [paid, failed, held, expired, waits];
  expect(await Promise.all(ids.map(status))).toEqual(['completed', 'failed', 'processing', 'failed', 'processing']);
  expect(await notSent(at.ctx.db, ids)).toEqual(new Set([expired, waits]));
});

test('one that was sent does not fail while a request that is made by another copy of the database may still arrive', async () => {
  const to = invoice('hold');
  const id = await request(to);
  await at.look();
  const copy = await copyDatabase(at.url);
  const restored = await at.onCopy(copy);
  try {
    await copy.db.query({ text: `update comparisons set timeline = 'another'` });
    const there = async () => (await checkPayoutStatus(restored.ctx, { merchantId: at.merchantId, payoutId: id })).status;
    outgoing().resolve(to.hash, false);
    for (let passed = 0; passed < STILL_ARRIVES_MS; passed += 20_000) {
      pass(20_000);
      await restored.look();
      expect(await there()).toBe('processing');
    }
    pass(2 * MINUTE);
    await restored.look();
    expect(await there()).toBe('failed');
  } finally {
    await restored.close();
    await copy.drop();
  }
});
