// The channels that a Lightning node has had open: kept over the ends of the signer's process, each once, for one network.
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openKnownChannels } from '../../src/signer/lightning/known-channels.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-channels-'));
});
afterEach(() => rmSync(folder, { recursive: true }));
const content = (): string => readFileSync(join(folder, 'lightning-channels.jsonl'), 'utf8');

test('what was added is there after the next start, of its own node', async () => {
  const first = await openKnownChannels(folder, 'regtest');
  await first.add('one', ['a:0', 'b:1']);
  await first.add('other', ['c:0']);
  await first.add('one', ['b:1', 'd:0']);
  await first.close();
  const again = await openKnownChannels(folder, 'regtest');
  expect(again.of('one')).toEqual(['a:0', 'b:1', 'd:0']);
  expect(again.of('other')).toEqual(['c:0']);
  expect(again.of('nobody')).toEqual([]);
  await again.close();
});

test('a channel is written once, also over a start', async () => {
  const first = await openKnownChannels(folder, 'regtest');
  await Promise.all([first.add('one', ['a:0']), first.add('one', ['a:0', 'b:0'])]);
  await first.close();
  const before = content();
  expect(before.match(/a:0/g)).toHaveLength(1);
  const again = await openKnownChannels(folder, 'regtest');
  await again.add('one', ['b:0', 'a:0']);
  await again.close();
  expect(content()).toBe(before);
});

test('a line that was changed, and a file of another network, are refused, with what to do', async () => {
  const file = await openKnownChannels(folder, 'regtest');
  await file.add('one', ['a:0']);
  await file.close();
  await expect(openKnownChannels(folder, 'testnet')).rejects.toThrow(/testnet/);
  const path = join(folder, 'lightning-channels.jsonl');
  writeFileSync(path, content().replace('a:0', 'a:1'));
  // it says nothing of signatures, and none are missing where it is made anew
  await expect(openKnownChannels(folder, 'regtest')).rejects.toThrow(
    new RegExp(`^${path} cannot be read \\(the line at byte \\d+ was changed\\): .*move it away: a new one is made`),
  );
  renameSync(path, `${path}.damaged`);
  const made = await openKnownChannels(folder, 'regtest');
  expect(made.of('one')).toEqual([]);
  await made.close();
});
