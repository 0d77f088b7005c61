// Which disks are looked at before a process that died is given up: the database's folder may lie on one of its own.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openDiskSpace } from '../../src/main/process/disk-space.ts';

let dataFolder: string;
let mounted: string[];

beforeEach(() => {
  dataFolder = mkdtempSync(join(tmpdir(), 'bursar-disks-'));
  mounted = [];
});
afterEach(() => {
  for (const folder of mounted) execFileSync('umount', ['-l', folder]);
  rmSync(dataFolder, { recursive: true });
});

/** A disk of its own needs root, and rights that a container may not have. */
function mountSmallDisk(folder: string): boolean {
  mkdirSync(folder, { recursive: true });
  if (process.getuid?.() !== 0 || process.platform !== 'linux') return false;
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    return false;
  }
  mounted.push(folder);
  return true;
}

test.for(['postgres', 'postgres/pg_wal'])('a full disk of its own below %s is scarce space, and is named', (part, { skip }) => {
  const said: string[] = [];
  const space = openDiskSpace(dataFolder, (line) => said.push(line));
  expect(space.isScarce()).toBe(false);
  if (!mountSmallDisk(join(dataFolder, part))) return skip();
  expect(space.isScarce()).toBe(true);
  expect(said).toEqual([
    `problem: the disk of ${join(dataFolder, part)} is full; what ends because of that is started again until there is space`,
  ]);
});
