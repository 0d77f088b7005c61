// A worker's memory does not grow with the transactions that it has handled: what it holds after hundreds of lives it holds after thousands.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';

const AT_ONCE = 100;
const ROUNDS = { before: 5, after: 15 };
/** A leak of a transaction's payment and its judged facts would be several times as much. */
const MOST_BYTES_EACH = 1_000;
const TIMEOUT = 240_000;

const { folder, remove } = dataFolderFor();
const hook = join(dirname(folder), 'report-heap.mjs');
const reports = join(dirname(folder), 'heap');
let service: Service | undefined;
afterAll(async () => {
  await service?.stop();
  remove();
}, TIMEOUT);

/** Bytes that the worker still uses once everything unused is collected: its heap, and what it holds beside it. */
async function heldByWorker(): Promise<number> {
  const pid = (service as Service).processOf('worker') as number;
  writeFileSync(`${reports}.${pid}`, '');
  process.kill(pid, 'SIGUSR2');
  const held = await eventually('the worker reports its heap', () => Number(readFileSync(`${reports}.${pid}`, 'utf8')) || null);
  expect(held).toBeGreaterThan(5_000_000);
  return held;
}

test(
  'thousands of paid transactions leave nothing behind in the worker',
  async () => {
    writeFileSync(
      hook,
      `import { writeFileSync } from 'node:fs';
     process.on('SIGUSR2', () => {
       globalThis.gc?.();
       globalThis.gc?.();
       const { heapUsed, external } = process.memoryUsage();
       writeFileSync(${JSON.stringify(reports)} + '.' + process.pid, String(heapUsed + external));
     });`,
    );
    service = startService({
      dataFolder: folder,
      environment: {
        BURSAR_SANDBOX_BLOCK_SECONDS: '0',
        BURSAR_RATE_LIMIT_SCALE: '1000000',
        NODE_OPTIONS: `--import ${hook}`,
      },
    });
    const base = await service.ready;
    async function ask(path: string, body: object): Promise<Record<string, string>> {
      const answer = await fetch(base + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const json = (await answer.json()) as Record<string, string>;
      if (answer.status !== 200) throw new Error(`${path} answered ${answer.status} ${JSON.stringify(json)}`);
      return json;
    }
    const { access_token } = await ask('/auth', { username: 'demo', password: 'demo-demo-demo' });
    async function live(): Promise<void> {
      const bodies = Array.from({ length: AT_ONCE }, () => ({ access_token, amount: '25.00', crypto_selected: 'BTC' }));
      const made = await Promise.all(bodies.map((body) => ask('/create_transaction', body)));
      const ids = made.map(({ transaction_id }) => transaction_id);
      await Promise.all(ids.map((transaction_id) => ask('/sandbox/pay', { transaction_id })));
      await ask('/sandbox/mine', { currency: 'BTC', blocks: 1 });
      const wait = { access_token, wait_seconds: 30, status_was: 'pending' };
      const seen = await Promise.all(ids.map((transaction_id) => ask('/check_transaction', { ...wait, transaction_id })));
      expect(new Set(seen.map(({ status }) => status))).toEqual(new Set(['succeeded']));
    }
    for (let round = 0; round < ROUNDS.before; round++) await live();
    const before = await heldByWorker();
    for (let round = 0; round < ROUNDS.after; round++) await live();
    const grown = (await heldByWorker()) - before;
    console.log(`the worker holds ${before} bytes, ${grown} more after ${ROUNDS.after * AT_ONCE} more transactions`);
    expect(grown).toBeLessThan(ROUNDS.after * AT_ONCE * MOST_BYTES_EACH);
  },
  TIMEOUT,
);
