// BURSAR_DATA_DIR: created on first use, with permissions that let the database's user pass through. `bursar config check` only tests
// whether it could be created.
import { accessSync, chmodSync, constants, existsSync, mkdirSync, realpathSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { StartRefused } from './start-refused.ts';

/** Creates the folder when it is missing; returns its real path. Throws StartRefused when it cannot be created or written. */
export function makeDataFolder(path: string): string {
  try {
    if (!existsSync(path)) {
      makeFolders(path);
      // others may pass through to what belongs to them (the database), but not list the folder
      chmodSync(path, 0o711);
    }
    checkFolder(path);
    return realpathSync(path);
  } catch (error) {
    throw refusal(path, error);
  }
}

/** Throws what makeDataFolder would, as far as that can be known without creating anything. */
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

/** File systems of the kernel, in which nobody can create a folder whatever its permissions say: proc, sysfs. */
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

// mkdir's own recursive mode never ends on a file system that always answers ENOENT (/proc)
function makeFolders(path: string): void {
  if (existsSync(path)) return;
  makeFolders(dirname(path));
  try {
    mkdirSync(path);
  } catch (error) {
    // another process may be creating it too
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
