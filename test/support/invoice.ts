// BOLT11 invoices of somebody, signed with a key of their own: right in form and signature, and nobody can pay them.
import { createHash, randomBytes } from 'node:crypto';
import { paymentRequest } from '../../src/sandbox/lightning/bolt11.ts';

/** @param of.sat null: the payer chooses; `atMs`: when it was made (default: now); `hash`: of a payment that is somebody else's */
export function invoice(
  of: { readonly sat?: number | null; readonly expirySeconds?: number; readonly atMs?: number; readonly hash?: string } = {},
): string {
  const { sat = null, expirySeconds = 3_600, atMs = Date.now(), hash } = of;
  return paymentRequest({
    key: createHash('sha256').update('somebody').digest(),
    amountMsat: BigInt(sat ?? 0) * 1_000n,
    atMs,
    paymentHash: hash === undefined ? randomBytes(32) : Buffer.from(hash, 'hex'),
    paymentSecret: randomBytes(32),
    description: 'coffee',
    expirySeconds,
  });
}
