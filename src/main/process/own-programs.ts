// Runs a small program of the system to its end (sh, id, useradd). A signal to our whole process group ends it too: then it has not
// answered, and is run again.
import { type SpawnSyncOptions, spawnSync } from 'node:child_process';
import { StartRefused } from './start-refused.ts';

const MOST_TRIES = 4;

/** `status` null: it could not be run, and `error` says why. */
export type Answer = { readonly status: number | null; readonly said: string; readonly error: string | null };

/** Runs it; `said` is its standard output. Throws StartRefused when signals keep it from answering. */
export function runToEnd(program: string, args: readonly string[], options: SpawnSyncOptions = {}): Answer {
  for (let tries = 1; ; tries++) {
    const { status, signal, stdout, error } = spawnSync(program, args, { ...options, stdio: ['ignore', 'pipe', 'ignore'] });
    if (signal === null) return { status, said: stdout?.toString() ?? '', error: error?.message ?? null };
    if (tries === MOST_TRIES) throw new StartRefused(`${program} was ended by ${signal} before it answered: start again`);
  }
}
