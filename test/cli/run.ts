// Runs `bursar <command>` as a separate process, as an operator does; returns its output and exit code.
import { type ChildProcess, execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What seals the rows of a database that has no service. */
export const CREDENTIAL_KEY = '07'.repeat(32);
const CLI = fileURLToPath(new URL('../../src/main/cli.ts', import.meta.url));

export type Environment = Readonly<Record<string, string>>;
/** What a shell gives it, and where `bin/bursar` keeps compiled code: without it each command takes three times as long to start. */
export const SHELL: Environment = {
  PATH: process.env.PATH ?? '',
  HOME: process.env.HOME ?? '',
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url)),
  BURSAR_ENV_FILE: '/dev/null',
};

export type Ran = { readonly code: number; readonly out: string; readonly err: string };

/** Starts a command that runs until it is stopped. */
export function startCli(
  args: readonly string[],
  environment: Environment,
  input = '',
): { readonly child: ChildProcess; readonly ended: Promise<Ran> } {
  // only what a shell would give it, and the test's settings
  // a database of the test's own has no data folder with a key
  const own = environment.BURSAR_DATA_DIR === undefined ? mkdtempSync(join(tmpdir(), 'bursar-cli-')) : null;
  const owned = own === null ? {} : { BURSAR_DATA_DIR: own, BURSAR_CREDENTIAL_KEY: CREDENTIAL_KEY };
  const env = { ...SHELL, ...owned, ...environment };
  let ended: (ran: Ran) => void;
  const whole = new Promise<Ran>((resolve) => {
    ended = resolve;
  });
  const child = execFile(process.execPath, [CLI, ...args], { env, timeout: 60_000 }, (error, out, err) => {
    if (own !== null) rmSync(own, { recursive: true, force: true });
    ended({ code: error === null ? 0 : Number(error.code ?? -1), out, err });
  });
  // most commands do not read it
  child.stdin?.on('error', () => undefined).end(input);
  return { child, ended: whole };
}

/** Runs it to its end, with this on its standard input. */
export function runCli(args: readonly string[], environment: Environment, input = ''): Promise<Ran> {
  return startCli(args, environment, input).ended;
}

/** The one JSON value that a command with --json prints; fails the test with the command's output when the command failed. */
export async function askCli<T>(args: readonly string[], environment: Environment, expected = 0): Promise<T> {
  const ran = await runCli([...args, '--json'], environment);
  if (ran.code !== expected) throw new Error(`bursar ${args.join(' ')} ended with ${ran.code}: ${ran.err}${ran.out}`);
  return JSON.parse(expected === 0 || ran.out !== '' ? ran.out : ran.err) as T;
}
