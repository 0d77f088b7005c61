// `npm start`: the supervisor of the whole group. Starts the database, migrates it, starts the sandbox, signer, worker and API as separate
// processes, keeps them running, and stops everything in order. It holds no key and answers no request itself.
import { createServer } from 'node:net';
import { childEnvironment, describeSettings, readConfigOfAll } from './config/read-config.ts';
import type { Config } from './config/variables.ts';
import { ServerKilled } from './postgres/cluster.ts';
import { endServer, type OpenDatabase, openDatabase } from './postgres/embedded.ts';
import { type Child, loadOnly, startChild } from './process/child.ts';
import { makeDataFolder } from './process/data-folder.ts';
import { type DiskSpace, openDiskSpace, pauseMs } from './process/disk-space.ts';
import { takeDataFolder, writeGroup } from './process/group-file.ts';
import { type Identity, identityOf } from './process/identity.ts';
import { collectAtRest, isLoadOnly, onNpmGone } from './process/life.ts';
import { lineOf, listenRefused } from './process/start-refused.ts';
import { tellProblems, untilReady } from './process/wait-ready.ts';
import { type DemoLogin, printDemo } from './sandbox/demo-login.ts';
import { prepareDatabase } from './wiring/database-memory.ts';

const STOP_WITHIN_MS = 9500;
/** How long what is killed may take to be gone. */
const KILLED_WITHIN_MS = 4000;
const DATABASE_LOOK_MS = 1_000;
const NOTED_AGAIN_MS = 2_000;
const MOST_DATABASE_DEATHS = 5;
/**
 * Memory limits in MB for each process. By default V8 keeps 32 MB for young objects, which is most of what an idle process holds, and lets
 * old space grow by half under load without need. Most of a worker's data (watch lists, blocks) is outside of the heap, but a node's answer
 * may be up to 80 MB of text.
 */
const MEMORY = {
  api: ['--min-semi-space-size=4', '--max-semi-space-size=4', '--max-old-space-size=512', '--expose-gc'],
  worker: ['--max-semi-space-size=2', '--max-old-space-size=1024', '--expose-gc'],
  signer: ['--max-semi-space-size=1', '--max-old-space-size=128', '--expose-gc'],
  sandbox: ['--max-semi-space-size=2', '--max-old-space-size=1024', '--expose-gc'],
} as const;

const began = performance.now();
const beganMs = Date.now();
// what is stopped, in this order: first the processes that accept work, last those that others need
const closers: (() => Promise<void>)[] = [];
const children: Child[] = [];
let stopping = false;
let isReady = false;
let url: string | null = null;
let dataFolder = '';
let isNoted = false;
let space: DiskSpace = { isScarce: () => false };
let exitCode = 0;

function step(what: string, sinceMs: number): void {
  console.log(`${what.padEnd(62, ' ')} ${((performance.now() - sinceMs) / 1000).toFixed(2)} s`);
}

/** Runs one step and says how long it took. */
async function timed<T>(what: string | ((result: T) => string), work: () => Promise<T>): Promise<T> {
  const since = performance.now();
  const result = await work();
  if (!stopping) step(typeof what === 'string' ? what : what(result), since);
  return result;
}

function noteGroup(): void {
  const supervisor = identityOf(process.pid) ?? String(process.pid);
  const processes = children.map((child) => child.identity()).filter((one): one is Identity => one !== null);
  writeGroup(dataFolder, { supervisor, state: stopping ? 'stopping' : isReady ? 'ready' : 'starting', url, processes });
  isNoted = true;
}

let isNoting = false;
let noteFailure: string | null = null;
/** One write for all changes that happen together; one that fails (a full disk) is reported once and repeated until it succeeds. */
function noteSoon(): void {
  if (isNoting) return;
  isNoting = true;
  setImmediate(() => {
    isNoting = false;
    tryToNote();
  });
}

function tryToNote(): void {
  try {
    noteGroup();
    noteFailure = null;
  } catch (error) {
    const { message } = error as Error;
    if (noteFailure === null)
      console.error(`problem: which processes run cannot be written down, and is tried again: ${message}`);
    noteFailure = message;
    setTimeout(noteSoon, NOTED_AGAIN_MS).unref();
  }
}

