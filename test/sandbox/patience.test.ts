// How long a control of the sandbox waits for a service that does not read the chain, and what it answers then: it has done its own part,
// or nothing.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openMovableClock } from '../../src/outside/clock.ts';
import { createSandbox } from '../../src/sandbox/sandbox.ts';
import type { Sandbox } from '../../src/sandbox/service-side.ts';
import { post, tableService } from './support/table-service.ts';

const folder = mkdtempSync(join(tmpdir(), 'bursar-patience-'));
const clock = openMovableClock(join(folder, 'clock-offset'));
let sandbox: Sandbox;
let look: (timeoutMs: number) => Promise<boolean>;
beforeAll(async () => {
  const onEnd = (reason: string) => {
    throw new Error(reason);
  };
  const service = { ...tableService().service, untilRead: (_currencies: unknown, timeoutMs: number) => look(timeoutMs) };
  sandbox = await createSandbox({ folder, blockSeconds: 0, clock, service, onEnd });
});
afterAll(async () => {
  await sandbox.close();
  clock.close();
  rmSync(folder, { recursive: true });
});

test('who comes while another waits is answered after ten seconds too', async () => {
  look = (timeoutMs) => new Promise((resolve) => setTimeout(() => resolve(false), timeoutMs));
  const startedMs = performance.now();
  const mined = Array.from({ length: 3 }, () => post(sandbox.url, 'mine', { currency: 'BTC', blocks: 1 }));
  expect((await Promise.all(mined)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(performance.now() - startedMs).toBeLessThan(12_000);
}, 40_000);

test('a database that does not answer: what was mined is mined, and the clock is neither moved nor answered for', async () => {
  look = () => Promise.reject(new Error('the database does not answer'));
  expect((await post(sandbox.url, 'mine', { currency: 'LTC', blocks: 1 })).status).toBe(200);
  // the API makes 503 of a connection that is closed
  await expect(post(sandbox.url, 'clock', { advance_seconds: 60 })).rejects.toThrow('fetch failed');
  const offset = (() => {
    try {
      return readFileSync(join(folder, 'clock-offset')).readBigInt64LE();
    } catch {
      return 0n;
    }
  })();
  expect(offset).toBe(0n);
});
