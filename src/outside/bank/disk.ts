// What a folder that others look into too asks of its disk.
import { createHash, randomBytes } from 'node:crypto';
import { link, open, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** The SHA-256 of what a file has. */
export const sha256 = (bytes: Uint8Array): Uint8Array => createHash('sha256').update(bytes).digest();
/** The same in hex. */
export const hashOf = (bytes: Uint8Array): string => Buffer.from(sha256(bytes)).toString('hex');

/** A name that leaves room for what is added to it: the disk takes 255 bytes. Nothing that names a file of ours is as long. */
export const shortened = (name: string): string => (Buffer.byteLength(name) > 200 ? hashOf(Buffer.from(name)) : name);

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

/** Whether files of this folder have the same number by each of their names: sshfs gives each name one of its own. */
export async function numbersFiles(folder: string): Promise<boolean> {
  // of its own: the system may link nobody the files of others
  const one = join(folder, `.${randomBytes(4).toString('hex')}.number`);
  const other = `${one}.other`;
  try {
    await writeWhole(one, new Uint8Array());
    await link(one, other);
    return (await fileNumber(other)) === (await fileNumber(one));
  } finally {
    await rm(other, { force: true });
    await rm(one, { force: true });
  }
}
