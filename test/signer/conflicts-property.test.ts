// Whatever is asked, in whatever order, and whatever the database says meanwhile: all transactions that were signed for one payout conflict
// pairwise, so that at most one of them can ever be mined.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { SignedTransaction } from '../../src/core/signer-wire.ts';
import { readTransaction, type Transaction } from '../../src/sandbox/utxo/transaction.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { openTestSigner, requestFor, type TestSigner, type Wanted, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 300_000 });
let at: TestSigner;
beforeAll(async () => {
  at = await openTestSigner();
});
afterAll(() => at.close());

const PAYOUTS = 4;
const OUTPUTS = 4;
const BATCHES = 3;
/** One move of whoever controls worker and database: a request, or a change of what the database says. */
const move = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      what: fc.constant('sign' as const),
      batch: fc.nat(BATCHES - 1),
      // null: what an honest worker would ask for
      number: fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: fc.integer({ min: 1, max: 4 }) }),
      payouts: fc.oneof(
        { weight: 5, arbitrary: fc.constant(null) },
        { weight: 1, arbitrary: fc.uniqueArray(fc.nat(PAYOUTS - 1), { minLength: 1 }) },
      ),
      outputs: fc.uniqueArray(fc.nat(OUTPUTS - 1), { minLength: 1 }),
      fee: fc.bigInt({ min: 0n, max: 10_000n }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ what: fc.constant('move' as const), payout: fc.nat(PAYOUTS - 1), to: fc.nat(BATCHES - 1) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('state' as const),
      batch: fc.nat(BATCHES - 1),
      state: fc.constantFrom('signed', 'signed', 'dead'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ what: fc.constant('restart' as const) }) },
);

it('all transactions that were signed for one payout conflict pairwise, and pay it the same', async () => {
  let signatures = 0;
  let replacements = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(move, { minLength: 4, maxLength: 25 }), async (moves) => {
      let signing: Signing = await at.start();
      const batches = [await at.batch(), await at.batch(), await at.batch()];
      const payouts: Wanted[] = [];
      for (let n = 0; n < PAYOUTS; n++) payouts.push(await at.payout({ batchId: batches[n % 2] as string, merchantId: 3n }));
      const where = payouts.map((_, n) => n % 2);
      const outputs = Array.from({ length: OUTPUTS }, () => at.input(2n * WHOLE));
      const signed = new Map<number, SignedTransaction>();
      const counts = batches.map(() => 0);
      for (const one of moves) {
        if (one.what === 'restart') signing = await at.start();
        if (one.what === 'state')
          await at.owner.query('update outgoing_batches set state = $2 where id = $1', [batches[one.batch], one.state]);
        if (one.what === 'move') {
          where[one.payout] = one.to;
          await at.owner.query('update payouts set batch_id = $2 where id = $1', [payouts[one.payout]?.id, batches[one.to]]);
        }
        if (one.what !== 'sign') continue;
        const batchId = batches[one.batch] as string;
        const paid = (one.payouts ?? where.flatMap((of, n) => (of === one.batch ? [n] : []))).map((n) => ({
          ...(payouts[n] as Wanted),
          batchId,
        }));
        if (paid.length === 0) continue;
        const number = one.number ?? (counts[one.batch] ?? 0) + 1;
        const request = requestFor(
          paid,
          one.outputs.map((n) => outputs[n] as (typeof outputs)[number]),
          { number, fee: one.fee },
        );
        const outcome = await signing.sign(request).catch((error: { name: string }) => {
          expect(error.name).toBe('SigningRefused');
          return null;
        });
        if (outcome === null) continue;
        if (signed.has(outcome.sequence)) expect(outcome).toEqual(signed.get(outcome.sequence));
        else counts[one.batch] = number;
        signed.set(outcome.sequence, outcome);
      }
      signatures += signed.size;
      for (const payout of payouts) {
        const mine = [...signed.values()].filter((one) => one.request.outputs.some((output) => output.payoutId === payout.id));
        const made = mine.map((one) => readTransaction(one.raw) as Transaction);
        if (made.length > 1) replacements++;
        for (const [n, transaction] of made.entries()) {
          expect(
            transaction.outputs.some(
              (output) => output.script.toString('hex') === payout.script && output.minor === payout.amount,
            ),
          ).toBe(true);
          const spends = new Set(transaction.inputs.map((input) => `${input.txid}:${input.vout}`));
          for (const other of made.slice(n + 1))
            expect(other.inputs.some((input) => spends.has(`${input.txid}:${input.vout}`))).toBe(true);
        }
      }
    }),
    { numRuns: 50 },
  );
  // it was not all refused
  expect(signatures).toBeGreaterThan(50);
  expect(replacements).toBeGreaterThan(10);
});
