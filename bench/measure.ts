// One row of the table: load on a server, with the CPU that the server and the database spent on it.
import { type LoadJob, type LoadResult, load } from './load-job.ts';
import { cpuMicros, postgresCpuMicros } from './processes.ts';

export type Server = { readonly port: number; readonly pid: number; readonly postmasterPid: number };
export type Measured = {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly nodeMicros: number;
  readonly postgresMicros: number;
};

export function cpuOf(measured: Measured): number {
  return measured.nodeMicros + measured.postgresMicros;
}

/** Runs the job; throws when any answer was not 200. */
export async function loadWell(job: LoadJob): Promise<LoadResult> {
  const result = await load(job);
  if (result.firstRefusal !== null)
    throw new Error(`${job.path} answered ${JSON.stringify(result.statuses)}, first: ${result.firstRefusal}`);
  return result;
}

export async function measure(server: Server, job: Omit<LoadJob, 'port'>): Promise<Measured> {
  const node = cpuMicros(server.pid);
  const postgres = postgresCpuMicros(server.postmasterPid);
  const result = await loadWell({ ...job, port: server.port });
  return {
    perSecond: result.requests / result.seconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    nodeMicros: (cpuMicros(server.pid) - node) / result.requests,
    postgresMicros: (postgresCpuMicros(server.postmasterPid) - postgres) / result.requests,
  };
}

/** The middle one by a figure. */
export function median<T>(list: readonly T[], figure: (one: T) => number): T {
  const sorted = list.toSorted((a, b) => figure(a) - figure(b));
  const middle = sorted[Math.floor((sorted.length - 1) / 2)];
  if (middle === undefined) throw new Error('a median of nothing');
  return middle;
}
