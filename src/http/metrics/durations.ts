// How long calls of the API take, by operation: a histogram as Prometheus reads it.
import type { FastifyInstance } from 'fastify';
import { labelText } from './text.ts';

/** Upper bounds in seconds. */
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const;
const NAME = 'bursar_http_request_duration_seconds';
/** Answers that go on for as long as their client wants, and so have no duration. */
const ENDLESS: ReadonlySet<string> = new Set(['/stream_events', '/v1/stream_events', '/pay/:token/events']);

type Series = { readonly counts: number[]; sum: number; count: number };

export type Durations = {
  /** Counts what this server answers from now on. */
  watch(app: FastifyInstance): void;
  text(): string;
};

/** Nothing is counted when it is made. */
export function createDurations(): Durations {
  const series = new Map<string, Series>();

  function note(route: string, status: number, seconds: number): void {
    const labels = labelText({ route, status: String(status) });
    const one = series.get(labels) ?? { counts: BOUNDS.map(() => 0), sum: 0, count: 0 };
    series.set(labels, one);
    one.sum += seconds;
    one.count += 1;
    for (const [index, bound] of BOUNDS.entries()) if (seconds <= bound) one.counts[index] = (one.counts[index] as number) + 1;
  }

  return {
    watch(app) {
      app.addHook('onResponse', (request, reply, done) => {
        // of what no route takes only that is counted: paths that others make up would be labels without end
        const route = request.routeOptions.url ?? 'none';
        if (!ENDLESS.has(route)) note(route, reply.statusCode, reply.elapsedTime / 1_000);
        done();
      });
    },
    text() {
      if (series.size === 0) return '';
      const lines = [`# HELP ${NAME} Time from a request to its answer, by route and status.`, `# TYPE ${NAME} histogram`];
      for (const [labels, { counts, sum, count }] of series) {
        const open = labels.slice(0, -1);
        for (const [index, bound] of BOUNDS.entries()) lines.push(`${NAME}_bucket${open},le="${bound}"} ${counts[index]}`);
        lines.push(`${NAME}_bucket${open},le="+Inf"} ${count}`, `${NAME}_sum${labels} ${sum}`, `${NAME}_count${labels} ${count}`);
      }
      return `${lines.join('\n')}\n`;
    },
  };
}
