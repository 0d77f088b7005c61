// Reading a block against a full watch list, through the service's node adapter, from a node in its own process. Runs in its own process
// too, so that the memory of the list can be measured.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Figure } from './report.ts';

export type ScanResult = {
  readonly watched: number;
  readonly transactions: number;
  readonly hits: number;
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly scanMs: number;
  readonly listBytes: number;
};

/** @param watched how many addresses the list holds */
export async function scanBlock(watched: number): Promise<Figure[]> {
  const child = fork(fileURLToPath(new URL('scan-process.ts', import.meta.url)), [String(watched)], {
    execArgv: ['--expose-gc'],
  });
  const result = await new Promise<ScanResult>((resolve, reject) => {
    child.once('message', (message) => resolve(message as ScanResult));
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the scan ended with ${code}`)));
  });
  const list = `${result.watched.toLocaleString('en')} watched addresses`;
  return [
    {
      work: `block of ${result.transactions.toLocaleString('en')} transactions against ${list}`,
      measured: `${result.wallMs.toFixed(1)} ms with its transfer (CPU ${result.cpuMs.toFixed(1)} ms), ${result.scanMs.toFixed(1)} ms to scan; ${result.hits} found`,
      goal: '≤ 25 ms',
    },
    { work: `memory of the watch list, ${list}`, measured: `${(result.listBytes / 2 ** 20).toFixed(0)} MiB`, goal: '≤ 120 MB' },
  ];
}
