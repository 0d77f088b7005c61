// Payouts against what was signed and what is held for them: whoever moves their money looks at this first, for a row can be written by anybody
// who has the database's password.
import { createPublicKey, verify } from 'node:crypto';
import { plus } from '../../core/money.ts';
import { intentOf, type PayoutIntent, type SignedPayout, signedForms } from '../../core/payouts/intent.ts';
import { openedOrNull } from '../../core/sealed-text.ts';
import type { HoldFacts } from '../../store/payouts/signed-rows.ts';
import type { Context } from '../context.ts';

/** What to do about a payout that nobody vouches for. */
export const UNTRUSTED =
  'is of an API that is not trusted (bursar keys trust-intent), or needs an approval that one of them has signed (bursar payout approve)';

/** Null for what was sealed with another key, for another payout, or was changed. */
export function plainDestination(ctx: Context, { id, destination }: SignedPayout): string | null {
  return openedOrNull(ctx.ports.sealing, destination, id);
}

/** What must have been signed for a payout; null when its destination cannot be read. */
export function readIntent(ctx: Context, payout: SignedPayout): PayoutIntent | null {
  const destination = plainDestination(ctx, payout);
  return destination === null ? null : intentOf(payout, { network: ctx.network, destination });
}

/** Whether the key that a row names has signed the row (Ed25519, RFC 8032); it says nothing of whose key that is. */
export function isAsSigned(ctx: Context, payout: SignedPayout): boolean {
  const intent = readIntent(ctx, payout);
  const { intentKey, intent: signature } = payout;
  if (intent === null || !/^[0-9a-f]{64}$/.test(intentKey) || signature.length !== 64) return false;
  try {
    const x = Buffer.from(intentKey, 'hex').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return signedForms(intent).some((bytes) => verify(null, bytes, key, signature));
  } catch {
    return false;
  }
}

/** Why the ledger does not hold a payout's amount and highest fee; null when it does. */
export function whyUnheld({ id, held, amount, feeMax, isHoldEnded }: SignedPayout & HoldFacts): string | null {
  if (held !== plus(amount, feeMax)) return `payout ${id} has no hold of its amount and fee`;
  return isHoldEnded ? `the hold of payout ${id} was released or paid out` : null;
}
