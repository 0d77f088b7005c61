// The environments that `npm start` runs in: a given database, an ordinary user, a folder that only root may enter.
import { chmodSync, existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { freshDatabase } from '../support/postgres.ts';
import { dataFolderFor, livingProcesses, type ServiceOptions, startService } from '../support/service.ts';

const asRoot = process.getuid?.() === 0;
const TIMEOUT = 60_000;
// any number that is not root's: it needs no entry in the list of users
const ORDINARY = { uid: 65_534, gid: 65_534 };

async function startsAndStops(options: ServiceOptions): Promise<void> {
  const service = startService(options);
  const base = await service.ready;
  const answer = await fetch(`${base}/auth`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'demo', password: 'demo-demo-demo' }),
  });
  expect(answer.status).toBe(200);
  expect(await service.stop()).toBe(0);
  expect(livingProcesses(options.dataFolder)).toEqual([]);
}

test('DATABASE_URL replaces the embedded database', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const base = await freshDatabase();
  await startsAndStops({ dataFolder: folder, environment: { DATABASE_URL: base.url } });
  expect(existsSync(join(folder, 'postgres'))).toBe(false);
  const { rows } = await base.db.query<{ username: string }>({ text: 'select username from users' });
  expect(rows).toEqual([{ username: 'demo' }]);
  await base.drop();
  remove();
});

test.runIf(asRoot)('an ordinary user can start it', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor(ORDINARY);
  await startsAndStops({ dataFolder: folder, user: ORDINARY });
  remove();
});

test.runIf(asRoot)(
  'in a folder that only root may enter it starts, stops, and starts again on the same data',
  { timeout: TIMEOUT },
  async () => {
    const { folder, remove } = dataFolderFor();
    chmodSync(dirname(folder), 0o700);
    await startsAndStops({ dataFolder: folder });
    expect(existsSync(join(folder, 'postgres-elsewhere'))).toBe(true);
    await startsAndStops({ dataFolder: folder });
    remove();
  },
);
