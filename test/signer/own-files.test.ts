// Files of our own that are replaced whole: whatever prevents it leaves the file as it was, and nothing beside it.
import { mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { replaceFile } from '../../src/signer/own-files.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bursar-own-files-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test('a file is replaced whole, with its mode', async () => {
  const path = join(folder, 'note');
  for (const [content, mode] of [['one', 0o644] as const, ['two', 0o600] as const]) {
    await replaceFile(path, content, mode);
    expect([await readFile(path, 'utf8'), (await stat(path)).mode & 0o777]).toEqual([content, mode]);
  }
  expect(await readdir(folder)).toEqual(['note']);
});

test('one that cannot be replaced leaves no part of it behind, however often that is tried', async () => {
  const path = join(folder, 'note');
  // a file never takes the place of a folder
  await mkdir(path);
  for (let n = 0; n < 3; n++) await expect(replaceFile(path, 'three')).rejects.toThrow();
  expect(await readdir(folder)).toEqual(['note']);
});
