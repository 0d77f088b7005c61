// Another worker of a running service's data folder: where one dies the other goes on, and both want the same payouts.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { SHELL } from '../cli/run.ts';

const CLI = join(import.meta.dirname, '../../src/main/cli.ts');

export type SecondWorker = {
  /** Null: it has just ended. */
  pid(): number | null;
  /** Resolves when it has ended. */
  stop(): Promise<void>;
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
    async stop() {
      isStopped = true;
      if (child === null || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}
