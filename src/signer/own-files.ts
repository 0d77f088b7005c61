// Small files of our own that must be whole and on disk before anybody relies on them.
import { randomBytes } from 'node:crypto';
import { link, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Writes a file of mode 600 that is either complete and on disk, or not there at all; false when one with this name exists. `between` runs
 * when only its name is missing.
 */
export async function createOnce(
  path: string,
  content: string,
  between: () => Promise<void> = () => Promise.resolve(),
): Promise<boolean> {
  const making = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const handle = await open(making, 'wx', 0o600);
  try {
    await handle.writeFile(content);
    await handle.sync();
    await between();
    await link(making, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    await handle.close();
    await rm(making, { force: true });
  }
  try {
    await syncFolder(dirname(path));
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
  return true;
}

/** Replaces a file as a whole or not at all; the content and the file's name are on disk when this resolves. */
export async function replaceFile(path: string, content: string, mode = 0o600): Promise<void> {
  const making = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const handle = await open(making, 'wx', mode);
  try {
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(making, path);
  } catch (error) {
    // where the disk is full it is tried again and again
    await rm(making, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Syncs a folder's entries to disk. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
