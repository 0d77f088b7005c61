// Two PostgreSQL servers with one history: the second holds what the first held at a moment, as a replica that was behind when it was promoted, or a machine
// that was set back to a snapshot. A relay leads to either.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ClusterOptions, clusterUrl, makeCluster, startCluster, stopCluster } from '../../src/main/postgres/cluster.ts';
import { clusterPaths } from '../../src/main/postgres/cluster-paths.ts';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { ensureDatabase } from '../../src/store/postgres/server.ts';
import { openRelay } from './relay.ts';

const NAME = 'bursar';
const GRACE_MS = 3_000;

function newCluster(): ClusterOptions & { readonly data: string } {
  const data = mkdtempSync(join(tmpdir(), 'bursar-test-'));
  chmodSync(data, 0o711);
  return { data, paths: clusterPaths(data), durable: false, logFile: join(data, 'postgres.log') };
}

/** @param prepare fills the database (its URL) before it is copied */
export async function openTwoServers(prepare: (url: string) => Promise<void>) {
  const [first, second] = [newCluster(), newCluster()];
  async function remove(): Promise<void> {
    for (const { paths, data } of [first, second]) {
      await stopCluster(paths, GRACE_MS);
      rmSync(data, { recursive: true, force: true });
      if (!paths.folder.startsWith(data)) rmSync(paths.folder, { recursive: true, force: true });
    }
  }
  try {
    await makeCluster(first);
    await startCluster(first);
    await ensureDatabase(clusterUrl(first.paths, 'postgres'), NAME);
    await migrate({ url: clusterUrl(first.paths, NAME) });
    await prepare(clusterUrl(first.paths, NAME));
    await stopCluster(first.paths, GRACE_MS);
    execFileSync('cp', ['-a', first.paths.folder, second.paths.folder]);
    await startCluster({ ...first, paths: clusterPaths(first.data) });
    await startCluster(second);
  } catch (error) {
    await remove();
    throw error;
  }
  const url = clusterUrl(first.paths, NAME);
  const relay = await openRelay(url);
  return {
    /** Through the relay. */
    url: relay.url,
    /** The first server itself. */
    firstUrl: url,
    /** Every session is cut. */
    cut: relay.cut,
    /** From now on the relay leads to the copy; every session is cut. */
    failOver: () => relay.moveTo(clusterUrl(second.paths, NAME)),
    async close() {
      relay.close();
      await remove();
    },
  };
}
