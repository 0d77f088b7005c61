// The load: keep-alive connections that each send the next request when their answer has arrived. Written on bare sockets, because on two
// cores a generator that costs as much as the server would measure itself.
import { connect } from 'node:net';
import type { LoadJob, LoadResult } from './load-job.ts';

const HEADER_END = Buffer.from('\r\n\r\n');

type Tally = {
  sent: number;
  done: number;
  latencies: number[];
  statuses: Record<string, number>;
  collected: string[];
  firstRefusal: string | null;
};

function requestText(job: LoadJob, number: number): string {
  const body = (job.bodies[number % job.bodies.length] as string).replaceAll('{n}', String(number));
  const head = `POST ${job.path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n`;
  return `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

function drive(job: LoadJob, tally: Tally, more: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: job.port, host: '127.0.0.1', noDelay: true });
    let pending: Buffer | null = null;
    let started = 0;
    function next(): void {
      if (!more()) {
        socket.end();
        resolve();
        return;
      }
      started = performance.now();
      socket.write(requestText(job, tally.sent++));
    }
    socket.once('connect', next);
    socket.once('error', reject);
    socket.once('close', () => reject(new Error(`${job.path}: the server closed a connection`)));
    socket.on('data', (chunk: Buffer) => {
      pending = pending === null ? chunk : Buffer.concat([pending, chunk]);
      const end = pending.indexOf(HEADER_END);
      if (end < 0) return;
      const head = pending.toString('latin1', 0, end);
      const length = /content-length: (\d+)/i.exec(head)?.[1];
      if (length === undefined) {
        reject(new Error(`${job.path}: an answer without content-length: ${head}`));
        return;
      }
      if (pending.length < end + 4 + Number(length)) return;
      note(job, tally, head.slice(9, 12), pending.subarray(end + 4), performance.now() - started);
      pending = null;
      next();
    });
  });
}

function note(job: LoadJob, tally: Tally, status: string, body: Buffer, milliseconds: number): void {
  tally.done += 1;
  tally.latencies.push(milliseconds);
  tally.statuses[status] = (tally.statuses[status] ?? 0) + 1;
  if (status !== '200') tally.firstRefusal ??= `${status} ${body.toString('utf8').slice(0, 300)}`;
  else if (job.collect !== undefined)
    tally.collected.push(String((JSON.parse(body.toString('utf8')) as Record<string, unknown>)[job.collect]));
}

async function run(job: LoadJob): Promise<LoadResult> {
  const tally: Tally = { sent: 0, done: 0, latencies: [], statuses: {}, collected: [], firstRefusal: null };
  const started = performance.now();
  const until = started + (job.seconds ?? Number.POSITIVE_INFINITY) * 1000;
  const more = () => tally.sent < (job.requests ?? Number.POSITIVE_INFINITY) && performance.now() < until;
  await Promise.all(Array.from({ length: job.connections }, () => drive(job, tally, more)));
  const seconds = (performance.now() - started) / 1000;
  const sorted = Float64Array.from(tally.latencies).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  const { statuses, collected, firstRefusal } = tally;
  return { requests: tally.done, seconds, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1), statuses, collected, firstRefusal };
}

process.once('message', (job) => {
  run(job as LoadJob).then(
    (result) => process.send?.(result),
    (error: Error) => {
      process.stderr.write(`${error.message}\n`);
      process.exit(1);
    },
  );
});
