// docs/mainnet-btc.md names what there is: its shell blocks and the scripts in them parse, every setting and every command of Bursar's exists,
// and what it says of the root key is so. (That the whole of it works is tried by hand, on a server.)
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { HDKey } from '@scure/bip32';
import { mnemonicToSeedSync } from '@scure/bip39';
import { expect, test } from 'vitest';
import { MNEMONIC } from './keys/vectors.ts';

const ROOT = resolve(import.meta.dirname, '..');
const GUIDE = readFileSync(join(ROOT, 'docs/mainnet-btc.md'), 'utf8');
const BLOCKS = [...GUIDE.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1] as string);
/** Files that the blocks write. */
const FILES = BLOCKS.flatMap((block) => [...block.matchAll(/<<'?EOF'?\n([\s\S]*?)^EOF$/gm)].map((match) => match[1] as string));

const parses = (script: string) => spawnSync('sh', ['-n'], { input: script, encoding: 'utf8' }).stderr;

test('its blocks, and the scripts that they write, are shell', () => {
  const scripts = FILES.filter((file) => file.startsWith('#!/bin/sh'));
  expect(BLOCKS.length).toBeGreaterThan(15);
  expect(scripts.length).toBeGreaterThan(1);
  for (const script of [...BLOCKS, ...scripts]) expect([script, parses(script)]).toEqual([script, '']);
});

test('every setting that it names is one', () => {
  const settings = readFileSync(join(ROOT, '.env.example'), 'utf8');
  const names = new Set(GUIDE.match(/\b(?:BURSAR_[A-Z_]+|DATABASE_URL)\b/g));
  expect(names.size).toBeGreaterThan(6);
  for (const name of names) expect(settings).toMatch(new RegExp(`^#?${name}=|\\b${name}\\b`, 'm'));
});

test('every command of Bursar that it names is one, with its options', { timeout: 240_000 }, () => {
  const inBlocks = BLOCKS.join('\n').matchAll(/(?:^|sbin\/|bin\/)bursar(?:-signer)? ([a-z][^#\n|&>]*)/gm);
  const inText = GUIDE.replace(/^```[\s\S]*?^```$/gm, '').matchAll(
    /`(?:bursar(?:-signer)? )?((?:keys|chain|audit|config|merchant|transaction)\b[^`]*)`/g,
  );
  const options = new Map<string, string[]>();
  for (const [, line = ''] of [...inBlocks, ...inText]) {
    const named = /^[a-z][a-z-]*(?: [a-z][a-z-]*)*(?=\s|$)/.exec(line.trim())?.[0] as string;
    options.set(named, [...(options.get(named) ?? []), ...(line.match(/--[a-z-]+/g) ?? [])]);
  }
  expect(options.size).toBeGreaterThan(8);
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [join(ROOT, 'src/main/cli.ts'), ...args], { encoding: 'utf8', env: { ...process.env } });
  for (const [named, used] of options) {
    const { stdout } = run(...named.split(' '), '--help');
    expect([named, stdout.split('\n')[0]]).toEqual([named, expect.stringContaining(`bursar ${named} [options]`)]);
    for (const option of used) expect([named, option, stdout.includes(`${option} `)]).toEqual([named, option, true]);
  }
});

test('what its units and wrappers run exists', () => {
  const paths = new Set([...GUIDE.matchAll(/\/opt\/bursar\/([\w./-]+)/g)].map((match) => match[1] as string));
  expect(paths.size).toBeGreaterThan(1);
  for (const path of paths) expect([path, existsSync(join(ROOT, path))]).toEqual([path, true]);
});

test('its script turns the words into the root key', () => {
  // getpass asks the terminal, where there is one
  const script = FILES.find((file) => file.includes('pbkdf2_hmac'))?.replace(/getpass\.getpass\(.*?\)/, 'input()') as string;
  const ran = spawnSync('python3', ['-c', script], { input: `${MNEMONIC}\n`, encoding: 'utf8' });
  if (ran.error !== undefined) return;
  expect(ran.stdout.trim()).toBe(HDKey.fromMasterSeed(mnemonicToSeedSync(MNEMONIC)).privateExtendedKey);
});
