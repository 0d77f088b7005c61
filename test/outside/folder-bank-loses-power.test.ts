// The machine loses its power right after a file was marked as handed over: of what nobody has synced a disk may keep the mark alone.
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { folderBank } from '../../src/outside/bank/folder-bank.ts';

/** The names that are in outgoing/ for good. */
const kept: string[] = [];
vi.mock('node:fs/promises', async (original) => {
  const disk = await original<typeof import('node:fs/promises')>();
  return {
    ...disk,
    async open(path: string, flags: string, mode?: number) {
      const handle = await disk.open(path, flags, mode);
      const sync = handle.sync.bind(handle);
      handle.sync = async () => {
        await sync();
        if (path.endsWith('outgoing')) kept.splice(0, kept.length, ...readdirSync(path));
      };
      return handle;
    },
    async link(from: string, to: string) {
      await disk.link(from, to);
      if (!to.endsWith('2026-11-23-A')) return;
      for (const name of readdirSync(join(from, '..'))) if (!kept.includes(name)) rmSync(join(from, '..', name));
      throw new Error('no power');
    },
  };
});

test('what was marked is moved by whoever asks next: it was on disk before the mark', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-folder-bank-'));
  try {
    const bytes = Buffer.from('101 …');
    const file = { name: '2026-11-23-A', bytes, sha256: createHash('sha256').update(bytes).digest() };
    await expect(folderBank(folder).handOver(file)).rejects.toThrow('no power');
    expect(await folderBank(folder).ask(file)).toMatchObject({ state: 'waiting' });
    expect(readdirSync(join(folder, 'outgoing'))).toEqual(['2026-11-23-A.ach']);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
