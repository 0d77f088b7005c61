// Whether the API may be called, how each node is, and what a red audit has stopped, for /readyz.
import { type Breaker, openBreakers } from '../store/breakers.ts';
import { type ChainStatus, readChainStatus } from '../store/node-conditions.ts';
import type { Context } from './context.ts';

export type Readiness = { readonly chains: readonly ChainStatus[]; readonly breakers: readonly Breaker[] };

/**
 * The condition of every chain that a watcher has looked at, and the open breakers. Throws when the database cannot be reached or is not
 * migrated: then nothing may be called. A node that is down, or a breaker that is open, leaves the API ready.
 */
export async function readReadiness(ctx: Context): Promise<Readiness> {
  const [chains, breakers] = await Promise.all([readChainStatus(ctx.db), openBreakers(ctx.db)]);
  return { chains, breakers };
}
