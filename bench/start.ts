// How long `npm start` takes until it prints `ready`, on a new data folder and on an existing one, and how much memory everything together
// holds when idle, npm included. Starts the service as a user does, several times. `node bench/start.ts` prints its figures.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { runningServer } from '../src/main/postgres/cluster.ts';
import { clusterPaths } from '../src/main/postgres/cluster-paths.ts';
import { median } from './measure.ts';
import { commandLine, proportionalBytes, treeOf } from './processes.ts';
import { type Figure, figureTable } from './report.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const ROUNDS = 5;
const REST_MS = 30_000;
const MEGABYTE = 2 ** 20;

type Started = { readonly npm: ChildProcess; readonly seconds: number; stop(): Promise<void> };

/** Starts and stops the service on its own folders; `quick`: once, and without the idle measurement. */
export async function startAndRest({ quick = false } = {}): Promise<readonly Figure[]> {
  const rounds = quick ? 1 : ROUNDS;
  const cold: number[] = [];
  const warm: number[] = [];
  let memory: Figure | null = null;
  for (let round = 0; round < rounds; round++) {
    const data = mkdtempSync(join(tmpdir(), 'bursar-bench-start-'));
    chmodSync(data, 0o711);
    try {
      const first = await start(data);
      cold.push(first.seconds);
      await first.stop();
      const second = await start(data);
      warm.push(second.seconds);
      if (round === rounds - 1) {
        await delay(quick ? 0 : REST_MS);
        memory = memoryOf(second.npm, data);
      }
      await second.stop();
    } finally {
      rmSync(data, { recursive: true, force: true });
    }
  }
  const seconds = (all: readonly number[]) =>
    `${median(all, (one) => one).toFixed(2)} s (${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)})`;
  return [
    { work: 'npm start to ready on a new data folder', measured: seconds(cold), goal: '≤ 4 s' },
    { work: 'npm start to ready on one that is there', measured: seconds(warm), goal: '≤ 2 s' },
    ...(memory === null ? [] : [memory]),
  ];
}

async function start(data: string): Promise<Started> {
  const began = performance.now();
  const { PATH, HOME } = process.env;
  const env = { PATH, HOME, PORT: '0', BURSAR_DATA_DIR: data, BURSAR_ENV_FILE: '/dev/null' };
  const npm = spawn('npm', ['start'], { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'], env });
  let said = '';
  const seconds = await new Promise<number>((resolve, reject) => {
    for (const stream of [npm.stdout, npm.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        if (/^ready http/m.test(said)) resolve((performance.now() - began) / 1000);
      });
    }
    npm.once('close', (code) => reject(new Error(`npm start ended with ${code} before it was ready:\n${said}`)));
  });
  return {
    npm,
    seconds,
    async stop() {
      const ended = once(npm, 'close');
      npm.kill('SIGTERM');
      await ended;
    },
  };
}

/** The proportional set size of every process below npm and of PostgreSQL's. */
function memoryOf(npm: ChildProcess, data: string): Figure {
  const server = runningServer(clusterPaths(data));
  if (npm.pid === undefined || server === null) throw new Error('npm or PostgreSQL does not run');
  const parts = new Map<string, number>();
  for (const pid of new Set([...treeOf(npm.pid), ...treeOf(server)])) {
    const name = nameOf(pid);
    parts.set(name, (parts.get(name) ?? 0) + proportionalBytes(pid) / MEGABYTE);
  }
  const sorted = [...parts].sort(([, a], [, b]) => b - a);
  const whole = sorted.reduce((sum, [, size]) => sum + size, 0);
  return {
    work: 'memory (PSS) of all processes at rest',
    measured: `${whole.toFixed(0)} MiB: ${sorted.map(([name, size]) => `${name} ${size.toFixed(0)}`).join(', ')}`,
    goal: '≤ 350 MB',
  };
}

function nameOf(pid: number): string {
  const words = commandLine(pid);
  const entry = words.find((word) => word.includes('/src/main/'));
  if (entry !== undefined) return basename(entry, '.ts').replace('sandbox-process', 'sandbox');
  return words.join(' ').includes('postgres') ? 'PostgreSQL' : (words[0]?.split(' ')[0] ?? 'other');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(`${figureTable(await startAndRest({ quick: process.argv.includes('--quick') }))}\n`);
}
