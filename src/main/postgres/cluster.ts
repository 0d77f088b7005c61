// One PostgreSQL server of our own: created, started, found again and stopped by its data folder. Durable for the service; not durable for
// tests, so that they are fast.
import { spawn } from 'node:child_process';
import {
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { identityOf, worksIn } from '../process/identity.ts';
import { StartRefused } from '../process/start-refused.ts';
import type { ClusterPaths } from './cluster-paths.ts';
import { endOfOrphans } from './orphans.ts';

/** The login user of our own clusters: their superuser, who can log in only through the socket's folder. */
const LOGIN = 'bursar';
const LARGEST_LOG_BYTES = 20_000_000;
const MAJOR = '18';

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '',
  unix_socket_permissions: '0700',
  max_connections: '400',
  shared_buffers: '192MB',
  max_wal_size: '2GB',
  wal_compression: 'pglz',
  random_page_cost: '1.1',
  jit: 'off',
  // tables of shared memory that are filled at every start: 64 reads at once for each of 400 sessions were 12 MB, and locks of SERIALIZABLE,
  // which nothing here uses, 8 MB
  io_max_concurrency: '8',
  max_pred_locks_per_transaction: '10',
  wal_buffers: '2MB',
  // dynamic shared memory is scarce in containers, and none of our statements is faster in parallel
  max_parallel_workers_per_gather: '0',
  timezone: 'UTC',
  log_timezone: 'UTC',
};
const NOT_DURABLE: Readonly<Record<string, string>> = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  autovacuum: 'off',
};

export type ClusterOptions = { readonly paths: ClusterPaths; readonly durable: boolean; readonly logFile: string };

/** The connection URL of a database of the cluster; its superuser's unless another login is named. */
export function clusterUrl(paths: ClusterPaths, database: string, login: string = LOGIN): string {
  return `postgresql://${login}@localhost/${database}?host=${encodeURIComponent(paths.socketFolder)}`;
}

/** Creates the cluster when it is missing; one whose creation was interrupted is created again. Returns whether it was created. */
export async function makeCluster({ paths, durable }: ClusterOptions): Promise<boolean> {
  const { folder, bin, user } = paths;
  if (existsSync(join(folder, 'PG_VERSION'))) {
    const version = readFileSync(join(folder, 'PG_VERSION'), 'utf8').trim();
    if (version !== MAJOR) {
      throw new StartRefused(
        `${folder} was made by PostgreSQL ${version}, this version brings ${MAJOR}: move the data over with pg_dumpall, or set DATABASE_URL`,
      );
    }
    return false;
  }
  if (existsSync(folder) && readdirSync(folder).length > 0) {
    throw new StartRefused(`${folder} is neither empty nor a PostgreSQL data folder: move it away, or set BURSAR_DATA_DIR`);
  }
  const making = `${folder}.new`;
  rmSync(making, { recursive: true, force: true });
  mkdirSync(making, { mode: 0o700 });
  if (user !== null) chownSync(making, user.uid, user.gid);
  const flags = [
    '-D',
    making,
    '-U',
    LOGIN,
    '--auth=trust',
    '--encoding=UTF8',
    '--locale=C',
    '--no-instructions',
    ...(durable ? [] : ['--no-sync']),
  ];
  const failure = await runInitdb(join(bin, 'initdb'), flags, paths);
  if (failure !== null) {
    const why = failure.trim().split('\n').slice(-3).join(' ');
    if (why.includes('could not look up effective user ID')) {
      throw new StartRefused(
        `PostgreSQL needs a user with a name, and uid ${process.getuid?.()} has none: start as another user, or set DATABASE_URL`,
      );
    }
    throw new StartRefused(`PostgreSQL's initdb failed in ${making}: ${why}`);
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(making, folder);
  if (durable) syncFolder(dirname(folder));
  return true;
}

/** Returns its output when it failed; null when it succeeded. */
function runInitdb(program: string, flags: readonly string[], paths: ClusterPaths): Promise<string | null> {
  // a session of its own: Ctrl-C in a terminal reaches the supervisor only, which waits for it and then stops in order
  const child = spawn(program, flags, {
    cwd: '/',
    env: {},
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    ...asUser(paths),
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(code === 0 ? null : said || `it ended with ${code ?? signal}`));
  });
}

/** The pid of the server that runs in this data folder; null when none does. */
export function runningServer(paths: ClusterPaths): number | null {
  const pid = readPid(join(paths.folder, 'postmaster.pid'));
  return pid !== null && identityOf(pid) !== null && worksIn(pid, paths.folder) ? pid : null;
}

/** Whether the server accepts connections: it writes that into its own file. */
function isReady(paths: ClusterPaths): boolean {
  try {
    return readFileSync(join(paths.folder, 'postmaster.pid'), 'utf8').split('\n')[7]?.trim() === 'ready';
  } catch {
    return false;
  }
}

/** A signal killed the server while it started: it may be started again. */
export class ServerKilled extends StartRefused {}

type End = { readonly why: string; readonly isKilled: boolean };

/** Errors that refuse or end single sessions: never the reason why a server ends. */
const SESSIONS_LINE =
  /the database system is |terminating |too many clients|connection slots|authentication failed|no pg_hba|role ".*" does not exist|database ".*" does not exist/;

