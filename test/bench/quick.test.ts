import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

test('npm run bench starts an instance of its own, measures every row and leaves nothing behind', {
  timeout: 120_000,
}, async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['bench/run.ts', '--quick'], { cwd: ROOT });
  for (const work of [
    'check_transaction',
    'create_transaction',
    'get_account_info',
    'list_transactions',
    'auth',
    'block of 2,200 transactions',
    'memory of the watch list',
    'catch-up on blocks',
    'memory \\(RSS\\) of five chains',
    'p99 of create',
    'API memory',
  ]) {
    expect(stdout).toMatch(new RegExp(`^\\| ${work}`, 'm'));
  }
  expect(stdout).toMatch(/200 distinct addresses, 0 errors/);
  expect(stdout).toMatch(/; 43 found/);
});
