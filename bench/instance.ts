// The measured service: the whole group of `npm start` in its own folder, with the embedded PostgreSQL (fsync on), without rate limits, and
// with blocks only on request.
import { fork } from 'node:child_process';
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { clusterUrl, runningServer } from '../src/main/postgres/cluster.ts';
import { type ClusterPaths, clusterPaths } from '../src/main/postgres/cluster-paths.ts';
import { ensureDatabase } from '../src/store/postgres/server.ts';
import { childrenOf, commandLine } from './processes.ts';

export type Instance = {
  readonly port: number;
  /** The process that started the others. */
  readonly groupPid: number;
  readonly apiPid: number;
  readonly postmasterPid: number;
  readonly dataFolder: string;
  /** URL of the service's database as its owner. */
  readonly databaseUrl: string;
  /** An access token of the demo merchant. */
  token(): Promise<string>;
  /** Makes an empty database in the same cluster. */
  emptyDatabase(name: string): Promise<string>;
  stop(): Promise<void>;
};

export const PASSWORD = 'bench-bench-bench';
const READY = /^ready http:\/\/127\.0\.0\.1:(\d+)/m;

/**
 * @param nodeOptions flags of Node for every process of the group, for example `--cpu-prof`
 * @param blockSeconds how often a block comes by itself; 0 = never
 */
export async function startInstance(nodeOptions: string, blockSeconds = 0): Promise<Instance> {
  const made = mkdtempSync(join(tmpdir(), 'bursar-bench-'));
  chmodSync(made, 0o711);
  const data = realpathSync(made);
  const child = fork(fileURLToPath(new URL('../src/main/start.ts', import.meta.url)), {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      BURSAR_ENV_FILE: '/dev/null',
      NODE_OPTIONS: nodeOptions,
      // as bin/launch.sh sets it
      NODE_COMPILE_CACHE: fileURLToPath(new URL('../node_modules/.cache/compiled', import.meta.url)),
      PORT: '0',
      BURSAR_DATA_DIR: data,
      BURSAR_DEMO_PASSWORD: PASSWORD,
      BURSAR_RATE_LIMIT_SCALE: '1000000',
      BURSAR_SANDBOX_BLOCK_SECONDS: String(blockSeconds),
    },
  });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
  });
  const port = await new Promise<number>((resolve, reject) => {
    let said = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString('utf8')).slice(-20_000);
      const found = READY.exec(said)?.[1];
      if (found !== undefined) resolve(Number(found));
    });
    child.once('exit', (code) => {
      rmSync(data, { recursive: true, force: true });
      reject(new Error(`the service ended with ${code} before it was ready:\n${said}`));
    });
  });
  child.stdout?.resume();
  const paths = clusterPaths(data);
  return {
    port,
    groupPid: child.pid as number,
    apiPid: onlyOne(childrenOf(child.pid as number).filter((pid) => commandLine(pid).some((word) => word.endsWith('/api.ts')))),
    postmasterPid: onlyOne([runningServer(paths)].filter((pid) => pid !== null)),
    dataFolder: data,
    databaseUrl: clusterUrl(paths, 'bursar'),
    token: () => signIn(port),
    async emptyDatabase(name) {
      await ensureDatabase(clusterUrl(paths, 'postgres'), name);
      return clusterUrl(paths, name);
    },
    async stop() {
      child.kill('SIGTERM');
      await exited;
      remove(data, paths);
    },
  };
}

function remove(data: string, paths: ClusterPaths): void {
  rmSync(data, { recursive: true, force: true });
  if (!paths.folder.startsWith(data)) rmSync(dirname(paths.folder), { recursive: true, force: true });
}

function onlyOne(pids: readonly number[]): number {
  const [pid, more] = pids;
  if (pid === undefined || more !== undefined) throw new Error(`expected one process of this kind, found ${pids.length}`);
  return pid;
}

async function signIn(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/auth`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'demo', password: PASSWORD }),
  });
  const { access_token } = (await answer.json()) as { access_token?: string };
  if (access_token === undefined) throw new Error(`/auth answered ${answer.status}`);
  return access_token;
}
