// bin/bursar: the commands from any folder and through a link in PATH.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

test('bin/bursar works through a link from another folder, and prints JSON only', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-bin-'));
  symlinkSync(resolve(import.meta.dirname, '../../bin/bursar'), join(folder, 'direct'));
  symlinkSync('direct', join(folder, 'bursar'));
  const env = { PATH: `${folder}:${process.env.PATH}`, HOME: process.env.HOME, BURSAR_ENV_FILE: '/dev/null', PORT: '8181' };
  const out = await new Promise<string>((done, failed) => {
    execFile(join(folder, 'bursar'), ['config', 'check', '--json'], { cwd: folder, env }, (error, said) =>
      error === null ? done(said) : failed(error),
    );
  });
  expect(JSON.parse(out)).toMatchObject({
    ok: true,
    settings: { PORT: '8181', BURSAR_DATA_DIR: resolve(import.meta.dirname, '../../data') },
  });
  rmSync(folder, { recursive: true });
});
