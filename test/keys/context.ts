// What addresses are made from, on a real database and the real derivation, for tests of keys and addresses.
import type { Network } from '../../src/core/currency.ts';
import type { AddressContext } from '../../src/flow/addresses/pool.ts';
import { systemRng } from '../../src/outside/rng.ts';
import { createAddressDerivers } from '../../src/outside/utxo/address-derivers.ts';
import type { Database } from '../../src/store/postgres/connect.ts';

export function keyContext(db: Database, network: Network, now: () => number = () => Date.now()): AddressContext {
  return { db, ports: { clock: { now }, rng: systemRng, addresses: createAddressDerivers(network) } };
}
