// `bursar keys restore`: an operator who has lost the signer's folder but has the database and the paper continues with the 24 words; no
// other words, and no database that does not know them, are accepted.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { freshDatabase } from '../support/postgres.ts';
import { askCli, runCli } from './run.ts';

vi.setConfig({ testTimeout: 60_000 });
const OTHER_WORDS = `${'abandon '.repeat(23)}art`;

let database: Awaited<ReturnType<typeof freshDatabase>>;
let folder: string;
let settings: Record<string, string>;
let words: string;
beforeEach(async () => {
  database = await freshDatabase();
  folder = mkdtempSync(join(tmpdir(), 'bursar-restore-'));
  settings = {
    DATABASE_URL: database.url,
    BURSAR_DATA_DIR: folder,
    BURSAR_NETWORK: 'mainnet',
    BURSAR_SIGNER_PASSPHRASE: 'correct horse battery staple',
  };
  words = (await askCli<{ mnemonic: string }>(['keys', 'init'], settings)).mnemonic;
});
afterEach(async () => {
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

const signer = (): string => join(folder, 'signer');
const hasSeed = (): boolean => existsSync(join(signer(), 'seed.json'));
const restore = (input: string, changes: Record<string, string> = {}) =>
  runCli(['keys', 'restore'], { ...settings, ...changes }, input);

test('the words put the seed back, whatever white space and case they come in', async () => {
  rmSync(signer(), { recursive: true });
  expect((await runCli(['keys', 'verify'], settings)).code).toBe(1);
  const { code, out, err } = await restore(`  ${words.toUpperCase().replaceAll(' ', '\n')}\n`);
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain(signer());
  expect(out).not.toContain(words.split(' ').slice(0, 3).join(' '));
  expect((await runCli(['keys', 'verify'], settings)).code).toBe(0);
});
test('another database that the seed is given to later begins above this one', async () => {
  await database.db.query({ text: 'update account_xpubs set start_index = 20000000, next_index = 20000000' });
  rmSync(signer(), { recursive: true });
  expect((await restore(words)).code).toBe(0);
  expect(readFileSync(join(signer(), 'databases'), 'utf8')).toBe('3\n');
});
test('words that are none, and those of another seed, are refused in one line, and nothing is stored', async () => {
  rmSync(signer(), { recursive: true });
  const noWords = /these are not the 24 words of a seed/;
  const inputs: [string, RegExp][] = [
    [words.replace(/\w+$/, 'bursar'), noWords],
    [words.split(' ').slice(1).join(' '), noWords],
    ['', noWords],
    [OTHER_WORDS, /the database does not receive to the seed of these words/],
  ];
  for (const [input, says] of inputs) {
    const { code, err } = await restore(input);
    expect([code, err.trim().split('\n').length]).toEqual([1, 1]);
    expect(err).toMatch(says);
    expect(hasSeed()).toBe(false);
  }
});
test('a seed that is there is never replaced', async () => {
  const before = readFileSync(join(signer(), 'seed.json'), 'utf8');
  const { code, err } = await restore(words);
  expect(code).toBe(1);
  expect(err).toMatch(/there is a seed in .* already/);
  expect(readFileSync(join(signer(), 'seed.json'), 'utf8')).toBe(before);
});
test('a database that knows nothing of the seed is refused: addresses of it were given out by another', async () => {
  rmSync(signer(), { recursive: true });
  const other = await freshDatabase();
  const { code, err } = await restore(words, { DATABASE_URL: other.url });
  expect(code).toBe(1);
  expect(err).toMatch(/the database does not receive to the seed of these words: restore the database first/);
  expect(hasSeed()).toBe(false);
  await other.drop();
});
test('a paper is checked against the keys in use, whether or not a signer runs; a wrong one changes nothing', async () => {
  const check = (input: string) => runCli(['keys', 'verify', '--words'], settings, input);
  rmSync(signer(), { recursive: true });
  expect(await check(`${words}\n`)).toMatchObject({ code: 0, out: expect.stringContaining('the words that were typed') });
  expect(await check(OTHER_WORDS)).toMatchObject({ code: 1, out: expect.stringContaining('mismatch') });
  const { code, err } = await check('no words');
  expect([code, err.trim()]).toEqual([1, expect.stringContaining('these are not the 24 words of a seed')]);
  expect(await check(words)).toMatchObject({ code: 0 });
  expect(hasSeed()).toBe(false);
});
