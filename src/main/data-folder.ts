// BURSAR_DATA_DIR: made on first use, in a form that the database's user may pass through. Called by every process of src/main.
import { accessSync, chmodSync, constants, existsSync, mkdirSync, realpathSync, statSync } from 'node:fs';
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
    if (!statSync(path).isDirectory()) throw new StartRefused(`BURSAR_DATA_DIR: ${path} is not a folder: set it to another`);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return realpathSync(path);
  } catch (error) {
    if (error instanceof StartRefused) throw error;
    throw new StartRefused(
      `BURSAR_DATA_DIR: ${path} cannot be made or written (${(error as NodeJS.ErrnoException).code}): set it to another folder`,
    );
  }
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
