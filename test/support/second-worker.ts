// Another worker of a running service's data folder: where one dies the other goes on, and both want the same payouts.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { SHELL } from '../cli/run.ts';

const CLI = join(import.meta.dirname, '../../src/main/cli.ts');

/** Starts it, again whenever it was killed. */
export function openSecondWorker(folder: string): { stop(): void } {
  let child: ChildProcess;
  function start(): void {
    child = spawn(process.execPath, [CLI, 'worker'], { env: { ...SHELL, BURSAR_DATA_DIR: folder }, stdio: 'ignore' });
    child.once('exit', (_code, signal) => {
      if (signal === 'SIGKILL') start();
    });
  }
  start();
  return { stop: () => void child.kill('SIGTERM') };
}
