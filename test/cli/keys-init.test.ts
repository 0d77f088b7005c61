// `bursar keys init` at its most critical moment: the words are printed before the seed is stored, so no seed exists whose words nobody
// saw; and words whose seed could not be stored are declared void.
import { execFileSync, spawn } from 'node:child_process';
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { freshDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';
import { runCli, SHELL } from './run.ts';

vi.setConfig({ testTimeout: 60_000 });
const CLI = fileURLToPath(new URL('../../src/main/cli.ts', import.meta.url));
const isLinux = process.platform === 'linux';

let database: Awaited<ReturnType<typeof freshDatabase>>;
let folder: string;
let settings: Record<string, string>;
beforeEach(async () => {
  database = await freshDatabase();
  folder = mkdtempSync(join(tmpdir(), 'bursar-init-'));
  settings = { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest' };
});
afterEach(async () => {
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

/** Runs it with its standard output on this descriptor. */
function init(output: number, ...options: string[]): Promise<{ code: number | null; err: string }> {
  const env = { ...SHELL, ...settings };
  const child = spawn(process.execPath, [CLI, 'keys', 'init', ...options], { env, stdio: ['ignore', output, 'pipe'] });
  let err = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, err })));
}
const seed = () => join(folder, 'signer', 'seed.json');
const keys = async () => (await database.db.query<{ n: bigint }>({ text: 'select count(*) as n from account_xpubs' })).rows[0]?.n;

test.runIf(isLinux).each([[[]], [['--json']]])('words that cannot be written out (%j) leave no seed', async (options) => {
  const full = openSync('/dev/full', 'w');
  const ran = await init(full, ...options);
  closeSync(full);
  expect(ran.code).toBe(1);
  expect(ran.err).toMatch(/the 24 words could not be written out \(.*ENOSPC.*\): no seed was stored/);
  expect(ran.err).not.toMatch(/^\s+at /m);
  expect(existsSync(seed())).toBe(false);
  expect(readdirSync(join(folder, 'signer')).filter((name) => name.startsWith('seed'))).toEqual([]);
  expect(await keys()).toBe(0n);
  expect((await runCli(['keys', 'init'], settings)).code).toBe(0);
});

test.runIf(isLinux)('words whose seed cannot be stored any more are called void', async () => {
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const output = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  // nothing more fits in until it is read
  const chunk = Buffer.alloc(4096, '.');
  for (let isFull = false; !isFull; ) {
    try {
      writeSync(output, chunk);
    } catch {
      isFull = true;
    }
  }
  const blocking = openSync(pipe, 'w');
  const ran = init(blocking);
  await eventually('the seed that is being made', () => {
    const signer = join(folder, 'signer');
    return existsSync(signer) && readdirSync(signer).some((name) => name.startsWith('seed.json.'));
  });
  writeFileSync(seed(), 'made by somebody else');
  let said = '';
  const drain = setInterval(() => {
    try {
      for (;;) said += chunk.toString('latin1', 0, readSync(output, chunk));
    } catch {
      // empty for now
    }
  }, 10);
  const { code, err } = await ran;
  clearInterval(drain);
  closeSync(blocking);
  closeSync(output);
  expect(code).toBe(1);
  expect(said).toMatch(/\n([a-z]+ ){23}[a-z]+\n/);
  expect(said).not.toContain('sealed.');
  expect(err).toMatch(/^bursar: there is a seed in .* already: .*; the 24 words above are VOID: no seed of theirs was stored\n$/);
  expect(await keys()).toBe(0n);
});
