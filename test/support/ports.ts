// The real ports to the outside for tests that build a small service: all but the chains and the rate feeds, which each test provides.
import type { Network } from '../../src/core/currency.ts';
import type { Clock, Ports } from '../../src/core/ports.ts';
import { createDestinations } from '../../src/outside/destinations.ts';
import { createTokens } from '../../src/outside/jwt.ts';
import { createPasswords } from '../../src/outside/password.ts';
import { systemRng } from '../../src/outside/rng.ts';
import { createAddressDerivers } from '../../src/outside/utxo/address-derivers.ts';

/** Without `reached` there are no nodes and no exchanges. */
export function portsFor(network: Network, clock: Clock, reached: Partial<Pick<Ports, 'chains' | 'rateFeeds'>> = {}): Ports {
  return {
    clock,
    rng: systemRng,
    passwords: createPasswords(),
    tokens: createTokens({ clock, audience: network }),
    chains: new Map(),
    rateFeeds: [],
    addresses: createAddressDerivers(network),
    destinations: createDestinations(network),
    ...reached,
  };
}
