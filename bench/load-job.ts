// A piece of load and its result: the messages between the bench and its load generator, which runs in its own process so that its CPU is
// not counted.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export type LoadJob = {
  readonly port: number;
  readonly path: string;
  /** Sent in turn; `{n}` in a body becomes the number of the request. */
  readonly bodies: readonly string[];
  readonly connections: number;
  /** How many requests in all; otherwise for how long. */
  readonly requests?: number;
  readonly seconds?: number;
  /** A member to collect from each answer, for example `wallet_address`. */
  readonly collect?: string;
};
export type LoadResult = {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly collected: readonly string[];
  /** The first answer that was not 200, for the message. */
  readonly firstRefusal: string | null;
};

/** Runs one job in a new process and waits for it. Throws when a connection breaks. */
export async function load(job: LoadJob): Promise<LoadResult> {
  const child = fork(fileURLToPath(new URL('load-generator.ts', import.meta.url)), { serialization: 'advanced' });
  try {
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code) => reject(new Error(`the load generator ended with ${code}`)));
      child.once('message', (result) => resolve(result as LoadResult));
      child.send(job);
    });
  } finally {
    child.removeAllListeners('exit');
    child.disconnect();
  }
}
