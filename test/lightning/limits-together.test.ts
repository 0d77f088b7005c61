// The signer's limits are of what leaves on chains and over Lightning together, also when both are asked for at the same moment.
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createTurns } from '../../src/signer/turns.ts';
import { openTestSigner, requestFor, WHOLE } from '../signer/setup.ts';
import { AMOUNT, at, clock, close, invoice, looks, open, outgoing, status } from './funded-payouts.ts';

const LIMITS = { BTC: { payout: null, hour: WHOLE / 10n + 20_000n, day: null } };

test('a signature that is asked for while a payment is written down sees what that takes', async () => {
  const countedAlone = createTurns();
  const signer = await openTestSigner({
    limits: LIMITS,
    overLightning: { countedAlone, leftBesides: async () => at.leaving() },
  });
  const signed: Promise<string>[] = [];
  const batchId = await signer.batch();
  const request = requestFor([await signer.payout({ batchId })], [signer.input(WHOLE)]);
  const signing = await signer.start();
  await open(LIMITS, undefined, {
    onChains: { countedAlone, leftBesides: async () => signer.leaving() },
    journalled: (journal) => ({
      ...journal,
      async append(payment) {
        const outcome = signing.sign(request).then(
          () => 'signed',
          (error: Error) => error.message,
        );
        signed.push(outcome);
        // the disk takes its time
        await Promise.race([outcome, delay(500)]);
        return journal.append(payment);
      },
    }),
  });
  signer.clock.nowMs = clock.nowMs;
  const { id } = await at.request(invoice('pay', 40_000_000n).request, '0.0004');
  await looks(3);
  expect(await status(id)).toBe('completed');
  expect(signed).toHaveLength(1);
  expect(await signed[0]).toContain('would leave in an hour');
  expect(outgoing().listed()).toHaveLength(1);
  await close();
  await signer.close();
});

test('a payment that is asked for while a signature is written down sees what that takes', async () => {
  const countedAlone = createTurns();
  const signer = await openTestSigner({
    limits: LIMITS,
    overLightning: { countedAlone, leftBesides: async () => at.leaving() },
  });
  await open(LIMITS, undefined, { onChains: { countedAlone, leftBesides: async () => signer.leaving() } });
  signer.clock.nowMs = clock.nowMs;
  const batchId = await signer.batch();
  const request = requestFor([await signer.payout({ batchId, amount: WHOLE / 10n + 19_500n })], [signer.input(WHOLE)], {
    fee: 500n,
  });
  const signing = await signer.start();
  const { id } = await at.request(invoice().request, AMOUNT);
  clock.nowMs += 16_000;
  const [signed] = await Promise.all([
    signing.sign(request).then(
      () => 1,
      () => 0,
    ),
    at.look(),
  ]);
  const paid = outgoing().listed().length;
  expect(signed + paid).toBe(1);
  expect((await status(id)) === 'completed').toBe(paid === 1);
  await close();
  await signer.close();
});
