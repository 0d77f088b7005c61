// /metrics on a port of its own (BURSAR_METRICS_PORT), for a monitoring inside: it has no sign-in, so that port must not face the internet.
import type { Server } from 'node:http';
import type { Metrics } from '../../flow/metrics.ts';
import type { Report } from '../reply-error.ts';
import type { Durations } from './durations.ts';
import { METRICS_TYPE, metricText } from './text.ts';

// not by an import: see server.ts
const { createServer } = process.getBuiltinModule('node:http');

/** However often it is asked, the database is read this often at most. */
const KEPT_MS = 5_000;

type Options = { readonly metrics: Metrics; readonly durations: Durations; readonly report: Report };

/** A server that does not listen yet. A database that does not answer is told as `bursar_database_up 0`, with what this process knows itself. */
export function createMetricsServer({ metrics, durations, report }: Options): Server {
  let kept: { readonly text: string; readonly atMs: number } | null = null;
  let reading: Promise<string> | null = null;

  async function fromDatabase(): Promise<string> {
    if (kept !== null && performance.now() - kept.atMs < KEPT_MS) return kept.text;
    try {
      const text = (await metrics.read()).map(metricText).join('');
      kept = { text: `${upText(1)}${text}`, atMs: performance.now() };
      return kept.text;
    } catch (error) {
      report({ requestId: 'none', path: '/metrics', error }, 'metrics could not be read');
      return upText(0);
    }
  }

  function shared(): Promise<string> {
    reading ??= fromDatabase().finally(() => {
      reading = null;
    });
    return reading;
  }

  return createServer((request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') return void response.writeHead(404).end();
    if (request.method !== 'GET' && request.method !== 'HEAD') return void response.writeHead(405, { allow: 'GET, HEAD' }).end();
    void shared().then((text) => {
      response.writeHead(200, { 'content-type': METRICS_TYPE });
      response.end(request.method === 'HEAD' ? '' : `${text}${ofProcess()}${durations.text()}`);
    });
  });
}

const upText = (value: 0 | 1): string =>
  metricText({ name: 'bursar_database_up', help: 'Whether the database answers (1).', type: 'gauge', values: [{ value }] });

/** By the names that Prometheus' own clients use. */
function ofProcess(): string {
  const { user, system } = process.cpuUsage();
  return [
    {
      name: 'process_cpu_seconds_total',
      help: 'CPU time of the API process.',
      type: 'counter' as const,
      value: (user + system) / 1e6,
    },
    {
      name: 'process_resident_memory_bytes',
      help: 'Memory of the API process.',
      type: 'gauge' as const,
      value: process.memoryUsage.rss(),
    },
  ]
    .map(({ value, ...metric }) => metricText({ ...metric, values: [{ value }] }))
    .join('');
}
