// What is wrong with the nodes reaches the operator's log: once when it begins, again when it changes, not with every pass.
import { expect, test } from 'vitest';
import type { Context } from '../../src/flow/context.ts';
import type { PassResult } from '../../src/worker/chain/pass-result.ts';
import type { ChainWatcher } from '../../src/worker/chain/watcher.ts';
import { workerJobs } from '../../src/worker/jobs.ts';

const well: PassResult = {
  role: 'watching',
  state: 'ready',
  reason: null,
  alarms: [],
  height: 7,
  blocksRead: 0,
  caughtUp: true,
  more: false,
  behind: false,
};

test('a problem is logged when it begins, changes or comes again; heights that change are no news', async () => {
  let result = well;
  const watcher: ChainWatcher = {
    pass: async () => result,
    firstSeen: () => null,
    expect: () => undefined,
    restMs: () => 0,
    onHint: () => undefined,
    close: async () => undefined,
  };
  const alarms: string[] = [];
  const jobs = workerJobs({ ports: { chains: new Map() } } as unknown as Context, new Map([['BTC', watcher]]), (job, error) =>
    alarms.push(`${job}: ${(error as Error).message}`),
  );
  const job = jobs.find((one) => one.name === 'chain BTC');
  async function pass(change: Partial<PassResult>): Promise<void> {
    result = { ...well, ...change };
    await job?.run();
  }
  await pass({});
  for (const height of [5, 6]) await pass({ state: 'syncing', reason: `node:1: ${height} of 900 blocks` });
  await pass({ state: 'down', reason: 'node:1: ECONNREFUSED' });
  await pass({});
  await pass({ alarms: ['the nodes contradict each other: at height 7 …'] });
  await pass({ alarms: ['the nodes contradict each other: at height 8 …'] });
  await pass({});
  await pass({ state: 'down', reason: 'node:1: ECONNREFUSED' });
  expect(alarms).toEqual([
    'chain BTC: the node is syncing: node:1: 5 of 900 blocks',
    'chain BTC: the node is down: node:1: ECONNREFUSED',
    'chain BTC: the nodes contradict each other: at height 7 …',
    'chain BTC: the node is down: node:1: ECONNREFUSED',
  ]);
});
