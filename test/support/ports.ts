// The real ports to the outside for tests that build a small service: all but the chains and the rate feeds, which each test provides.
import { createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
import type { Network } from '../../src/core/currency.ts';
import type { IntentKey } from '../../src/core/payouts/intent.ts';
import type { Clock, Ports } from '../../src/core/ports.ts';
import { createDestinations } from '../../src/outside/destinations.ts';
import { createTokens } from '../../src/outside/jwt.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { ANYWHERE, publicInternet } from '../../src/outside/outbound/policy.ts';
import { createPasswords } from '../../src/outside/password.ts';
import { systemRng } from '../../src/outside/rng.ts';
import { createRowSeals } from '../../src/outside/row-seals.ts';
import { unsealed } from '../../src/outside/sealing.ts';
import { createAddressDerivers } from '../../src/outside/utxo/address-derivers.ts';
import { CREDENTIAL_KEY } from '../cli/run.ts';

/** Seals the rows of a test's database; what it reports is dropped. */
export const SEALS = createRowSeals(
  () => Buffer.from(CREDENTIAL_KEY, 'hex'),
  () => undefined,
);

/** Signs every payout of this test file. */
export const INTENT_KEY: IntentKey = newIntentKey();

/** One that nobody trusts. */
export function newIntentKey(): IntentKey {
  const { privateKey } = generateKeyPairSync('ed25519');
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  const keyId = Buffer.from(x ?? '', 'base64url').toString('hex');
  return { sign: (bytes) => ({ keyId, signature: sign(null, bytes, privateKey) }) };
}

/** Without `reached` there are no nodes and no exchanges. */
export function portsFor(
  network: Network,
  clock: Clock,
  reached: Partial<Pick<Ports, 'chains' | 'lightning' | 'rateFeeds'>> = {},
): Ports {
  return {
    clock,
    rng: systemRng,
    passwords: createPasswords(),
    tokens: createTokens({ clock, audience: network }),
    seals: SEALS,
    chains: new Map(),
    lightning: null,
    rateFeeds: [],
    addresses: createAddressDerivers(network),
    destinations: createDestinations(network),
    intentKey: INTENT_KEY,
    sealing: unsealed,
    webhookSealing: unsealed,
    outbound: createOutbound(network === 'sandbox' ? ANYWHERE : publicInternet([443, 8443])),
    ...reached,
  };
}
