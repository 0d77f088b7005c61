// The copies of our bank files in BURSAR_DATA_DIR/bank: written before the bank gets them, and never changed.
import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { KeptFiles } from '../../core/ach/bank-port.ts';

const ENDING = '.ach';
const NAME = /^\d{4}-\d\d-\d\d-[A-Z0-9]\.ach$/;

/** @param folder made when it is missing */
export function keptFiles(folder: string): KeptFiles {
  return {
    async keep({ name, bytes }) {
      const path = join(folder, name + ENDING);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      if (await writeOnce(path, bytes)) return true;
      return (await readFile(path)).equals(bytes);
    },
    async names() {
      try {
        return (await readdir(folder)).filter((name) => NAME.test(name)).map((name) => name.slice(0, -ENDING.length));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
        throw error;
      }
    },
  };
}

/** A file that is whole and on disk, or not there; false when there is one already. */
async function writeOnce(path: string, bytes: Uint8Array): Promise<boolean> {
  const making = `${path}.${randomBytes(4).toString('hex')}`;
  const handle = await open(making, 'wx', 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
    await link(making, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    await handle.close();
    await rm(making, { force: true });
  }
  const folder = await open(join(path, '..'), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
  return true;
}
