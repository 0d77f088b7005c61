// The commands that run the service or look at its settings: start, api, worker, signer, migrate, config check.
import { createServer } from 'node:net';
import type { Command } from 'commander';
import { formatAmount } from '../core/money.ts';
import { migrate } from '../store/migrate.ts';
import { EXIT, group, leaf, print } from './cli-output.ts';
import { readConfig, readConfigOfAll, readSignerSecrets } from './config.ts';
import { TABLE, VARIABLES } from './config-table.ts';
import { checkDataFolder, makeDataFolder } from './data-folder.ts';
import { listenRefused } from './listen-refused.ts';
import { openDatabase } from './postgres.ts';
import { StartRefused } from './start-refused.ts';

type JsonOption = { readonly json?: boolean };

/** The entries of the processes; each runs by being imported, in this very process, and ends it when it is told to. */
const PROCESSES = {
  start: { about: 'everything in one process group, as npm start does', run: () => import('./start.ts') },
  api: { about: 'the HTTP API alone', run: () => import('./api.ts') },
  worker: { about: 'the worker alone', run: () => import('./worker.ts') },
  signer: { about: 'the signer alone: the process that holds the keys', run: () => import('./signer.ts') },
} as const;

export function addProcessCommands(bursar: Command): void {
  for (const [name, { about, run }] of Object.entries(PROCESSES)) {
    leaf(bursar, name, `Runs ${about}.`).action(async ({ json }: JsonOption) => {
      if (json === true) speakJson(name);
      await run();
      process.exitCode = EXIT.running;
    });
  }
  leaf(bursar, 'migrate', "Brings the database to today's schema.").action(async ({ json }: JsonOption) => {
    const applied = await migrateNow();
    print(json, { applied }, applied.length === 0 ? ['The schema is up to date.'] : applied.map((name) => `applied ${name}`));
  });
  const config = group(bursar, 'config', 'Settings of the environment.');
  leaf(config, 'check', 'Reads every setting and says what is wrong, all at once.').action(async ({ json }: JsonOption) => {
    const values = shownSettings();
    await checkPlaces();
    const lines = Object.entries(values).map(([name, value]) => `${name}=${value ?? ''}`);
    print(json, { ok: true, settings: values }, [...lines, 'The configuration is right.']);
  });
}

/**
 * What the process says goes to standard error; standard output gets one JSON line when it is ready. When it fails, the last line on
 * standard error is the reason in JSON, as of every command.
 */
function speakJson(name: string): void {
  let isReady = false;
  // before it is ready the last line is held back: it may be the reason, which is told once
  let last: string | null = null;
  const flush = (): void => {
    if (last !== null && !isReady) process.stderr.write(`${last}\n`);
  };
  console.error = (line: unknown) => {
    flush();
    last = String(line);
    if (isReady) process.stderr.write(`${last}\n`);
  };
  console.log = (line: string) => {
    const ready = /(?:^|: )ready (\S+)/.exec(line);
    if (ready !== null) {
      flush();
      isReady = true;
    }
    process.stderr.write(`${line}\n`);
    if (ready !== null) process.stdout.write(`${JSON.stringify({ process: name, ready: ready[1] })}\n`);
  };
  process.on('exit', (code) => {
    if (code === 0) flush();
    else process.stderr.write(`${JSON.stringify({ error: 'failed', message: last ?? `${name} ended with ${code}` })}\n`);
  });
}

async function migrateNow(): Promise<readonly string[]> {
  const config = readConfig();
  makeDataFolder(config.dataFolder);
  const database = await openDatabase(config);
  try {
    return await migrate({ url: database.url, network: config.network });
  } finally {
    await database.close();
  }
}

/** What a start would refuse of its folder and its host; nothing is made, and the port may be in use by the service itself. */
async function checkPlaces(): Promise<void> {
  const { dataFolder, host, port } = readConfig();
  const problems: string[] = [];
  const note = (error: Error): void => void problems.push(error.message);
  try {
    checkDataFolder(dataFolder);
  } catch (error) {
    note(error as Error);
  }
  await new Promise<void>((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => reject(listenRefused(host, port, error)));
    server.listen(0, host, () => server.close(() => resolve()));
  }).catch(note);
  if (problems.length > 0) throw new StartRefused(problems.join('\n'));
}

/** Every setting by its variable's name; of secrets only whether they are set. */
function shownSettings(): Record<string, string | null> {
  const config = { ...readConfigOfAll(), ...readSignerSecrets() };
  const keys = Object.keys(VARIABLES) as (keyof typeof VARIABLES)[];
  return Object.fromEntries(
    keys.map((key, index) => {
      const row = TABLE[index];
      const value = config[key];
      const shown = value === null ? null : shownValue(value);
      return [row?.name ?? key, row?.secret === true && value !== null ? '(set)' : shown];
    }),
  );
}

function shownValue(value: string | number | bigint | readonly string[]): string {
  if (typeof value === 'bigint') return formatAmount(value, 'USD');
  return typeof value === 'object' ? value.join(',') : String(value);
}
