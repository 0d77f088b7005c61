// Requests to a test's signer, and what a refusal must look like.
import { expect } from 'vitest';
import type { TransactionToSign } from '../../src/core/signer-wire.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { requestFor, type TestSigner, type Wanted, WHOLE } from './setup.ts';

export function asking(at: () => TestSigner, signing: () => Signing) {
  return {
    /** A batch with one payout, and a request with an input that suffices. */
    async ready(given: Partial<Wanted> = {}): Promise<{ payout: Wanted; request: TransactionToSign }> {
      const payout = await at().payout({ batchId: await at().batch(), ...given });
      return { payout, request: requestFor([payout], [at().input(WHOLE)]) };
    },
    /** Expects a refusal by this rule's name, after which nothing more is in the journal. */
    async refused(request: TransactionToSign, rule: string, about: RegExp): Promise<void> {
      const before = (await signing().signed(0, null)).transactions.length;
      await expect(signing().sign(request)).rejects.toMatchObject({
        name: 'SigningRefused',
        rule,
        message: expect.stringMatching(new RegExp(`^rule ${rule} \\(.*${about.source}`, 's')),
      });
      expect((await signing().signed(0, null)).transactions).toHaveLength(before);
    },
  };
}
