// A lease is not waited for, so a crash of PostgreSQL may take one back that a worker works under, and another worker gets the same epoch. The payment is made
// once all the same, and ends once. On the simulated node, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LIGHTNING_STEPS } from '../../src/worker/payouts/lightning/steps.ts';
import { AMOUNT, at, close, engine, invoice, looks, open, outgoing, status } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

/** As after a crash that came before the lease was on disk. */
const forgetLease = (id: string) =>
  at.admin.query(
    'update lightning_payments set lease_owner = null, lease_until = null, lease_epoch = lease_epoch - 1 where payout_id = $1',
    [id],
  );

test.each([...LIGHTNING_STEPS, null])('another worker has the same lease, and has died at %s', async (step) => {
  const to = invoice();
  const { id } = await at.request(to.request, AMOUNT);
  let epochs: unknown[] = [];
  await at.look({
    async authorize(asked) {
      await forgetLease(id);
      await at.look({}, step);
      epochs = [asked.leaseEpoch, String((await at.payment(id)).lease_epoch)];
      return at.paying.authorize(asked);
    },
  });
  expect(epochs[0]).toBe(epochs[1]);
  await looks(3);
  expect(await status(id)).toBe('completed');
  expect(outgoing().listed()).toHaveLength(1);
  expect(await engine.arrived(to.hash)).toBe(1_000);
  expect(await at.available()).toBe(500_000n - 1_002n);
  expect(await at.compared()).toEqual([]);
});

test('of one that the node fails, both workers give the amount back once', async () => {
  const to = invoice('fail');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look({
    async authorize(asked) {
      await forgetLease(id);
      await at.look();
      return at.paying.authorize(asked);
    },
  });
  await looks(3);
  expect(await status(id)).toBe('failed');
  expect(await at.available()).toBe(500_000n);
  expect(await at.compared()).toEqual([]);
});
