// The Lightning node that the signer's process may pay with: its macaroon is read here only.
import type { LightningPayer } from '../../core/lightning/payer.ts';
import { createLndPayer } from '../../outside/lightning/lnd-payer.ts';
import { readSignerSecrets } from '../config/read-config.ts';
import type { Config } from '../config/variables.ts';
import { macaroonOf, sandboxTarget, targetOf } from './lightning.ts';

/** Null where no node is configured, or no macaroon that may pay. Nothing is opened: whoever asks connects. */
export function lightningPayerOf({ network, dataFolder, lndUrl, lndCert }: Config): LightningPayer | null {
  if (network === 'sandbox') return createLndPayer(sandboxTarget(dataFolder, 'payMacaroon'));
  const { lndPayMacaroon } = readSignerSecrets();
  if (lndUrl === null || lndPayMacaroon === null) return null;
  return createLndPayer(targetOf(lndUrl, lndCert, lndPayMacaroon, PAY_MACAROON));
}

const PAY_MACAROON = 'BURSAR_LND_PAY_MACAROON';
/** The macaroon that may pay, in hex; null where none is set. For the signer's process, and the command that looks at what it permits. */
export function payMacaroon(): string | null {
  const { lndPayMacaroon } = readSignerSecrets();
  return lndPayMacaroon === null ? null : macaroonOf(lndPayMacaroon, PAY_MACAROON);
}
