// What is wrong with the nodes reaches the operator's log: once when it begins, again when it changes, not with every pass.
import { expect, test, vi } from 'vitest';
import type { Context } from '../../src/flow/context.ts';
import { createAlarm, listed } from '../../src/worker/alarm.ts';
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

const SLOW = ['down: node:2: no answer yet', 'failed: node:2: no answer within 2 s'];

/** What is logged of passes that end so, one after the other. */
async function loggedOf(...changes: readonly Partial<PassResult>[]): Promise<readonly string[]> {
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
  for (const change of changes) {
    result = { ...well, ...change };
    await job?.run();
  }
  return alarms;
}

test('a problem is logged when it begins, changes or comes again; heights that change are no news', async () => {
  const alarms = await loggedOf(
    {},
    ...[5, 6].map((height) => ({ state: 'syncing' as const, reason: `node:1: ${height} of 900 blocks` })),
    { state: 'down', reason: 'node:1: ECONNREFUSED' },
    {},
    { alarms: ['the nodes contradict each other: at height 7 …'] },
    { alarms: ['the nodes contradict each other: at height 8 …'] },
    {},
    { state: 'down', reason: 'node:1: ECONNREFUSED' },
  );
  expect(alarms).toEqual([
    'chain BTC: the node is syncing: node:1: 5 of 900 blocks',
    'chain BTC: the node is down: node:1: ECONNREFUSED',
    'chain BTC: the nodes contradict each other: at height 7 …',
    'chain BTC: the node is down: node:1: ECONNREFUSED',
  ]);
});

test('problems that change places while one of them lasts are logged once each', async () => {
  const passes = Array.from({ length: 20 }, (_, at) => ({ alarms: [SLOW[at % 2] as string] }));
  expect(await loggedOf({}, ...passes)).toEqual(SLOW.map((one) => `chain BTC: ${one}`));
  expect(await loggedOf(...passes, {}, ...passes)).toHaveLength(4);
});

test('that another node fails is logged, though only the numbers in its address differ', async () => {
  const fails = (node: string): Partial<PassResult> => ({ state: 'down', reason: `${node}: ECONNREFUSED` });
  const nodes = ['10.0.0.1:8545', '10.0.0.2:8545', '10.0.0.2:8546', 'eth:8545', 'eth:8546'];
  expect(await loggedOf(...nodes.map(fails), ...nodes.map(fails))).toEqual(
    nodes.map((node) => `chain BTC: the node is down: ${node}: ECONNREFUSED`),
  );
});

test('a problem that lasts is logged every ten minutes', () => {
  const now = vi.spyOn(performance, 'now');
  const told: number[] = [];
  let minute = 0;
  try {
    const alarm = createAlarm('chain BTC', () => told.push(minute));
    for (; minute <= 25; minute++) {
      now.mockReturnValue(minute * 60_000);
      alarm('the node is down');
    }
    expect(told).toEqual([0, 11, 22]);
  } finally {
    now.mockRestore();
  }
});

test('of very many things a line names the first, and how many more there are', () => {
  const traces = Array.from({ length: 8_000 }, (_, at) => `09100001${String(at).padStart(7, '0')}`);
  expect(listed(traces.slice(0, 2), '; ')).toBe('091000010000000; 091000010000001');
  expect(listed(traces, ', ')).toMatch(/^091000010000000, .*091000010000009, and 7990 more$/);
});
