// Another worker of a running service's data folder: where one dies the other goes on, and both want the same payouts.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { SHELL } from '../cli/run.ts';

const CLI = join(import.meta.dirname, '../../src/main/cli.ts');

export type SecondWorker = {
  /** Null: it has just ended. */
  pid(): number | null;
  stop(): void;
};

/** Starts it, again at once whenever it has ended. */
export function openSecondWorker(folder: string): SecondWorker {
  let child: ChildProcess | null = null;
  let isStopped = false;
  function start(): void {
    const mine = spawn(process.execPath, [CLI, 'worker'], { env: { ...SHELL, BURSAR_DATA_DIR: folder }, stdio: 'ignore' });
    child = mine;
    mine.once('exit', () => {
      if (!isStopped) start();
    });
  }
  start();
  return {
    pid: () => child?.pid ?? null,
    stop() {
      isStopped = true;
      child?.kill('SIGTERM');
    },
  };
}
