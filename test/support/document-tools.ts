// Other people's programs: those that read the OpenAPI document (schemathesis, openapi-python-client, openapi-typescript), and libraries that
// verify webhooks, and the language of a receiver.
// scripts/peers fetches them. On Debian one that cannot be had is a failure; elsewhere its suite is skipped, and says why.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export type Ran = { readonly code: number | null; readonly output: string };

/** Runs a program to its end; the API that it asks lives in this process, so nothing may block it. */
export function run(
  program: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}

type Tool = { readonly path: string } | { readonly path: null; readonly reason: string };

/**
 * The command that scripts/peers/<name>.sh leaves, or why it cannot be had.
 * Refused with an Error where it has to be there.
 */
export async function documentTool(name: 'schemathesis' | 'openapi-typescript' | 'webhook-libraries' | 'php'): Promise<Tool> {
  const { code, output } = await run('bash', [
    join(fileURLToPath(new URL('../../scripts/peers', import.meta.url)), `${name}.sh`),
  ]);
  const last = output.trim().split('\n').at(-1) ?? '';
  if (code === 0) return { path: last };
  if (existsSync('/etc/debian_version')) throw new Error(`${name} cannot be had:\n${output}`);
  return { path: null, reason: `${name} cannot be had: ${last}` };
}
