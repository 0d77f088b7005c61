import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

test('npm run bench starts an instance of its own, measures every row and leaves nothing behind', {
  timeout: 480_000,
}, async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['bench/run.ts', '--quick'], { cwd: ROOT });
  for (const work of [
    ...[1, 8, 16, 64].flatMap((count) => [`check_transaction  \\| ${count} `, `create_transaction \\| ${count} `]),
    'get_account_info',
    ...[1, 64].map((count) => `list_transactions  \\| ${count} `),
    'auth',
    'block of 2,200 transactions',
    'memory of the watch list',
    'judge: 3,000 outputs replaced 10 times',
    'judge: seen, mined and booked, 1,500 outputs',
    'judge: one more output to an order of 1,500',
    'judge: credit of a price that is paid in 1,500 outputs',
    "judge: the merchant's accept of a review of 1,500 outputs",
    'catch-up on blocks',
    'first reading of a mempool',
    'ETH and USDT block of 300 transactions, 600 logs',
    'calls of a node for one more block',
    'catch-up on 20 such blocks',
    'CPU at rest',
    'database transactions at rest',
    'memory \\(RSS\\) of five chains',
    'paid life, five chains',
    'block to succeeded, 16 payments',
    'unpaid to timedout',
    'timedout to timedout_checked',
    'p99 of create',
    'create_transaction over Lightning above',
    'a payment over Lightning to succeeded',
    '20 parallel payments over Lightning',
    'a payout over Lightning, request to completed',
    'webhook: commit of an event',
    'webhook: the same beside 5 endpoints that hang, for each of which 10 wait',
    'webhooks: 200 deliveries to one fast endpoint',
    'webhooks: the same beside as many that wait for 5 endpoints that hang',
    'create_transaction with 3 webhooks',
    '20 streams of events',
    'API memory',
    'npm start to ready on a new data folder',
    'npm start to ready on one that is there',
    'memory \\(PSS\\) of all processes at rest',
  ]) {
    expect(stdout).toMatch(new RegExp(`^\\| ${work}`, 'm'));
  }
  expect(stdout).toMatch(/200 distinct addresses, 0 errors/);
  expect(stdout).toMatch(/; 43 found/);
});

test('--only measures the parts that are named and nothing else', { timeout: 120_000 }, async () => {
  const args = ['bench/run.ts', '--quick', '--only', 'replaced,flood'];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT });
  const works = stdout
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1);
  expect(works).toHaveLength(2);
  expect(works[0]).toMatch(/^\| judge: 3,000 outputs replaced/);
  expect(works[1]).toMatch(/^\| collector: 2,000 scripts/);
});

test('--help prints the usage, --list the names of the parts; what it does not know is one line, exit code 2', async () => {
  const run = (...args: string[]) => promisify(execFile)(process.execPath, ['bench/run.ts', ...args], { cwd: ROOT });
  expect((await run('--help')).stdout).toMatch(/^usage: npm run bench/);
  const names = (await run('--list')).stdout.split('\n').map((line) => line.split(' ')[0]);
  expect(names).toEqual(expect.arrayContaining(['start', 'check', 'create', 'lists', 'memory', 'growth']));
  for (const wrong of [['--loud'], ['extra'], ['--only'], ['--only', 'auth', '--write'], ['--only', 'auht']]) {
    const refused = (await run(...wrong).catch((error) => error)) as { code: number; stdout: string; stderr: string };
    expect([refused.code, refused.stdout]).toEqual([2, '']);
    expect(refused.stderr).toMatch(/^bench: .+\n$/);
  }
});
