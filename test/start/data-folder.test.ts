// `bursar config check` reports whether a data folder can be used as a start would, and creates nothing.
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type Ran, runCli } from '../cli/run.ts';

const folder = mkdtempSync(join(tmpdir(), 'bursar-check-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const check = (environment: Record<string, string>): Promise<Ran> => runCli(['config', 'check'], environment);

test.each([
  ['/dev/null', /^bursar: BURSAR_DATA_DIR: \/dev\/null is not a folder: set it to another\n$/],
  [
    '/dev/null/data',
    /^bursar: BURSAR_DATA_DIR: \/dev\/null\/data cannot be made or written \(ENOTDIR\): set it to another folder\n$/,
  ],
  ['/etc/passwd/x/y', /^bursar: BURSAR_DATA_DIR: \/etc\/passwd\/x\/y cannot be made or written \(ENOTDIR\)/],
  ['/proc/bursar/data', /^bursar: BURSAR_DATA_DIR: \/proc\/bursar\/data cannot be made or written \(ENOENT\)/],
])('%s is refused', async (path, line) => {
  expect(await check({ BURSAR_DATA_DIR: path })).toMatchObject({ code: 1, out: '', err: expect.stringMatching(line) });
});

test('a folder that can be made is right, and is not made', async () => {
  const path = join(folder, 'deep', 'data');
  expect(await check({ BURSAR_DATA_DIR: path })).toMatchObject({ code: 0, err: '' });
  expect(existsSync(join(folder, 'deep'))).toBe(false);
});

test.runIf(process.getuid?.() !== 0)('a folder that may not be written is refused', async () => {
  chmodSync(folder, 0o500);
  expect((await check({ BURSAR_DATA_DIR: join(folder, 'data') })).err).toMatch(/cannot be made or written \(EACCES\)/);
  chmodSync(folder, 0o700);
});

test('a host that cannot be listened on is refused, together with the folder', async () => {
  writeFileSync(join(folder, 'file'), '');
  const { code, err } = await check({ BURSAR_DATA_DIR: join(folder, 'file'), HOST: '192.0.2.1' });
  expect(code).toBe(1);
  expect(err).toMatch(/BURSAR_DATA_DIR: .*file is not a folder[\s\S]*192\.0\.2\.1:8080 cannot be listened on \(EADDRNOTAVAIL\)/);
  expect((await check({ BURSAR_DATA_DIR: folder, HOST: 'no-such-host.invalid' })).err).toMatch(/HOST: .*cannot be resolved/);
});
