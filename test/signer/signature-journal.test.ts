// The journal of signatures: what a power loss, a change by somebody, another copy and a full disk leave of it.
import {
  appendFileSync,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, open as openFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { SignedTransaction } from '../../src/core/signer-wire.ts';
import { openSignatureJournal, SIGNATURES, type SignatureJournal } from '../../src/signer/signature-journal.ts';
import { signatureOf as content } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
let folder: string;
let path: string;
const open: SignatureJournal[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-signatures-'));
  path = join(folder, SIGNATURES);
});
afterEach(async () => {
  for (const journal of open.splice(0)) await journal.close().catch(() => undefined);
  rmSync(folder, { recursive: true, force: true });
});

async function opened(): Promise<SignatureJournal> {
  const journal = await openSignatureJournal(folder, 'regtest', { now: Date.now });
  open.push(journal);
  return journal;
}
/** A journal with three signatures; its size after each. */
async function three(): Promise<{ journal: SignatureJournal; sizes: number[]; signed: SignedTransaction[] }> {
  const journal = await opened();
  const sizes = [statSync(path).size];
  const signed = [];
  for (const n of [1, 2, 3]) {
    signed.push(await journal.append(content(n)));
    sizes.push(statSync(path).size);
  }
  return { journal, sizes, signed };
}

/** What all file handles share: the system's calls can fail through it. */
async function handlePrototype(of: string): Promise<FileHandle> {
  const handle = await openFile(of, 'r');
  await handle.close();
  return Object.getPrototypeOf(handle);
}

