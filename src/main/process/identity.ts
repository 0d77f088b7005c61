// Distinguishes a process from a later one with the same pid, and holds locks that the kernel releases when their holder dies.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, readlinkSync, rmSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Pid and start time, as `<pid>-<start>`: unique until the machine restarts. */
export type Identity = string;

/** The identity of a living process; null when there is none with this pid (or it has ended and only waits to be reaped). */
export function identityOf(pid: number): Identity | null {
  if (process.platform === 'linux') {
    try {
      // the name in parentheses may contain spaces and parentheses: count fields from the last one
      const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
        .replace(/^.*\) /s, '')
        .split(' ');
      return fields[0] === 'Z' || fields[0] === 'X' ? null : `${pid}-${fields[19]}`;
    } catch {
      return null;
    }
  }
  const ps = spawnSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' });
  const match = /^(\S+)\s+(.+?)\s*$/.exec(ps.stdout ?? '');
  return match === null || match[1]!.startsWith('Z') ? null : `${pid}-${match[2]!.replace(/\W+/g, '_')}`;
}

/** Whether exactly the process of that identity is alive. */
export function isAlive(identity: Identity): boolean {
  const pid = Number.parseInt(identity, 10);
  return Number.isSafeInteger(pid) && identityOf(pid) === identity;
}

/** Whether a process works in this folder (PostgreSQL's processes stay in their data folder). */
export function worksIn(pid: number, folder: string): boolean {
  if (process.platform === 'linux') {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === folder;
    } catch {
      return false;
    }
  }
  return (spawnSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout ?? '').includes(folder);
}

/** The pids of all living processes that work in this folder, as far as the system shows them (Linux). */
export function workersIn(folder: string): readonly number[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => worksIn(pid, folder) && identityOf(pid) !== null);
}

export type Lock = { release(): Promise<void> };

/** Takes the lock of this name that belongs to a folder (its real path); null when another living process holds it. */
export function tryLock(folder: string, name: string): Promise<Lock | null> {
  return process.platform === 'linux' ? lockBySocket(folder, name) : Promise.resolve(lockByFile(folder, name));
}

/** Waits for the lock of this name; throws after the deadline. */
export async function lock(folder: string, name: string, deadlineMs = 90_000): Promise<Lock> {
  const until = performance.now() + deadlineMs;
  for (;;) {
    const taken = await tryLock(folder, name);
    if (taken !== null) return taken;
    if (performance.now() > until)
      throw new Error(`another process has held the lock "${name}" of ${folder} for ${deadlineMs / 1000} s`);
    await delay(25);
  }
}

// An abstract socket vanishes with its process, however that ends: nothing can be left behind.
function lockBySocket(folder: string, name: string): Promise<Lock | null> {
  const address = `\0bursar-${createHash('sha256').update(`${folder}\n${name}`).digest('hex').slice(0, 40)}`;
  const server = createServer((socket) => socket.destroy());
  server.unref();
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(null) : reject(error)));
    server.listen(address, () =>
      resolve({
        release: () =>
          new Promise((done) => {
            server.close(() => done());
          }),
      }),
    );
  });
}

function lockByFile(folder: string, name: string): Lock | null {
  mkdirSync(join(folder, 'run'), { recursive: true });
  const file = join(folder, 'run', `${name}.lock`);
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      const handle = openSync(file, 'wx');
      writeSync(handle, identityOf(process.pid) ?? '');
      closeSync(handle);
      return {
        release() {
          rmSync(file, { force: true });
          return Promise.resolve();
        },
      };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      const holder = readFileSync(file, 'utf8');
      if (holder !== '' && isAlive(holder)) return null;
      rmSync(file, { force: true });
    }
  }
  return null;
}
