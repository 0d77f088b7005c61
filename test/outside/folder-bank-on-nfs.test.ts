// A folder on NFS whose server is started anew while it makes a name: it has made it, and says that there was one already (link(2), "Bugs").
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { folderBank } from '../../src/outside/bank/folder-bank.ts';

vi.mock('node:fs/promises', async (original) => {
  const disk = await original<typeof import('node:fs/promises')>();
  return {
    ...disk,
    async link(from: string, to: string) {
      await disk.link(from, to);
      if (to.endsWith('2026-11-23-A')) throw Object.assign(new Error('EEXIST: file already exists'), { code: 'EEXIST' });
    },
  };
});

test('a file that was marked, though the disk says that it had been before, is put where the bank takes it from', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-folder-bank-'));
  try {
    const bank = folderBank(folder);
    const bytes = Buffer.from('101 …');
    const file = { name: '2026-11-23-A', bytes, sha256: createHash('sha256').update(bytes).digest() };
    expect(await bank.handOver(file)).toMatchObject({ state: 'waiting' });
    expect(readdirSync(join(folder, 'outgoing'))).toEqual(['2026-11-23-A.ach']);
    expect(readFileSync(join(folder, 'outgoing', '2026-11-23-A.ach'))).toEqual(bytes);
    expect(await bank.ask(file)).toMatchObject({ state: 'waiting' });
    rmSync(join(folder, 'outgoing', '2026-11-23-A.ach'));
    expect(await bank.handOver(file)).toEqual({ state: 'duplicate' });
    expect(readdirSync(join(folder, 'outgoing'))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