describe('the journal of signatures', () => {
  it('gives back what was appended, also to the next process, in a file for its user only', async () => {
    const { journal, signed } = await three();
    expect(signed.map((one) => one.sequence)).toEqual([1, 2, 3]);
    await journal.close();
    const again = await opened();
    expect(again.count()).toBe(3);
    expect(await Promise.all([1, 2, 3].map((n) => again.read(n)))).toEqual(signed);
    expect(again.index.batchOfPayout('po_2')).toBe('batch_2');
    expect(again.index.leavingOf('batch_2', 'BTC')).toBe(1000n);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('cuts off what a power loss left of the last line, wherever it ended, and goes on', async () => {
    const { journal, sizes, signed } = await three();
    await journal.close();
    const [, , before, whole] = sizes as [number, number, number, number];
    const bytes = readFileSync(path);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: before, max: whole - 1 }), fc.boolean(), async (end, withZeros) => {
        writeFileSync(path, bytes.subarray(0, end));
        // a file system may have made the file longer before it wrote what is in it
        if (withZeros && end > before) appendFileSync(path, Buffer.alloc(whole - end));
        const again = await openSignatureJournal(folder, 'regtest', { now: Date.now });
        try {
          expect(again.cutOff).toBe(withZeros && end > before ? whole - before : end - before);
          expect(again.count()).toBe(2);
          expect(statSync(path).size).toBe(before);
          expect((await again.append(content(9))).sequence).toBe(3);
          expect(await again.read(2)).toEqual(signed[1]);
        } finally {
          await again.close();
        }
      }),
      { numRuns: 60 },
    );
  });

  it('cuts off a last line whose middle never came to the disk', async () => {
    const { journal, sizes } = await three();
    await journal.close();
    const bytes = readFileSync(path);
    bytes.fill(0, (sizes[2] as number) + 70, (sizes[3] as number) - 20);
    writeFileSync(path, bytes);
    expect((await opened()).count()).toBe(2);
  });

  it('refuses when any line was changed, taken out, put twice or put elsewhere', async () => {
    const { journal } = await three();
    await journal.close();
    const bytes = readFileSync(path);
    const lines = bytes.toString().trimEnd().split('\n');
    const [head, one, two, last] = lines as [string, string, string, string];
    const texts = {
      'an amount': [head, one.replace('"amount":"900"', '"amount":"901"'), two, last],
      'the last line': [head, one, two, last.replace('"fee":"100"', '"fee":"101"')],
      'a line less': [head, two, last],
      'the first of all': [head.replace('regtest', 'mainnet'), one, two, last],
      'no head': [one, two, last],
      'a line twice': [head, one, one, two, last],
      'another order': [head, two, one, last],
      'an empty line': [head, one, '', two, last],
      nothing: [],
    };
    for (const [what, text] of Object.entries(texts)) {
      writeFileSync(path, text.map((line) => `${line}\n`).join(''));
      await expect(openSignatureJournal(folder, 'regtest', { now: Date.now }), what).rejects.toMatchObject({
        name: 'DamagedFile',
      });
    }
    // a single bit anywhere but in the last end of line
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: bytes.length - 2 }), fc.integer({ min: 0, max: 7 }), async (at, bit) => {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] as number) ^ (1 << bit);
        // a zero byte in the last line is what a power loss leaves
        fc.pre(changed[at] !== 0 || at < bytes.length - last.length - 1);
        writeFileSync(path, changed);
        await expect(openSignatureJournal(folder, 'regtest', { now: Date.now })).rejects.toThrow();
      }),
      { numRuns: 300 },
    );
    writeFileSync(path, bytes);
    expect((await opened()).count()).toBe(3);
  });

  it('is of one network', async () => {
    await (await opened()).close();
    await expect(openSignatureJournal(folder, 'mainnet', { now: Date.now })).rejects.toThrow(
      'it is of regtest, and this is mainnet',
    );
  });

  it.each(['put back', 'written by somebody else', 'cut'])(
    'appends nothing any more to a file that was %s while it ran',
    async (how) => {
      const { journal, sizes } = await three();
      copyFileSync(path, `${path}.copy`);
      if (how === 'put back') renameSync(`${path}.copy`, path);
      if (how === 'written by somebody else') appendFileSync(path, 'x');
      if (how === 'cut') truncateSync(path, sizes[2]);
      await expect(journal.append(content(4))).rejects.toThrow('was changed by somebody else');
      await expect(journal.append(content(4))).rejects.toThrow('until the signer is started again');
      expect(journal.index.batchOfPayout('po_4')).toBeNull();
    },
  );

  it('goes on by itself when a full disk has space again, without what could not be written', async () => {
    const { journal, sizes } = await three();
    const handles = await handlePrototype(path);
    const write = vi.spyOn(handles, 'write').mockImplementationOnce(async function (this: FileHandle, ...given: unknown[]) {
      const [bytes, offset, , at] = given as [Buffer, number, number, number];
      write.mockRestore();
      await this.write(bytes, offset, 40, at);
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    } as never);
    await expect(journal.append(content(4))).rejects.toThrow('could not be written (ENOSPC)');
    expect(statSync(path).size).toBe(sizes[3]);
    expect(journal.index.batchOfPayout('po_4')).toBeNull();
    expect((await journal.append(content(5))).sequence).toBe(4);
    await journal.close();
    expect((await opened()).count()).toBe(4);
  });

  it('journal_fsync: appends nothing any more after the disk did not confirm what was written', async () => {
    const { journal } = await three();
    const handles = await handlePrototype(path);
    vi.spyOn(handles, 'sync').mockRejectedValueOnce(Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }));
    await expect(journal.append(content(4))).rejects.toThrow('EIO');
    await expect(journal.append(content(5))).rejects.toThrow('nothing is signed until the signer is started again: EIO');
  });

  it('does not give out a line that was changed after it was opened', async () => {
    const { journal } = await three();
    const bytes = readFileSync(path, 'latin1');
    writeFileSync(path, bytes.replace('"po_2"', '"po_7"'), 'latin1');
    await expect(journal.read(2)).rejects.toThrow('signature 2 was changed');
    expect(await journal.read(3)).toMatchObject({ sequence: 3 });
  });
});
