// Prometheus' text format, version 0.0.4.
import type { Metric } from '../../flow/metrics.ts';

export const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** A measure with its help, type and values, a line each; nothing where it has none. */
export function metricText({ name, help, type, values }: Metric): string {
  if (values.length === 0) return '';
  const lines = values.map(({ labels = {}, value }) => `${name}${labelText(labels)} ${value}`);
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n${lines.join('\n')}\n`;
}

/** `{name="value",…}`, or nothing. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  const written = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return written.length === 0 ? '' : `{${written.join()}}`;
}

const escaped = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
