// A folder on a disk that gives each name of one file a number of its own, as sshfs does: the mark of what was handed over says nothing there.
import { createHash } from 'node:crypto';
import { linkSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { folderBank } from '../../src/outside/bank/folder-bank.ts';

vi.mock('node:fs/promises', async (original) => {
  const disk = await original<typeof import('node:fs/promises')>();
  const numberOf = (path: unknown): bigint => BigInt(`0x${createHash('sha256').update(String(path)).digest('hex').slice(0, 15)}`);
  return {
    ...disk,
    async stat(path: string, options?: { readonly bigint: true }) {
      const found = await disk.stat(path, options);
      return Object.assign(found, { ino: options === undefined ? Number(numberOf(path)) : numberOf(path) });
    },
  };
});

test('a file on a disk where nobody could tell whether the bank was given it does not count as given', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-folder-bank-'));
  try {
    const bank = folderBank(folder);
    const bytes = Buffer.from('101 …');
    const file = { name: '2026-11-23-A', bytes, sha256: createHash('sha256').update(bytes).digest() };
    await expect(bank.handOver(file)).rejects.toThrow(/gives two names of one file two numbers/);
    expect(await bank.ask(file)).toEqual({ state: 'never' });
    expect([readdirSync(join(folder, 'outgoing')), readdirSync(join(folder, 'handed'))]).toEqual([[], []]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a file that was marked there before, and not moved, does not count as taken, and is not thrown away', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-folder-bank-'));
  try {
    const bytes = Buffer.from('101 …');
    const file = { name: '2026-11-23-A', bytes, sha256: createHash('sha256').update(bytes).digest() };
    for (const part of ['outgoing', 'handed']) mkdirSync(join(folder, part));
    const part = join(folder, 'outgoing', '.2026-11-23-A.0000.part');
    writeFileSync(part, bytes);
    linkSync(part, join(folder, 'handed', file.name));
    await expect(folderBank(folder).ask(file)).rejects.toThrow(/gives two names of one file two numbers/);
    expect([readdirSync(join(folder, 'outgoing')), readdirSync(join(folder, 'handed'))]).toEqual([
      ['.2026-11-23-A.0000.part'],
      ['2026-11-23-A'],
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
