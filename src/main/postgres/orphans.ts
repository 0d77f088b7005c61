// The children of a PostgreSQL server that was killed: they end by themselves, and we wait for them. One that does not (it was stopped, or
// waits for a lock of another one that was killed) is ended: without their server they serve nobody, and recovery undoes what they had
// begun.
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { workersIn, worksIn } from '../process/identity.ts';
import { StartRefused } from '../process/start-refused.ts';
import type { ClusterPaths } from './cluster-paths.ts';

/** Children of a server that was killed notice it within a second, unless they cannot. */
const ORPHANS_WITHIN_MS = 3_000;

/**
 * Waits until no process uses the folder of a server that is gone.
 * @param options.until by `performance.now()`: refuses after that
 * @param options.isServed whether a server runs there again: then there is no need to wait
 */
export async function endOfOrphans(
  paths: ClusterPaths,
  { until, isServed }: { readonly until: number; readonly isServed: () => boolean },
): Promise<void> {
  const patience = performance.now() + ORPHANS_WITHIN_MS;
  for (;;) {
    const left = workersIn(paths.folder);
    if (left.length === 0 || isServed()) return;
    if (performance.now() > patience) for (const pid of left) if (isOrphan(pid, paths)) endNow(pid);
    if (performance.now() > until) {
      throw new StartRefused(
        `PostgreSQL in ${paths.folder} cannot start: process ${left.join(', ')} of an earlier server does not end`,
      );
    }
    await delay(10);
  }
}

/** Whether this is a child of a server (its title is `postgres: …`) whose server is gone. Linux only, as `workersIn`. */
function isOrphan(pid: number, { folder }: ClusterPaths): boolean {
  try {
    if (!worksIn(pid, folder) || !readFileSync(`/proc/${pid}/cmdline`, 'latin1').startsWith('postgres: ')) return false;
    const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return parent !== undefined && !worksIn(Number(parent), folder);
  } catch {
    return false;
  }
}

function endNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended by itself
  }
}
