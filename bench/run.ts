// `npm run bench [-- --quick] [-- --write]`: starts an instance and the bare limit beside it, loads both from a separate process, and
// prints what a request costs. --quick: a few seconds, meaningless figures, to test that it works. --write: also into bench/RESULTS.md.
// --profile: CPU profiles of every process of the service into bench/profiles. --only create,check: only those parts (--list names them).
import { writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { migrate } from '../src/store/postgres/migrate.ts';
import { apiMemory } from './api-memory.ts';
import { checkBodies, createBodies } from './bodies.ts';
import { catchUp, firstReading } from './catch-up.ts';
import { scanCurrencies } from './currencies.ts';
import { measureDust } from './dust.ts';
import { measureEvm } from './evm.ts';
import { collectFlood } from './flood.ts';
import { fillTransactions } from './growth.ts';
import { type Instance, PASSWORD, startInstance } from './instance.ts';
import { judgeReplaced } from './judge.ts';
import { measureLightning } from './lightning.ts';
import { type Limit, startLimit } from './limit.ts';
import { measureLives } from './lives.ts';
import { load } from './load-job.ts';
import { cpuOf, loadWell, type Measured, measure, median, type Server } from './measure.ts';
import { options, type PartName, SIZE, wanted } from './options.ts';
import { measurePayouts } from './payouts.ts';
import { type Figure, figureTable, loadTable, machine, type Row, results } from './report.ts';
import { atRest } from './rest.ts';
import { scanBlock } from './scan.ts';
import { startAndRest } from './start.ts';
import { watchMemory } from './watch-memory.ts';
import { measureWebhooks } from './webhooks.ts';

const REQUESTS: readonly PartName[] = ['check', 'create', 'account', 'lists', 'auth'];
const CONNECTIONS = [1, 8, 16, 64];
const SETTLE_MS = 3_000;

type Bench = {
  readonly instance: Instance;
  readonly limit: Limit;
  readonly service: Server;
  readonly bare: Server;
  token: string;
};

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
/** Both servers in turn, several times, so that other work on the machine affects both; reports the median of each. */
async function besideLimit(
  bench: Bench,
  { path, connections }: { path: string; connections: number },
  bodies: readonly string[],
  limitBodies: readonly string[],
): Promise<Row> {
  const job = { path, connections, seconds: SIZE.seconds };
  const [own, bare]: Measured[][] = [[], []];
  await measure(bench.bare, { ...job, bodies: limitBodies });
  await measure(bench.service, { ...job, bodies });
  for (let round = 0; round < SIZE.rounds; round++) {
    bare?.push(await measure(bench.bare, { ...job, bodies: limitBodies }));
    own?.push(await measure(bench.service, { ...job, bodies }));
  }
  return { work: path.slice(1), connections, measured: median(own ?? [], cpuOf), limit: median(bare ?? [], cpuOf) };
}

async function alone(bench: Bench, path: string, body: unknown, connections: number): Promise<Row> {
  const job = { path, connections, seconds: SIZE.seconds, bodies: [JSON.stringify(body)] };
  await measure(bench.service, job);
  const all: Measured[] = [];
  for (let round = 0; round < SIZE.rounds; round++) all.push(await measure(bench.service, job));
  return { work: path.slice(1), connections, measured: median(all, cpuOf), limit: null };
}

async function chains({ instance }: Bench): Promise<Figure[]> {
  say('catch-up, and the memory of the watch lists');
  return [
    await catchUp(await migrated(instance, 'bursar_catch_up'), SIZE.behind),
    await firstReading(await migrated(instance, 'bursar_first_reading'), SIZE.waiting),
    await watchMemory(await migrated(instance, 'bursar_watch'), SIZE.watched),
  ];
}

/** The URL of a new database without rows. */
async function migrated(instance: Instance, name: string): Promise<string> {
  const url = await instance.emptyDatabase(name);
  await migrate({ url });
  return url;
}

async function parallelCreates(bench: Bench): Promise<Figure> {
  say('200 parallel creates');
  const job = {
    port: bench.instance.port,
    path: '/create_transaction',
    bodies: createBodies(bench.token),
    connections: 200,
    requests: 200,
  };
  const result = await load({ ...job, collect: 'wallet_address' });
  const distinct = new Set(result.collected).size;
  return {
    work: '200 parallel creates',
    measured: `${distinct} distinct addresses, ${200 - (result.statuses[200] ?? 0)} errors, ${(result.seconds * 1000).toFixed(0)} ms in all`,
    goal: '200 distinct, 0 errors',
  };
}

async function growth(bench: Bench): Promise<Figure> {
  async function p99(rows: number): Promise<number> {
    say(`create at ${rows.toLocaleString('en')} rows`);
    await fillTransactions(bench.instance.databaseUrl, rows);
    bench.token = await bench.instance.token();
    const job = { path: '/create_transaction', connections: 8, requests: SIZE.growthRequests, bodies: createBodies(bench.token) };
    const all: Measured[] = [];
    for (let round = 0; round <= SIZE.rounds; round++) all.push(await measure(bench.service, job));
    return median(all.slice(1), (one) => one.p99Ms).p99Ms;
  }
  const small = await p99(SIZE.smallRows);
  const large = await p99(SIZE.largeRows);
  return {
    work: `p99 of create at ${SIZE.largeRows.toLocaleString('en')} rows against ${SIZE.smallRows.toLocaleString('en')}`,
    measured: `${large.toFixed(2)} ms against ${small.toFixed(2)} ms: ${(large / small).toFixed(2)} ×`,
    goal: '≤ 1.3 ×',
  };
}

async function loadRows(bench: Bench): Promise<Row[]> {
  const { token, limit } = bench;
  const job = {
    port: bench.instance.port,
    path: '/create_transaction',
    bodies: createBodies(token),
    connections: 8,
    requests: options.quick ? 100 : 5000,
  };
  const { collected: ids } = await loadWell({ ...job, collect: 'transaction_id' });
  const rows: Row[] = [];
  for (const [name, path, own, bare] of [
    ['check', '/check_transaction', checkBodies(token, ids), checkBodies(limit.token, limit.ids)],
    ['create', '/create_transaction', createBodies(token), createBodies(limit.token)],
  ] as const) {
    if (!wanted(name)) continue;
    say(path.slice(1));
    for (const connections of CONNECTIONS) rows.push(await besideLimit(bench, { path, connections }, own, bare));
  }
  for (const [name, path, body, connections] of [
    ['account', '/get_account_info', { access_token: token }, [64]],
    ['lists', '/list_transactions', { access_token: token, limit: 20 }, [1, 64]],
    ['auth', '/auth', { username: 'demo', password: PASSWORD }, [2]],
  ] as const) {
    if (!wanted(name)) continue;
    say(path.slice(1));
    for (const count of connections) rows.push(await alone(bench, path, body, count));
  }
  return rows;
}

async function open(): Promise<Bench> {
  say('starting the service');
  const folder = fileURLToPath(new URL('profiles', import.meta.url));
  const instance = await startInstance(options.profile ? `--cpu-prof --cpu-prof-dir=${folder}` : '');
  try {
    const limit = await startLimit(await instance.emptyDatabase('bursar_limit'));
    const { port, apiPid, postmasterPid } = instance;
    const bare = { port: limit.port, pid: limit.pid, postmasterPid };
    return { instance, limit, service: { port, pid: apiPid, postmasterPid }, bare, token: await instance.token() };
  } catch (error) {
    await instance.stop();
    throw error;
  }
}

/** The parts that need no instance beside them. */
async function withoutInstance(): Promise<Figure[]> {
  const { quick } = options;
  const figures: Figure[] = [];
  if (wanted('scan')) {
    say('block scan');
    figures.push(...(await scanBlock(SIZE.watched)), ...scanCurrencies({ quick }));
  }
  if (wanted('replaced')) figures.push(judgeReplaced());
  if (wanted('flood')) figures.push(collectFlood(quick ? 2_000 : undefined));
  if (wanted('start')) {
    say('start, and memory at rest');
    figures.push(...(await startAndRest({ quick })));
  }
  if (wanted('rest')) {
    say('what is spent at rest');
    figures.push(...(await atRest({ quick })));
  }
  return figures;
}

/**
 * Parts by the instance they share. What one part leaves behind (hundreds of thousands of orders that time out when the clock moves, tables
 * that are vacuumed) would be measured with the next, so those that do not need each other have one of their own.
 */
const ON_INSTANCES: readonly {
  readonly parts: readonly PartName[];
  work(bench: Bench): Promise<{ readonly rows?: readonly Row[]; readonly figures?: readonly Figure[] }>;
}[] = [
  {
    parts: ['dust', 'chains', 'memory', 'parallel', ...REQUESTS],
    async work(bench) {
      const figures: Figure[] = [];
      if (wanted('dust')) {
        say('an order that is paid in very many outputs');
        figures.push(...(await measureDust(await migrated(bench.instance, 'bursar_dust'), SIZE.dust)));
      }
      if (wanted('chains')) figures.push(...(await chains(bench)));
      if (wanted('memory')) figures.push(...(await apiMemory(bench.instance, bench.token)));
      if (wanted('parallel')) figures.push(await parallelCreates(bench));
      return { figures, rows: wanted(...REQUESTS) ? await loadRows(bench) : [] };
    },
  },
  {
    parts: ['evm'],
    work: async ({ instance }) => ({ figures: await measureEvm((name) => migrated(instance, name), SIZE.evm) }),
  },
  { parts: ['lives'], work: async ({ instance }) => ({ figures: await measureLives(instance, SIZE.lives) }) },
  {
    parts: ['payouts'],
    work: async ({ instance }) => {
      const size = { requests: options.quick ? 20 : 500, rounds: SIZE.rounds };
      return { figures: [await measurePayouts(instance, size)] };
    },
  },
  { parts: ['lightning'], work: async ({ instance }) => ({ figures: await measureLightning(instance, SIZE.lightning) }) },
  { parts: ['webhooks'], work: async ({ instance }) => ({ figures: await measureWebhooks(instance, SIZE.webhooks) }) },
  { parts: ['growth'], work: async (bench) => ({ figures: [await growth(bench)] }) },
];

async function close(bench: Bench): Promise<void> {
  bench.limit.stop();
  await bench.instance.stop();
}

/** A quick run has one instance for all of them: its figures have no meaning anyway. */
async function onInstances(): Promise<{ readonly rows: readonly Row[]; readonly figures: readonly Figure[] }> {
  const rows: Row[] = [];
  const figures: Figure[] = [];
  let bench: Bench | null = null;
  const stop = (): void => void bench?.instance.stop().then(() => process.exit(1));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop);
  try {
    for (const { parts, work } of ON_INSTANCES) {
      if (!wanted(...parts)) continue;
      say(parts.filter((part) => wanted(part)).join(', '));
      if (bench === null) {
        bench = await open();
        if (!options.quick) await delay(SETTLE_MS);
      }
      const measured = await work(bench);
      rows.push(...(measured.rows ?? []));
      figures.push(...(measured.figures ?? []));
      if (options.quick) continue;
      await close(bench);
      bench = null;
    }
  } finally {
    if (bench !== null) await close(bench);
  }
  return { rows, figures };
}

async function main(): Promise<void> {
  const place = machine();
  const figures = await withoutInstance();
  const measured = await onInstances();
  figures.push(...measured.figures);
  const tables = [
    ...(measured.rows.length === 0 ? [] : [loadTable(measured.rows)]),
    ...(figures.length === 0 ? [] : [figureTable(figures)]),
  ];
  const text = `${tables.join('\n\n')}\n`;
  process.stdout.write(`\n${place}\n\n${text}`);
  if (options.write) writeFileSync(new URL('RESULTS.md', import.meta.url), results(place, measured.rows, SIZE, text));
}

main().catch((error: Error) => {
  process.stderr.write(`bench: ${error.message}\n`);
  process.exit(1);
});
