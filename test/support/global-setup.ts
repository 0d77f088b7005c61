// Before the first test: one PostgreSQL for the whole run (not durable, in a folder of its own, in memory where there is room), with one migrated
// database that freshDatabase() clones. Vitest calls it also when a file is run alone.
import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { clusterUrl, makeCluster, startCluster, stopCluster } from '../../src/main/postgres/cluster.ts';
import { clusterPaths } from '../../src/main/postgres/cluster-paths.ts';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { ensureDatabase } from '../../src/store/postgres/server.ts';
import { TEMPLATE } from './names.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the test cluster's database `postgres`. */
    postgresUrl: string;
  }
}

const MEMORY = '/dev/shm';
/** Many times what all databases of a run have at once. */
const ROOM_BYTES = 4 * 1024 ** 3;

/** Thousands of databases are made and dropped, each of 300 files: in memory that takes two thirds of the CPU, and waits for no disk. */
function placeOfFiles(): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= ROOM_BYTES ? MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const data = mkdtempSync(join(placeOfFiles(), 'bursar-test-'));
  chmodSync(data, 0o711);
  const paths = clusterPaths(data);
  const options = { paths, durable: false, logFile: join(data, 'postgres.log') };
  async function remove(): Promise<void> {
    await stopCluster(paths, 3000);
    rmSync(data, { recursive: true, force: true });
    if (!paths.folder.startsWith(data)) rmSync(dirname(paths.folder), { recursive: true, force: true });
  }
  try {
    await makeCluster(options);
    await startCluster(options);
    await ensureDatabase(clusterUrl(paths, 'postgres'), TEMPLATE);
    await migrate({ url: clusterUrl(paths, TEMPLATE) });
  } catch (error) {
    await remove();
    throw error;
  }
  project.provide('postgresUrl', clusterUrl(paths, 'postgres'));
  return remove;
}
