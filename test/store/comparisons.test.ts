// What was compared counts for the database that it was compared with: not for a copy that was started since, nor for a standby that has taken over.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { clusterUrl, makeCluster, startCluster, stopCluster } from '../../src/main/postgres/cluster.ts';
import { clusterPaths } from '../../src/main/postgres/cluster-paths.ts';
import { isComparedSince, notComparedSince, saveChecked } from '../../src/store/payouts/comparisons.ts';
import { connect, type Database } from '../../src/store/postgres/connect.ts';
import { migrate } from '../../src/store/postgres/migrate.ts';
import { ensureDatabase } from '../../src/store/postgres/server.ts';
import { copyDatabase, freshDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';

const NAME = 'bursar';
const clusters: { readonly data: string; readonly paths: ReturnType<typeof clusterPaths> }[] = [];
function newCluster() {
  const data = mkdtempSync(join(tmpdir(), 'bursar-standby-'));
  chmodSync(data, 0o711);
  const cluster = { data, paths: clusterPaths(data), durable: false, logFile: join(data, 'postgres.log') };
  clusters.push(cluster);
  return cluster;
}
const open = (paths: ReturnType<typeof clusterPaths>, role: string | null = 'bursar_app'): Database =>
  connect({ url: clusterUrl(paths, NAME), role, maxConnections: 1, applicationName: 'test' });
afterEach(async () => {
  for (const { paths, data } of clusters.splice(0)) {
    await stopCluster(paths, 3_000);
    rmSync(data, { recursive: true, force: true });
    if (!paths.folder.startsWith(data)) rmSync(paths.folder, { recursive: true, force: true });
  }
});

test('a dump that is restored into a server which was not started again must be compared again', async () => {
  const { db, url, drop } = await freshDatabase();
  await saveChecked(db, 'BTC', 7);
  await saveChecked(db, 'USD', 0);
  expect(await isComparedSince(db, 'USD')).toBe(true);
  const copy = await copyDatabase(url);
  expect([...(await notComparedSince(copy.db))].sort(), 'another database').toEqual(['BTC', 'USD']);
  await copy.drop();
  // as pg_restore does it
  await db.transaction(async (sql) => {
    const { rows } = await sql.query({ text: 'delete from comparisons returning *' });
    await sql.query({
      text: 'insert into comparisons select * from jsonb_populate_recordset(null::comparisons, $1)',
      values: [JSON.stringify(rows)],
    });
  });
  expect([...(await notComparedSince(db))].sort(), 'the same rows, written anew').toEqual(['BTC', 'USD']);
  await saveChecked(db, 'USD', 0);
  expect([...(await notComparedSince(db))]).toEqual(['BTC']);
  await drop();
});

test('a standby that takes over after running for long must be compared again', { timeout: 120_000 }, async () => {
  const [first, second] = [newCluster(), newCluster()];
  await makeCluster(first);
  await startCluster(first);
  await ensureDatabase(clusterUrl(first.paths, 'postgres'), NAME);
  await migrate({ url: clusterUrl(first.paths, NAME) });
  const before = open(first.paths);
  await saveChecked(before, 'BTC', 7);
  await saveChecked(before, 'USD', 0);
  expect([await isComparedSince(before, 'USD'), [...(await notComparedSince(before))]]).toEqual([true, []]);
  // as the standby gets it while it runs: after its own start
  await before.query({
    text: `update comparisons set checked_at = now() + interval '1 hour', timeline = regexp_replace(timeline, '[0-9]+$', pg_current_xact_id()::text)`,
  });
  expect(await isComparedSince(before, 'USD')).toBe(true);
  await before.close();
  await stopCluster(first.paths, 3_000);
  execFileSync('cp', ['-a', first.paths.folder, second.paths.folder]);
  execFileSync('touch', [join(second.paths.folder, 'standby.signal')]);
  execFileSync('chown', ['--reference', join(second.paths.folder, 'PG_VERSION'), join(second.paths.folder, 'standby.signal')]);
  await startCluster(second);
  const admin = open(second.paths, null);
  await admin.query({ text: 'select pg_promote()' });
  await eventually('the standby has taken over', async () => {
    const { rows } = await admin.query<{ waits: boolean }>({ text: 'select pg_is_in_recovery() as waits' });
    return rows[0]?.waits === false ? true : null;
  });
  await admin.close();
  const after = open(second.paths);
  expect(await isComparedSince(after, 'USD')).toBe(false);
  expect([...(await notComparedSince(after))].sort()).toEqual(['BTC', 'USD']);
  await saveChecked(after, 'USD', 0);
  expect(await isComparedSince(after, 'USD')).toBe(true);
  expect([...(await notComparedSince(after))]).toEqual(['BTC']);
  await after.close();
});
