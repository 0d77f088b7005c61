// BURSAR_DATA_DIR: made on first use, in a form that the database's user may pass through. Called by every process of src/main; `bursar config
// check` only asks whether it could be.
import { accessSync, chmodSync, constants, existsSync, mkdirSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { StartRefused } from './start-refused.ts';

/** Makes the folder when it is missing; returns its real path. Throws StartRefused when it cannot be made or written. */
export function makeDataFolder(path: string): string {
  try {
    if (!existsSync(path)) {
      makeFolders(path);
      // others may pass through to what belongs to them (the database), but not look around
      chmodSync(path, 0o711);
    }
    checkFolder(path);
    return realpathSync(path);
  } catch (error) {
    throw refusal(path, error);
  }
}

/** Throws what makeDataFolder would, as far as it can be known without making anything. */
export function checkDataFolder(path: string): void {
  try {
    if (existsSync(path)) {
      checkFolder(path);
      return;
    }
    let above = dirname(path);
    while (!existsSync(above)) above = dirname(above);
    if (!statSync(above).isDirectory()) throw coded('ENOTDIR');
    accessSync(above, constants.W_OK | constants.X_OK);
    if (NO_PLACE.has(statfsSync(above).type)) throw coded('ENOENT');
  } catch (error) {
    throw refusal(path, error);
  }
}

/** File systems of the kernel, in which nobody can make a folder whatever its rights say: proc, sysfs. */
const NO_PLACE: ReadonlySet<number> = new Set([0x9fa0, 0x62656572]);

function checkFolder(path: string): void {
  if (!statSync(path).isDirectory()) throw new StartRefused(`BURSAR_DATA_DIR: ${path} is not a folder: set it to another`);
  accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
}

const coded = (code: string): Error => Object.assign(new Error(code), { code });

function refusal(path: string, error: unknown): StartRefused {
  if (error instanceof StartRefused) return error;
  const { code } = error as NodeJS.ErrnoException;
  return new StartRefused(`BURSAR_DATA_DIR: ${path} cannot be made or written (${code}): set it to another folder`);
}

// mkdir's own way of making what lies above never ends where a file system answers ENOENT whatever is there (/proc)
function makeFolders(path: string): void {
  if (existsSync(path)) return;
  makeFolders(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // another process may be making it too
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
