// How many databases this seed has been given to. A database that does not know the seed's keys (a new one, after the old was lost) begins
// at indexes that no earlier one has reached, so that no address is ever shown to two customers.
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { END_OF_INDEXES, NEEDED_INDEXES } from '../../core/account-key.ts';

/** 214 databases fit below BIP32's last index. */
const INDEXES_EACH = NEEDED_INDEXES;
const FILE = 'databases';

/**
 * Counts one more database and returns the index its addresses begin at. The count is on disk before it is used.
 * @param folder the signer's own
 */
export async function firstIndexOfNewDatabase(folder: string): Promise<number> {
  const path = join(folder, FILE);
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '0';
    throw error;
  });
  const count = Number(text);
  if (!Number.isSafeInteger(count) || count < 0) throw new Error(`${path} does not hold a number`);
  const first = count * INDEXES_EACH;
  if (first + INDEXES_EACH >= END_OF_INDEXES) throw new Error(`this seed was given to ${count} databases: make a new one`);
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(`${count + 1}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  return first;
}

/**
 * Counts the databases again after the count was lost: at least those whose addresses begin at or below this index.
 * @param folder the signer's own
 */
export async function countDatabasesUpTo(folder: string, startIndex: number): Promise<void> {
  for (let first = -1; first < startIndex; ) first = await firstIndexOfNewDatabase(folder);
}
