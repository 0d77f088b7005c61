// Rule 8's last look-up as a job: all transactions of a chain in one reading, once the judge has decided all that may need it; it spares
// the node afterwards, and delays nobody by that.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ChainPort } from '../../src/core/ports.ts';
import type { ChainWatcher } from '../../src/worker/chain/watcher.ts';
import { workerJobs } from '../../src/worker/jobs.ts';
import type { Job } from '../../src/worker/loop.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const DAY_MS = 86_400_000;
let service: ServiceOnDatabase;
let readings: number;
let mempoolTakesMs: number;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  readings = 0;
  mempoolTakesMs = 0;
});
afterEach(() => service.drop());

/** The jobs of a worker whose node holds the blocks that the service has recorded, all empty. */
function jobs(): (name: string) => Job {
  const at = async (height: number): Promise<{ hash: string; previous: string; time: Date } | undefined> =>
    (await service.admin.query(`select hash, previous, time from blocks where currency = 'BTC' and height = $1`, [height]))
      .rows[0];
  const port = {
    currency: 'BTC',
    condition: async () => ({ state: 'ready', height: 10_000, hash: '', tipTimeMs: 0, peers: 1 }),
    hashAt: async (height: number) => (await at(height))?.hash ?? null,
    readBlock: async (hash: string) => ({ hash, previousHash: '', timeMs: 0, transactionCount: 1, touched: [] }),
    async mempool() {
      readings++;
      await new Promise((resolve) => setTimeout(resolve, mempoolTakesMs));
      return [];
    },
    readMempoolTransactions: async () => ({ missing: [], touched: [] }),
  } as unknown as ChainPort;
  const ctx = { ...service.ctx, ports: { ...service.ctx.ports, chains: new Map([['BTC' as const, port]]) } };
  const watcher = { onHint: () => undefined } as unknown as ChainWatcher;
  const all = workerJobs(ctx, new Map([['BTC', watcher]]), (job, error) => {
    throw new Error(`${job}: ${String(error)}`);
  });
  return (name) => all.find((one) => one.name === name) as Job;
}

async function statuses(ids: readonly string[]): Promise<string[]> {
  return Promise.all(ids.map(async (id) => (await service.path(id)).at(-1) ?? ''));
}

test('nothing is looked up while the judge has not come to all that is due; then all of it in one reading', async () => {
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push((await service.create()).transactionId);
  await service.wait(DAY_MS + 3_600_000);
  const job = jobs();
  await job('judge').run();
  await service.admin.query(
    `update transactions set due_at = '-infinity', lookup_wanted = false, status = 'started' where id = $1`,
    [ids[2]],
  );
  await job('look-up BTC').run(true);
  expect(readings).toBe(0);
  while (await job('judge').run());
  await job('look-up BTC').run(true);
  expect(readings).toBe(1);
  while (await job('judge').run());
  expect(await statuses(ids)).toEqual(Array(3).fill('timedout_checked'));
});

test('a reading that took long rests, unless somebody waits for the next one', async () => {
  const job = jobs();
  mempoolTakesMs = 1_050;
  for (const hurried of [false, false, true]) {
    const { transactionId } = await service.create();
    await service.wait(DAY_MS + 3_600_000);
    while (await job('judge').run());
    await job('look-up BTC').run(hurried);
    while (await job('judge').run());
    if (readings === 1) mempoolTakesMs = 0;
    else expect(await statuses([transactionId])).toEqual([hurried ? 'timedout_checked' : 'timedout']);
  }
  expect(readings).toBe(2);
});
