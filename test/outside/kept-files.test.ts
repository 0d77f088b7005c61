// The copies of bank files and reports in our folder.
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { keptFiles } from '../../src/outside/bank/kept-files.ts';
import { unsealed } from '../../src/outside/sealing.ts';
import { collected } from '../support/collected.ts';

let parent: string;
let folder: string;
beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'bursar-kept-'));
  folder = join(parent, 'bank');
});
afterEach(() => rmSync(parent, { recursive: true, force: true }));

const fileOf = (content: string, name = '2026-11-23-A') => ({ name, bytes: Buffer.from(content), sha256: Buffer.alloc(32) });

test('a file is written once, for us alone; the same again is kept, another of its name is not', async () => {
  const files = keptFiles(folder, unsealed);
  expect(await files.names()).toEqual([]);
  expect(await files.keep(fileOf('one'))).toBe(true);
  expect(await files.keep(fileOf('one'))).toBe(true);
  expect(await files.keep(fileOf('two'))).toBe(false);
  expect(Buffer.from(await files.read('2026-11-23-A')).toString()).toBe('one');
  expect(statSync(join(folder, '2026-11-23-A.ach')).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(['2026-11-23-A.ach']);
});

test('by two workers at once it is one of both', async () => {
  const files = keptFiles(folder, unsealed);
  const done = await Promise.all(['one', 'two'].map((content) => files.keep(fileOf(content))));
  expect(done.filter(Boolean)).toHaveLength(1);
});

test('only what looks like a bank file has a name', async () => {
  const files = keptFiles(folder, unsealed);
  await files.keep(fileOf('one', '2026-11-23-0'));
  for (const name of ['.hidden', '2026-11-23-A.ach.tmp', 'x.ach', '2026-11-23-AA.ach']) writeFileSync(join(folder, name), '');
  expect(await files.names()).toEqual(['2026-11-23-0']);
});

test('reports come back as they were, whatever their ids are', async () => {
  const files = keptFiles(folder, unsealed);
  expect(await collected(await files.reports())).toEqual([]);
  const reports = [
    { id: '../../etc/passwd', kind: 'over', file: '2026-11-23-A' },
    { id: 'report 2', kind: 'nacha', content: 'x' },
  ] as const;
  for (const report of [...reports, ...reports]) await files.keepReport(report);
  const byId = (a: { id: string }, b: { id: string }) => a.id.localeCompare(b.id);
  expect((await collected(await files.reports())).sort(byId)).toEqual([...reports].sort(byId));
  expect(readdirSync(parent)).toEqual(['bank']);
});
