// Named steps of a payout at which a test of the sandbox can hold a process, to kill it or to change the world around it there. A file in the
// sandbox's folder names the step; the process that reaches it takes the file, and goes on when what it put in its place is removed. On every
// other network nothing of this exists.
import { existsSync, renameSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Network } from '../../core/currency.ts';

/** The file that names a step, and the one that names the process which waits there. */
export const FAILPOINT = 'failpoint';
export const WAITING = 'failpoint-waiting';

const LOOK_EVERY_MS = 10;
/** A test that ended without removing the file stops nothing for good. */
const AT_MOST_MS = 120_000;

/** @returns what is called with each step that is reached; undefined where there are no failpoints */
export function failpoints(network: Network, dataFolder: string): ((step: string) => Promise<void>) | undefined {
  if (network !== 'sandbox') return undefined;
  const [file, waiting] = [FAILPOINT, WAITING].map((name) => join(dataFolder, 'sandbox', name)) as [string, string];
  return async (step) => {
    if (!existsSync(file) || (await readFile(file, 'utf8').catch(() => '')) !== step) return;
    try {
      renameSync(file, waiting);
    } catch {
      return; // another process was first
    }
    await writeFile(waiting, String(process.pid));
    for (const end = performance.now() + AT_MOST_MS; existsSync(waiting) && performance.now() < end; ) await delay(LOOK_EVERY_MS);
  };
}