/**
 * Starts a server, or finds the one that already runs there, and waits until it accepts connections. Returns its pid. Throws ServerKilled,
 * else StartRefused.
 */
export async function startCluster(options: ClusterOptions): Promise<number> {
  const { paths } = options;
  const until = performance.now() + 120_000;
  let lastTry = 0;
  for (;;) {
    const running = runningServer(paths);
    if (running !== null && isReady(paths)) return running;
    if (running === null && performance.now() - lastTry > 500) {
      await endOfOrphans(paths, { until, isServed: () => runningServer(paths) !== null });
      removeStaleLocks(paths);
      const exited = launch(options);
      lastTry = performance.now();
      const failure = await untilReady(paths, exited, until);
      if (failure === null) continue;
      if (failure.isKilled) throw new ServerKilled(`PostgreSQL in ${paths.folder} was killed while it started: ${failure.why}`);
      // the last server was killed and its children are still ending: PostgreSQL waits for them, and so do we
      if (
        !/pre-existing shared memory|still in use|lock. already exists|pid. already exists/.test(failure.why) ||
        performance.now() > until
      ) {
        throw new StartRefused(`PostgreSQL does not start in ${paths.folder}: ${failure.why} (see ${options.logFile})`);
      }
    }
    if (performance.now() > until)
      throw new StartRefused(`PostgreSQL in ${paths.folder} is not ready after 120 s (see ${options.logFile})`);
    await delay(10);
  }
}

/** Stops the server: sessions are ended, everything is written. After `graceMs` it is stopped harder. Does nothing when none runs. */
export async function stopCluster(paths: ClusterPaths, graceMs = 6000): Promise<void> {
  for (const [signal, waitMs] of [
    ['SIGINT', graceMs],
    ['SIGQUIT', 1500],
    ['SIGKILL', 1500],
  ] as const) {
    const pid = runningServer(paths);
    if (pid === null) break;
    process.kill(pid, signal);
    const until = performance.now() + waitMs;
    while (performance.now() < until) {
      if (runningServer(paths) === null) break;
      await delay(10);
    }
  }
  if (paths.socketFolder !== paths.folder && runningServer(paths) === null)
    rmSync(paths.socketFolder, { recursive: true, force: true });
}

function launch({ paths, durable, logFile }: ClusterOptions): Promise<End> {
  if (existsSync(logFile) && statSync(logFile).size > LARGEST_LOG_BYTES) truncateSync(logFile);
  const log = openSync(logFile, 'a');
  const settings = { ...SETTINGS, unix_socket_directories: paths.socketFolder, ...(durable ? {} : NOT_DURABLE) };
  const flags = ['-D', paths.folder, ...Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  // a session of its own: Ctrl-C in a terminal reaches the supervisor only, which stops the database last
  const child = spawn(join(paths.bin, 'postgres'), flags, {
    cwd: '/',
    env: {},
    detached: true,
    stdio: ['ignore', log, log],
    ...asUser(paths),
  });
  const from = statSync(logFile).size;
  closeSync(log);
  child.unref();
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ why: error.message, isKilled: false }));
    child.once('exit', (code, signal) => {
      if (signal !== null) resolve({ why: signal, isKilled: true });
      else resolve({ why: lastWords(logFile, from) ?? `it ended with ${code}`, isKilled: false });
    });
  });
}

function lastWords(logFile: string, from: number): string | undefined {
  if (!existsSync(logFile)) return undefined;
  const whole = readFileSync(logFile).subarray(from).toString('utf8').trim().split('\n');
  const said = whole.filter((line) => line !== '' && !SESSIONS_LINE.test(line));
  return said.find((line) => line.includes('FATAL')) ?? said.at(-1);
}

async function untilReady(paths: ClusterPaths, exited: Promise<End>, until: number): Promise<End | null> {
  let failure: End | null = null;
  void exited.then((end) => {
    failure = end;
  });
  while (failure === null && performance.now() < until) {
    if (runningServer(paths) !== null && isReady(paths)) return null;
    await delay(5);
  }
  return failure ?? { why: 'it is not ready in time', isKilled: false };
}

/**
 * No process uses the folder: a lock file that names a living process (another one since a crash of the machine, or one that waits to be
 * reaped) would only keep PostgreSQL out.
 */
function removeStaleLocks(paths: ClusterPaths): void {
  if (runningServer(paths) !== null) return;
  for (const file of [join(paths.folder, 'postmaster.pid'), join(paths.socketFolder, '.s.PGSQL.5432.lock')]) {
    const pid = readPid(file);
    if (pid !== null && exists(pid)) rmSync(file, { force: true });
  }
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function readPid(file: string): number | null {
  try {
    const pid = Number.parseInt(readFileSync(file, 'utf8'), 10);
    return Number.isSafeInteger(pid) && pid > 0 ? pid : null;
  } catch {
    return null;
  }
}

function asUser({ user }: ClusterPaths): { uid?: number; gid?: number } {
  return user === null ? {} : { uid: user.uid, gid: user.gid };
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  fsyncSync(handle);
  closeSync(handle);
}
