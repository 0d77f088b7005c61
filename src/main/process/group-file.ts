// What the running group records in its data folder: its identity, its address and its processes, for the next start (leftovers of a group
// that was killed) and for the commands.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Identity, isAlive, type Lock, tryLock } from './identity.ts';
import { StartRefused } from './start-refused.ts';

export type Group = {
  readonly supervisor: Identity;
  readonly state: 'starting' | 'ready' | 'stopping';
  /** Base address of the API; null before it is known. */
  readonly url: string | null;
  readonly processes: readonly Identity[];
};

const LOCK = 'start';
const LEFTOVERS_STOP_WITHIN_MS = 6000;

/** The recorded group; null when there never was one, or it ended in order. It may be dead: see `liveGroup`. */
export function readGroup(dataFolder: string): Group | null {
  try {
    return JSON.parse(readFileSync(join(dataFolder, 'run', 'group.json'), 'utf8')) as Group;
  } catch {
    return null;
  }
}

/** The group that runs on this data folder now; null when none does. */
export function liveGroup(dataFolder: string): Group | null {
  const group = readGroup(dataFolder);
  return group !== null && isAlive(group.supervisor) ? group : null;
}

/** Notes which process group runs on a data folder, so that the next start finds what outlived it; null removes the note. */
export function writeGroup(dataFolder: string, group: Group | null): void {
  const file = join(dataFolder, 'run', 'group.json');
  if (group === null) {
    rmSync(file, { force: true });
    return;
  }
  mkdirSync(join(dataFolder, 'run'), { recursive: true });
  writeFileSync(`${file}.new`, JSON.stringify(group));
  renameSync(`${file}.new`, file);
}

/**
 * Takes the data folder (a real path) for one start. Waits for a group that is just stopping, and ends what a killed one left running.
 * Throws StartRefused when a live group holds it.
 */
export async function takeDataFolder(dataFolder: string): Promise<Lock> {
  const lookAgainUntil = performance.now() + 400;
  const stoppedUntil = performance.now() + 12_000;
  for (;;) {
    const lock = await tryLock(dataFolder, LOCK);
    if (lock !== null) {
      await endLeftovers(dataFolder);
      return lock;
    }
    const group = liveGroup(dataFolder);
    const now = performance.now();
    // a start whose own parent was killed a moment ago may not have recorded yet that it is stopping
    if (group?.state === 'stopping' ? now > stoppedUntil : now > lookAgainUntil) {
      const holder =
        group === null ? 'another process' : `the start with process number ${Number.parseInt(group.supervisor, 10)}`;
      throw new StartRefused(`${dataFolder} is in use by ${holder}: stop it, or set BURSAR_DATA_DIR to another folder`);
    }
    await delay(50);
  }
}

// They have lost their parent and are stopping; those that do not are killed. By identity: the pid may belong to another process by now.
async function endLeftovers(dataFolder: string): Promise<void> {
  const group = readGroup(dataFolder);
  if (group === null) return;
  const until = performance.now() + LEFTOVERS_STOP_WITHIN_MS;
  for (;;) {
    const left = group.processes.filter(isAlive);
    if (left.length === 0) break;
    if (performance.now() > until) {
      for (const identity of left) process.kill(Number.parseInt(identity, 10), 'SIGKILL');
    }
    await delay(25);
  }
  writeGroup(dataFolder, null);
}
