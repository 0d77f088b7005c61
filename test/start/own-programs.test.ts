// Small programs of the system that the start runs (sh, id, useradd): one that a signal ended has not answered, and that must not count as
// a refusal.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runToEnd } from '../../src/main/process/own-programs.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-programs-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const sh = (script: string) => runToEnd('/bin/sh', ['-c', script, 'sh', join(folder, 'was-here')]);

test('a yes and a no are what they are', () => {
  expect(sh('exit 0')).toMatchObject({ status: 0 });
  expect(sh('exit 3')).toMatchObject({ status: 3 });
  expect(sh('echo 42')).toMatchObject({ status: 0, said: '42\n' });
});

test.each(['TERM', 'INT', 'HUP'])('one that SIG%s ended is asked again', (signal) => {
  expect(sh(`mkdir "$1" 2>/dev/null && kill -${signal} $$; echo yes`)).toMatchObject({ status: 0, said: 'yes\n' });
  expect(existsSync(join(folder, 'was-here'))).toBe(true);
});

test('one that is ended again and again stops the start, instead of being taken for a no', () => {
  expect(() => sh('kill -TERM $$')).toThrow(/^\/bin\/sh was ended by SIGTERM before it answered: start again$/);
});

test('one that cannot be run says why', () => {
  expect(runToEnd(join(folder, 'missing'), [])).toMatchObject({ status: null, error: expect.stringMatching(/ENOENT/) });
});
