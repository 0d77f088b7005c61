// Currencies whose signatures do not cover the amounts of inputs: the signer reads them from the transactions that made the inputs.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { UTXO_CODES, utxoRow } from '../../src/core/currency.ts';
import type { TransactionToSign } from '../../src/core/signer-wire.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { isLegacy, openTestSigner, requestFor, type TestSigner, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
let at: TestSigner;
let signing: Signing;
beforeAll(async () => {
  at = await openTestSigner();
  signing = await at.start();
});
afterAll(() => at.close());

type Input = TransactionToSign['inputs'][number];
const output = (...given: Parameters<TestSigner['madeOutput']>) => at.madeOutput(...given);

describe.each(UTXO_CODES.filter(isLegacy))('%s, whose signatures do not cover amounts', (currency) => {
  async function request(change: (one: { input: Input; previous: string }) => { input: Input; previous: string }) {
    const payout = await at.payout({ batchId: await at.batch({ currency }), currency });
    const { input, previous } = change(output(currency, WHOLE, { chain: 0, index: 4 }));
    return requestFor([payout], [input], { previous: [previous] });
  }
  const rule = { name: 'SigningRefused', rule: 'amounts' };

  it('needs the transactions that made the inputs', async () => {
    const { previous: _, ...without } = await request((one) => one);
    await expect(signing.sign(without)).rejects.toMatchObject(rule);
    await expect(
      signing.sign(await request((one) => ({ ...one, previous: output(currency, WHOLE, { chain: 0, index: 4 }).previous }))),
    ).rejects.toMatchObject(rule);
    await expect(signing.sign(await request((one) => ({ ...one, previous: one.previous.slice(0, -2) })))).rejects.toMatchObject(
      rule,
    );
    await expect(signing.sign(await request((one) => ({ ...one, previous: 'ff'.repeat(60) })))).rejects.toMatchObject(rule);
  });

  it('refuses an input that is said to hold less, so that the rest would be a fee', async () => {
    const less = await request(({ input, previous }) => ({ input: { ...input, amount: (WHOLE / 2n).toString() }, previous }));
    await expect(signing.sign(less)).rejects.toMatchObject({
      ...rule,
      message: expect.stringContaining('another amount or script'),
    });
    const other = await request(({ input, previous }) => ({ input: { ...input, index: 5 }, previous }));
    await expect(signing.sign(other)).rejects.toMatchObject(rule);
    const output = await request(({ input, previous }) => ({ input: { ...input, vout: 2 }, previous }));
    await expect(signing.sign(output)).rejects.toMatchObject(rule);
  });

  it('pays at most the highest rate for the size of P2PKH', async () => {
    const payout = await at.payout({ batchId: await at.batch({ currency }), currency, amount: 9n * WHOLE, feeMax: 9n * WHOLE });
    const { input, previous } = output(currency, 10n * WHOLE, { chain: 0, index: 6 });
    // frame, input, two P2PKH outputs
    const most = (utxoRow(currency).utxo.feeRates.highest / 1_000n) * BigInt(11 + 149 + 34 + 34);
    const asked = (fee: bigint) => requestFor([payout], [input], { fee, previous: [previous] });
    await expect(signing.sign(asked(most + 1n))).rejects.toMatchObject({ name: 'SigningRefused', rule: 'fee' });
    await signing.sign(asked(most));
  });
});
