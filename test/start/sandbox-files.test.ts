// The sandbox's own files at a warm start: an unreadable one ends the start with one clear line, and while the nodes are still coming up,
// or going down with everything else, no process reports them as down.
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dataFolderFor, eventually, livingProcesses, startService } from '../support/service.ts';

const TIMEOUT = 60_000;
const { folder, remove } = dataFolderFor();
const start = () => startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
const inSandbox = (name: string) => join(folder, 'sandbox', name);

beforeAll(async () => {
  const service = start();
  await service.ready;
  expect(await service.stop()).toBe(0);
}, TIMEOUT);
afterAll(remove);

const JOURNAL = 'btc.journal';
test.each([
  ['rates.json', 'not JSON'],
  ['rates.json', '{"BTC": 7}'],
  ['rates.json', null],
  [JOURNAL, 'not JSON\n'],
  [JOURNAL, null],
  ['clock-offset', 'abc'],
  ['clock-offset', '\u007f\u007f\u007f\u007f\u007f\u007f\u007f\u007f'],
])('%s that holds %j ends the start with a line that names it', { timeout: TIMEOUT }, async (name, content) => {
  const before = readOrNull(inSandbox(name));
  if (before !== null) renameSync(inSandbox(name), inSandbox(`${name}.kept`));
  if (content === null) mkdirSync(inSandbox(name));
  else writeFileSync(inSandbox(name), content);
  const service = start();
  expect(await Promise.race([service.ended, service.ready.then(() => service.stop())])).toBe(1);
  expect(service.output().trim().split('\n').at(-1)).toContain(inSandbox(name));
  expect(service.output()).not.toMatch(/^\s+at /m);
  expect(livingProcesses(folder)).toEqual([]);
  rmSync(inSandbox(name), { recursive: true });
  if (before !== null) renameSync(inSandbox(`${name}.kept`), inSandbox(name));
});

test('an endpoints.json of no use is made anew', { timeout: TIMEOUT }, async () => {
  writeFileSync(inSandbox('endpoints.json'), '{');
  const service = start();
  await service.ready;
  expect(await service.stop()).toBe(0);
});

test('nodes that are late at a start, or gone at a stop of all, are no news', { timeout: TIMEOUT }, async () => {
  const service = start();
  const late = await eventually('the sandbox', () => service.processOf('sandbox-process'));
  process.kill(late, 'SIGSTOP');
  await eventually('a worker', () => service.processOf('worker'));
  await delay(3000);
  process.kill(late, 'SIGCONT');
  await service.ready;
  expect(service.output()).not.toContain('is down');
  const worker = service.processOf('worker')!;
  process.kill(worker, 'SIGSTOP');
  process.kill(-service.launcher.pid!, 'SIGTERM');
  await delay(1500);
  process.kill(worker, 'SIGCONT');
  expect(await service.ended).toBe(0);
  expect(service.output()).not.toMatch(/"level":[45]0|died|^\s+at /m);
  expect(livingProcesses(folder)).toEqual([]);
});

test('a process that alone is told to stop stops and is started again', { timeout: TIMEOUT }, async () => {
  const service = start();
  await service.ready;
  const worker = service.processOf('worker')!;
  process.kill(worker, 'SIGTERM');
  await eventually('another worker', () => (service.processOf('worker') ?? worker) !== worker);
  expect(await service.stop()).toBe(0);
});

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return null;
  }
}
