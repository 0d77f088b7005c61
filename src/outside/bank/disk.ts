// What a folder that others look into too asks of its disk.
import { open, stat } from 'node:fs/promises';

/** The number of a file on its disk, the same for each of its names; larger than a number of JavaScript on some. */
export const fileNumber = async (path: string): Promise<bigint> => (await stat(path, { bigint: true })).ino;

/** Of a file that is not there. @throws any other error */
export const nothing = (error: unknown): undefined => {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  return undefined;
};

/** A file that is on disk when it resolves; there must be none of its name. */
export async function writeWhole(path: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(path, 'wx', 0o660);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** What was put into a folder, or taken from it, is on disk when it resolves. */
export async function sync(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