async function stopAll(code: number, line?: string): Promise<void> {
  // while the group stops, failures are caused by the stop
  if (stopping) return;
  if (line !== undefined) console.error(line);
  exitCode = code;
  stopping = true;
  for (const one of children) one.letGo();
  const since = performance.now();
  const deadline = setTimeout(() => killAll(line), STOP_WITHIN_MS);
  const [note, forget] = isNoted ? [[async () => tryToNote()], [async () => writeGroup(dataFolder, null)]] : [[], []];
  for (const close of [...note, ...closers, ...forget]) {
    await close().catch((error: Error) => {
      console.error(`stop: ${error.message}`);
      exitCode = 1;
    });
  }
  clearTimeout(deadline);
  if (isReady) step('stopped', since);
  leave(line);
}

/** Ends this process; why it did so is its last line. */
function leave(line: string | undefined): never {
  if (exitCode !== 0 && line !== undefined && isReady) console.error(line);
  process.exit(exitCode);
}

/** Ends everything, PostgreSQL too, so that what `stopAll` waits for is over. */
function killAll(line: string | undefined): void {
  console.error('stop: not everything ended in time; killing what is left');
  exitCode = 1;
  setTimeout(() => leave(line), KILLED_WITHIN_MS);
  for (const one of children) one.kill();
  void endServer(dataFolder).catch(() => undefined);
}

type Name = keyof typeof MEMORY;
const ENTRIES: Readonly<Record<Name, string>> = {
  sandbox: 'sandbox-process.ts',
  signer: 'signer.ts',
  worker: 'worker.ts',
  api: 'api.ts',
};

/** What strangers and nodes can reach: whoever finds a way to end one of these again and again must not end the service. */
const SPARED: ReadonlySet<Name> = new Set(['worker', 'api']);

function child(name: Name, environment: () => NodeJS.ProcessEnv): Child {
  const started = startChild({
    name,
    entry: ENTRIES[name],
    environment,
    nodeFlags: MEMORY[name],
    ...(SPARED.has(name) ? { isSpared: true } : {}),
    onRestart: (line) => console.error(line),
    onGiveUp: (line) => void stopAll(1, `the whole service stops: ${line}`),
    isExcused: () => space.isScarce(),
    onChange: noteSoon,
  });
  children.push(started);
  return started;
}

/** Refuses at once, before anything is started, when another program listens on the API's port. */
async function checkPort({ port, host }: Config): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => reject(listenRefused(host, port, error)));
    server.listen(port, host, () => server.close(() => resolve()));
  });
}

// Sessions find the server again by themselves; it only has to come back.
function watchDatabase(database: OpenDatabase): void {
  const deaths: number[] = [];
  let tries = 0;
  let triesAgainMs = 0;
  let busy = false;
  const timer = setInterval(() => {
    if (busy || stopping || database.isAlive()) return;
    const isScarce = space.isScarce();
    if (isScarce && performance.now() < triesAgainMs) return;
    busy = true;
    if (!isScarce) deaths.push(performance.now());
    if (deaths.filter((at) => performance.now() - at < 60_000).length > MOST_DATABASE_DEATHS) {
      return void stopAll(1, 'the whole service stops: PostgreSQL died too often within a minute');
    }
    console.error('PostgreSQL died; starting it again');
    database.restart().then(
      () => {
        busy = false;
        tries = 0;
      },
      (error: Error) => {
        // the next check sees its death, and counts it unless the disk is full
        if (error instanceof ServerKilled || isScarce || space.isScarce()) {
          triesAgainMs = performance.now() + pauseMs(tries++);
          busy = false;
        } else void stopAll(1, `the whole service stops: ${error.message}`);
      },
    );
  }, DATABASE_LOOK_MS);
  timer.unref();
}

async function stopChildren(...names: readonly string[]): Promise<void> {
  const chosen = children.filter(({ name }) => names.includes(name));
  await Promise.all(chosen.map((one) => one.stop(4500)));
}

