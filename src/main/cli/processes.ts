// The commands that run the service: start, api, worker, signer, migrate.
import type { Command } from 'commander';
import { migrate } from '../../store/postgres/migrate.ts';
import { readConfig } from '../config/read-config.ts';
import { openDatabase } from '../postgres/embedded.ts';
import { makeDataFolder } from '../process/data-folder.ts';
import { EXIT, leaf, print } from './output.ts';

type JsonOption = { readonly json?: boolean };

/** The entries of the processes; each runs by being imported, in this very process, and ends it when it is stopped. */
const PROCESSES = {
  start: { about: 'everything in one process group, as npm start does', run: () => import('../start.ts') },
  api: { about: 'the HTTP API alone', run: () => import('../api.ts') },
  worker: { about: 'the worker alone', run: () => import('../worker.ts') },
  signer: { about: 'the signer alone: the process that holds the keys', run: () => import('../signer.ts') },
} as const;

/** Adds a command for each process (`start`, `api`, `worker`, `signer`), and `migrate`, which ends when the schema is current. */
export function addProcessCommands(bursar: Command): void {
  for (const [name, { about, run }] of Object.entries(PROCESSES)) {
    leaf(bursar, name, `Runs ${about}.`).action(async ({ json }: JsonOption) => {
      if (json === true) speakJson(name);
      await run();
      process.exitCode = EXIT.running;
    });
  }
  leaf(bursar, 'migrate', 'Brings the database to the current schema.').action(async ({ json }: JsonOption) => {
    const applied = await migrateNow();
    print(json, { applied }, applied.length === 0 ? ['The schema is up to date.'] : applied.map((name) => `applied ${name}`));
  });
}

/**
 * The process's output goes to standard error; standard output gets one JSON line when it is ready. When it fails, the last line on
 * standard error is the reason in JSON, as for every command.
 */
function speakJson(name: string): void {
  let isReady = false;
  // before it is ready the last line is held back: it may be the reason, which is printed once
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
