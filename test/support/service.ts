// The real `npm start` for a test: its own data folder and port, its output, and the processes that belong to it.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { liveGroup, readGroup } from '../../src/main/process/group-file.ts';
import { identityOf } from '../../src/main/process/identity.ts';

const ROOT = join(import.meta.dirname, '../..');

export type Service = {
  readonly launcher: ChildProcess;
  /** Both streams, as they arrived: what is written to one at nearly the same time as to the other may come before it. */
  output(): string;
  /** The last line of standard error. */
  lastProblem(): string;
  /** Resolves with the base address when `ready` was printed; rejects with the output when it ended before. */
  readonly ready: Promise<string>;
  /** Resolves with the exit code, or the signal. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Asks it to end (SIGTERM) and waits for that, as `ended`. */
  stop(): Promise<number | NodeJS.Signals>;
  /** The supervisor, by what it wrote; null when none lives. */
  supervisor(): number | null;
  /** A process of the group by the name of its entry (`api`, `worker`, `signer`, `sandbox-process`). */
  processOf(entry: string): number | null;
  /** PostgreSQL's own process; null when none lives. */
  postgres(): number | null;
};

export type ServiceOptions = {
  readonly dataFolder: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly user?: { readonly uid: number; readonly gid: number };
  /** Whether npm runs it, or what npm would run (default). */
  readonly by?: 'npm' | 'script';
};

const COMMANDS = { npm: ['npm', 'start'], script: ['sh', 'bin/launch.sh', 'start'] } as const;

/** A folder for one test's data, open to the database's user, and what removes it again. */
export function dataFolderFor(owner?: { readonly uid: number; readonly gid: number }): {
  readonly folder: string;
  remove(): void;
} {
  const parent = mkdtempSync(join(tmpdir(), 'bursar-start-'));
  chmodSync(parent, 0o711);
  if (owner !== undefined) chownSync(parent, owner.uid, owner.gid);
  const folder = join(parent, 'data');
  return {
    folder,
    remove() {
      const marker = join(folder, 'postgres-elsewhere');
      if (existsSync(marker)) rmSync(dirname(readFileSync(marker, 'utf8').trim()), { recursive: true, force: true });
      rmSync(parent, { recursive: true, force: true });
    },
  };
}

/** Starts it; the port is any free one unless the environment says another. */
export function startService({ dataFolder, environment = {}, user, by = 'script' }: ServiceOptions): Service {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(BURSAR_|PORT$|HOST$|DATABASE_URL|npm_|NODE_|VITEST|VITE_)/.test(name),
  );
  const [program, ...args] = COMMANDS[by];
  const launcher = spawn(program, args, {
    cwd: ROOT,
    env: {
      ...Object.fromEntries(inherited),
      PORT: '0',
      BURSAR_ENV_FILE: '/dev/null',
      BURSAR_RATE_LIMIT_SCALE: '1000',
      BURSAR_DATA_DIR: dataFolder,
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
    ...user,
  });
  let output = '';
  let problems = '';
  let isReady: (url: string) => void;
  let isNot: (error: Error) => void;
  const ready = new Promise<string>((resolve, reject) => {
    isReady = resolve;
    isNot = reject;
  });
  ready.catch(() => undefined);
  for (const stream of [launcher.stdout, launcher.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      const url = /^ready (http:\S+)$/m.exec(output)?.[1];
      // in the sandbox the lines after it belong to it
      const isWhole = environment.BURSAR_NETWORK !== undefined || output.includes('\ntry: ');
      if (url !== undefined && isWhole) isReady(url);
    });
  }
  launcher.stderr?.on('data', (text: string) => {
    problems += text;
  });
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    launcher.once('close', (code, signal) => {
      isNot(new Error(`it ended (${code ?? signal}) before it was ready:\n${output}`));
      resolve(code ?? signal ?? 1);
    });
  });
  return {
    launcher,
    output: () => output,
    lastProblem: () => problems.trim().split('\n').at(-1) ?? '',
    ready,
    ended,
    stop() {
      launcher.kill('SIGTERM');
      return ended;
    },
    supervisor() {
      const group = liveGroup(dataFolder);
      return group === null ? null : Number.parseInt(group.supervisor, 10);
    },
    processOf(entry) {
      const pids = (readGroup(dataFolder)?.processes ?? []).map((identity) => Number.parseInt(identity, 10));
      return pids.find((pid) => commandOf(pid).includes(`/src/main/${entry}.ts`)) ?? null;
    },
    postgres: () => postgresOf(dataFolder),
  };
}

/** Every living process of the group of a data folder, and its PostgreSQL. */
export function livingProcesses(dataFolder: string): readonly string[] {
  const group = readGroup(dataFolder);
  const pids = [
    ...(group === null ? [] : [group.supervisor, ...group.processes]).map((one) => Number.parseInt(one, 10)),
    postgresOf(dataFolder),
  ];
  return pids.filter((pid): pid is number => pid !== null && identityOf(pid) !== null).map((pid) => `${pid} ${commandOf(pid)}`);
}

/** Waits for something to become true or not null, and returns it. */
export async function eventually<T>(what: string, look: () => T | Promise<T>, withinMs = 20_000): Promise<NonNullable<T>> {
  const until = performance.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (seen !== null && seen !== undefined && seen !== false) return seen;
    if (performance.now() > until) throw new Error(`not within ${withinMs} ms: ${what}`);
    await delay(25);
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  } catch {
    return '';
  }
}

function postgresOf(dataFolder: string): number | null {
  const marker = join(dataFolder, 'postgres-elsewhere');
  const folder = existsSync(marker) ? readFileSync(marker, 'utf8').trim() : join(dataFolder, 'postgres');
  try {
    const pid = Number.parseInt(readFileSync(join(folder, 'postmaster.pid'), 'utf8'), 10);
    return identityOf(pid) === null ? null : pid;
  } catch {
    return null;
  }
}
