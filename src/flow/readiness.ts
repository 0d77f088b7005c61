// Whether the API may be called, and how each node is, for /readyz.
import { type ChainStatus, readChainStatus } from '../store/node-conditions.ts';
import type { Context } from './context.ts';

/**
 * The condition of every chain that a watcher has looked at. Throws when the database cannot be reached or is not migrated: then nothing may
 * be called. A node that is down leaves the API ready.
 */
export async function readReadiness(ctx: Context): Promise<readonly ChainStatus[]> {
  return await readChainStatus(ctx.db);
}
