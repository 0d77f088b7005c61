// Before the first test: one PostgreSQL for the whole run (not durable, in a folder of its own), with one migrated database that
// freshDatabase() clones. Vitest calls it also when a file is run alone.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
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

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const data = mkdtempSync(join(tmpdir(), 'bursar-test-'));
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
