// Whose payouts count, as the signer says: the worker asks it before it moves money that no signature of the signer moves.
import type { AskTrust } from '../../core/payouts/intent.ts';
import { type SignerClient, SignerTrouble } from '../../outside/signer-client.ts';
import { isTrusted } from '../../signer/intent-trust.ts';

/** Its answer is null while the signer does not say: it may be another user's, and its folder cannot be read. */
export function intentTrust(signer: SignerClient): AskTrust {
  return async () => {
    try {
      const { keys } = await signer.ask<'intent_keys'>({ op: 'intent_keys' });
      return (intent, keyId, signature) => isTrusted(keys, intent, keyId, signature);
    } catch (error) {
      if (!(error instanceof SignerTrouble)) throw error;
      return null;
    }
  };
}