async function main(): Promise<void> {
  const config = readConfigOfAll();
  dataFolder = makeDataFolder(config.dataFolder);
  space = openDiskSpace(dataFolder, (line) => console.error(line));
  const lock = await takeDataFolder(dataFolder);
  await checkPort(config);
  noteGroup();
  const { file, isRead, unused } = describeSettings(config);
  step(isRead ? `configuration (with ${file}), data folder and port` : 'configuration, data folder and port', began);
  for (const line of unused) console.error(`note: ${line}`);
  if (stopping) return;

  const group = loadGroup(config);
  const opening = openDatabase(config);
  closers.push(
    // a database that is only just being opened must not outlive us either
    async () => (await opening.catch(() => null))?.close(),
    () => lock.release(),
  );
  const database = await timed(
    (one: OpenDatabase) => one.description,
    () => opening,
  );
  watchDatabase(database);
  if (stopping) return;
  await timed(
    (applied: readonly string[]) =>
      applied.length === 0 ? 'database schema is up to date' : `database schema: ${applied.length} migrations`,
    () => prepareDatabase(database, { network: config.network, dataFolder, tell: (line) => console.error(`problem: ${line}`) }),
  );
  if (stopping) return;
  await beginGroup(group, config, database.serviceUrl);
}

type Group = { readonly sandbox: Child | null; readonly signer: Child; readonly worker: Child; readonly api: Child };

/** Starts the processes of the group; they load while the database is prepared, and wait. */
function loadGroup({ network }: Config): Group {
  closers.push(() => stopChildren('api', 'worker'));
  closers.push(() => stopChildren('signer', 'sandbox'));
  // the URL of the service's own sessions is sent when they begin
  const withoutUrl = { DATABASE_URL: null, DATABASE_URL_FILE: null };
  const environment = () => childEnvironment('other', withoutUrl);
  // after a restart it answers on the same port as before, even when any free port was configured
  const apiEnvironment = () => ({ ...environment(), ...(url === null ? {} : { PORT: new URL(url).port }) });
  return {
    sandbox: network === 'sandbox' ? child('sandbox', environment) : null,
    signer: child('signer', () => childEnvironment('signer', withoutUrl)),
    worker: child('worker', environment),
    api: child('api', apiEnvironment),
  };
}

/** Makes them begin, none before it is known that the database belongs to this network, and waits until the service is ready. */
async function beginGroup({ sandbox, signer, worker, api }: Group, config: Config, databaseUrl: string): Promise<void> {
  for (const one of children) one.begin({ DATABASE_URL: databaseUrl });
  // a publicly known login: not before the signer has found its own keys in the database
  const demo = signer.ready.then(() => (sandbox === null ? null : (sandbox.ask('demo login') as Promise<DemoLogin>)));
  demo.catch(() => undefined);
  await Promise.all([
    sandbox === null ? null : timed('sandbox', () => sandbox.ready),
    timed('signer', () => signer.ready),
    timed('worker', () => worker.ready),
    timed('API', async () => {
      url = await api.ready;
    }),
  ]);
  if (stopping || url === null) return;
  const waiting = { config, sinceMs: beganMs, isStopping: () => stopping, say: (line: string) => console.error(line) };
  await timed('the API answers', () => untilReady(url!, waiting));
  const login = await demo;
  if (stopping) return;
  isReady = true;
  tryToNote();
  step('everything', began);
  console.log(`ready ${url}`);
  collectAtRest();
  if (login !== null) printDemo(url, login);
  else void tellProblems(url, waiting);
}

/** Loads every program once, in the way it is started later: an installation does that, so that the first start need not compile them. */
async function loadAll(): Promise<void> {
  const names = Object.keys(ENTRIES) as Name[];
  await Promise.all(names.map((name) => loadOnly({ entry: ENTRIES[name], nodeFlags: MEMORY[name] })));
  process.exit(0);
}

for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void stopAll(0));
const orphaned = () => void stopAll(0, 'the service stops because the process that started it is gone');
process.on('disconnect', orphaned);
onNpmGone(orphaned);
const broke = (error: unknown) => void stopAll(1, lineOf(isReady ? 'the service broke' : 'the start broke', error));
process.on('uncaughtException', broke);
(isLoadOnly() ? loadAll() : main()).catch(broke);
