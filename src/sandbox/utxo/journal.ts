// The file that stores a simulated chain: one line of JSON per move, appended before the move is answered, and synced to disk unless it only
// concerns the mempool: that a real node forgets too when its machine goes down. A last line that a crash tore is cut off; any other line that
// cannot be read is an error, because what was answered must not vanish silently.
import { closeSync, fdatasyncSync, fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { damaged } from '../../core/damaged-file.ts';

export type Journal = {
  /**
   * Appends one line and returns when it is on disk.
   * @param isForgettable a crash of the machine may take it away; whatever ends a process does not
   */
  append(entry: unknown, isForgettable?: boolean): void;
  close(): void;
};

/** Whether the effects of a move only let transactions into the mempool. */
export const isOfMempool = (effects: readonly (readonly [kind: string, ...unknown[]])[]): boolean =>
  effects.every(([kind]) => kind === 'tx');

/** Makes a folder's entries durable (POSIX: fsync of the folder). */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

const NEWLINE = 0x0a;

const WAY = 'start with an empty BURSAR_DATA_DIR: this chain cannot be gone on with';

function openOrMake(path: string): number {
  try {
    return openSync(path, 'a+', 0o600);
  } catch (error) {
    throw damaged(path, error, WAY);
  }
}

/** Opens or creates a journal and passes every entry in it, oldest first, to `replay`. Throws DamagedFile. */
export function openJournal(path: string, replay: (entry: unknown) => void): Journal {
  const descriptor = openOrMake(path);
  const bytes = readFileSync(path);
  const end = bytes.lastIndexOf(NEWLINE) + 1;
  if (end < bytes.length) {
    ftruncateSync(descriptor, end);
    fsyncSync(descriptor);
  }
  if (bytes.length === 0) syncFolder(dirname(path));
  for (let start = 0, line = 1; start < end; line++) {
    const stop = bytes.indexOf(NEWLINE, start);
    try {
      replay(JSON.parse(bytes.toString('utf8', start, stop)));
    } catch (error) {
      throw damaged(`line ${line} of ${path}`, error, WAY);
    }
    start = stop + 1;
  }
  let broken = false;
  let closed = false;
  return {
    append: (entry, isForgettable = false) => {
      if (broken) throw new Error(`${path} could not be written before`);
      broken = true;
      const line = Buffer.from(`${JSON.stringify(entry)}\n`);
      for (let written = 0; written < line.length; ) written += writeSync(descriptor, line, written);
      if (!isForgettable) fdatasyncSync(descriptor);
      broken = false;
    },
    // a second time the descriptor may be another file's
    close() {
      if (!closed) closeSync(descriptor);
      closed = true;
    },
  };
}
