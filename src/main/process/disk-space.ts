// Whether there is space on the disk of the data folder. A full disk ends processes that are well: they are started again until there is
// space, with pauses that grow, however often they die.
import { existsSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type DiskSpace = {
  /** Whether too little is left for PostgreSQL and the others to go on. */
  isScarce(): boolean;
};

/** PostgreSQL cannot start without a few files of 16 MB for its log. */
const LEAST_BYTES = 64 * 2 ** 20;
const PROBE_BYTES = 64 * 2 ** 10;
const LONGEST_PAUSE_MS = 10_000;

/** How long to wait before the next try, after this many that failed for want of space. */
export const pauseMs = (tries: number): number => Math.min(LONGEST_PAUSE_MS, 1_000 * 2 ** Math.min(tries, 10));

/** @param say gets a line when space has become scarce, and one when it no longer is */
export function openDiskSpace(dataFolder: string, say: (line: string) => void): DiskSpace {
  let wasScarce = false;
  return {
    isScarce() {
      const scarce = foldersOf(dataFolder).find(isScarce);
      if (scarce !== undefined && !wasScarce)
        say(`problem: the disk of ${scarce} is full; what ends because of that is started again until there is space`);
      if (scarce === undefined && wasScarce) say(`there is space in ${dataFolder} again`);
      wasScarce = scarce !== undefined;
      return wasScarce;
    },
  };
}

/** The data folder, and those of PostgreSQL, each of which may lie on a disk of its own (postgres/cluster-paths.ts; a mount). */
function foldersOf(dataFolder: string): readonly string[] {
  const marker = join(dataFolder, 'postgres-elsewhere');
  const cluster = existsSync(marker) ? readFileSync(marker, 'utf8').trim() : join(dataFolder, 'postgres');
  return [dataFolder, cluster, join(cluster, 'pg_wal')].filter((folder) => existsSync(folder));
}

function isScarce(folder: string): boolean {
  const { bavail, bsize } = statfsSync(folder);
  if (bavail * bsize < LEAST_BYTES) return true;
  // a quota shows when something is written
  const probe = join(folder, `space-${process.pid}`);
  try {
    writeFileSync(probe, Buffer.alloc(PROBE_BYTES));
    return false;
  } catch (error) {
    return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
  } finally {
    rmSync(probe, { force: true });
  }
}
