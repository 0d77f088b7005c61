// What the whole service costs while nothing happens: CPU of every process of the group, and commits, without blocks or calls, and with the
// sandbox's usual blocks. `node bench/rest.ts [--quick]` prints its figures.
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { type Instance, startInstance } from './instance.ts';
import { commandLine, cpuMicros, postgresCpuMicros, treeOf } from './processes.ts';
import { type Figure, figureTable } from './report.ts';

/** CPU in microseconds by process, commits and flushes of the database's log so far. */
type Spent = { readonly cpu: ReadonlyMap<string, number>; readonly commits: number; readonly flushes: number };
export type Rest = {
  /** Milliseconds of CPU a second, by process. */
  readonly cpu: ReadonlyMap<string, number>;
  readonly commits: number;
  readonly flushes: number;
};

const POSTGRES = 'PostgreSQL';
/** By then the first blocks have been read a second time; and PostgreSQL publishes the counters of sessions idle for ten seconds. */
const FIGURES_AFTER_MS = 75_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The processes of an instance by what they are. */
function processesOf({ groupPid, postmasterPid }: Instance): Map<string, number[]> {
  const database = new Set(treeOf(postmasterPid));
  const found = new Map<string, number[]>([[POSTGRES, [...database]]]);
  for (const pid of treeOf(groupPid).filter((one) => !database.has(one))) {
    const program = commandLine(pid).find((word) => word.endsWith('.ts'));
    const name = program?.replace(/^.*\/|\.ts$/g, '') ?? 'other';
    found.set(name, [...(found.get(name) ?? []), pid]);
  }
  return found;
}

async function spent(instance: Instance, client: pg.Client): Promise<Spent> {
  const { rows } = await client.query<{ commits: string; flushes: string }>(
    `select (select sum(xact_commit + xact_rollback) from pg_stat_database) as commits,
            (select sum(fsyncs) from pg_stat_io where object = 'wal') as flushes`,
  );
  const cpu = new Map<string, number>();
  for (const [name, pids] of processesOf(instance)) {
    const own = pids.reduce((sum, pid) => sum + cpuMicros(pid), 0);
    cpu.set(name, name === POSTGRES ? postgresCpuMicros(instance.postmasterPid) : own);
  }
  return { cpu, commits: Number(rows[0]?.commits), flushes: Number(rows[0]?.flushes) };
}

/** Watches an instance without calls. */
export async function watchRest(instance: Instance, { afterMs, seconds }: { afterMs: number; seconds: number }): Promise<Rest> {
  const client = new pg.Client({ connectionString: instance.databaseUrl });
  await client.connect();
  try {
    await pause(afterMs);
    const beganMs = performance.now();
    const before = await spent(instance, client);
    await pause(seconds * 1000);
    const after = await spent(instance, client);
    const tookSeconds = (performance.now() - beganMs) / 1000;
    const perSecond = (now: number, then: number) => (now - then) / tookSeconds;
    return {
      cpu: new Map([...after.cpu].map(([name, now]) => [name, perSecond(now, before.cpu.get(name) ?? 0) / 1000])),
      commits: perSecond(after.commits, before.commits),
      flushes: perSecond(after.flushes, before.flushes),
    };
  } finally {
    await client.end();
  }
}

/** Of all processes together. */
export const sum = (parts: ReadonlyMap<string, number>): number => [...parts.values()].reduce((all, one) => all + one, 0);

function figuresOf(rest: Rest, blocks: string, goals: readonly [cpu: string, commits: string]): Figure[] {
  const parts = [...rest.cpu].sort((a, b) => b[1] - a[1]).map(([name, ms]) => `${name} ${ms.toFixed(1)}`);
  return [
    {
      work: `CPU at rest, all processes, ${blocks}`,
      measured: `${sum(rest.cpu).toFixed(1)} ms a second (${parts.join(', ')})`,
      goal: goals[0],
    },
    {
      work: `database transactions at rest, ${blocks}`,
      measured: `${rest.commits.toFixed(1)} a second, ${rest.flushes.toFixed(1)} flushes of the log`,
      goal: goals[1],
    },
  ];
}

/** Starts an instance without blocks and one with the sandbox's usual ones, and measures both. */
export async function atRest({ quick }: { readonly quick: boolean }): Promise<Figure[]> {
  const time = quick ? { afterMs: 0, seconds: 1 } : { afterMs: FIGURES_AFTER_MS, seconds: 60 };
  const figures: Figure[] = [];
  for (const [blockSeconds, blocks, goals] of [
    [0, 'no blocks', ['≤ 20 ms', '≤ 2']],
    [2, 'a block of each chain every 2 s', ['', '']],
  ] as const) {
    const instance = await startInstance('', blockSeconds);
    try {
      figures.push(...figuresOf(await watchRest(instance, time), blocks, goals));
    } finally {
      await instance.stop();
    }
  }
  return figures;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(`${figureTable(await atRest({ quick: process.argv.includes('--quick') }))}\n`);
}
