// A bank behind a folder: our files in outgoing/, from where the bank's own tools (SFTP) take them away, and the bank's in incoming/. `handed/`
// says what was put into outgoing/: whoever puts the same file there again, after whatever crash, puts nothing there. The bank has a file when
// it no longer lies in outgoing/.
import { randomBytes } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { link, mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type BankFile,
  type BankPort,
  type BankReport,
  BankTrouble,
  type BankWaiting,
  type DatedFile,
} from '../../core/ach/bank-port.ts';
import { beginsAsNacha, NACHA_START } from '../../core/ach/nacha-reader.ts';
import { fileNumber, hashOf, nothing, numbersFiles, sha256, shortened, sync, writeWhole } from './disk.ts';

const PART = '.part';
/** Moved away as read, and not yet compared with what was read. */
const UNCOMPARED = /^\.(.+)\.[0-9a-f]{8}\.unread$/;
const REFUSED = '.refused';
const KNOWN_LOSS = '.known-loss';
/** A refusal counts when nothing was written to it for this long: half of its words may say something else than all. */
const AT_REST_MS = 60_000;
const DUPLICATE = /\bduplicat/i;
const MOST_BYTES = 16 * 1024 * 1024;

/** @param folder made with its parts when they are missing. Names that begin with a dot are not complete: the bank's tools must leave them */
export function folderBank(folder: string, { atRestMs = AT_REST_MS }: { readonly atRestMs?: number } = {}): BankPort {
  const outgoing = join(folder, 'outgoing');
  const incoming = join(folder, 'incoming');
  const handed = join(folder, 'handed');
  const done = join(incoming, 'done');

  async function onDisk<T>(work: () => Promise<T>): Promise<T> {
    try {
      for (const one of [outgoing, handed, done]) await mkdir(one, { recursive: true, mode: 0o770 });
      return await work();
    } catch (error) {
      throw error instanceof BankTrouble ? error : new BankTrouble((error as Error).message, { cause: error });
    }
  }

  /** What was read of each report last. */
  const asRead = new Map<string, string>();
  /** What was moved away and is not what was read, or of which nobody knows any more: it is read by the next look. */
  async function putBack(moved: string): Promise<void> {
    const [, name = moved] = UNCOMPARED.exec(moved) ?? [];
    const from = join(done, moved);
    try {
      await link(from, join(incoming, name));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // another worker has put it back
      if (code === 'ENOENT') return;
      if (code !== 'EEXIST') throw error;
      await link(from, join(incoming, `${randomBytes(4).toString('hex')}-${name}`));
    }
    await rm(from, { force: true });
  }

  /** Moves the one copy that `handed` names, once that is on disk, to where the bank looks; it is there, or was taken, when no such copy is left. */
  async function finish(file: BankFile): Promise<void> {
    const { name } = file;
    await sync(handed);
    const ino = await fileNumber(join(handed, name));
    let isMoved = false;
    // another writer's that died, or whose disk was full
    const others: string[] = [];
    for (const part of (await readdir(outgoing)).filter((one) => one.startsWith(`.${name}.`) && one.endsWith(PART))) {
      const path = join(outgoing, part);
      const found = await fileNumber(path).catch(nothing);
      if (found !== ino) others.push(path);
      else {
        await rename(path, join(outgoing, `${name}.ach`)).catch(nothing);
        isMoved = true;
      }
    }
    if (others.length > 0 && !isMoved && (await isTaken(file)).state === 'accepted') {
      await expectOneNumber();
      await refuseWhole(file, others);
    }
    for (const path of others) await rm(path, { force: true });
    await sync(outgoing);
  }

  /** Copied one by one, mark and copy have numbers of their own: that it was never moved looks as if the bank had taken it. */
  async function refuseWhole({ name, bytes }: BankFile, others: readonly string[]): Promise<void> {
    for (const path of others)
      if ((await readFile(path).catch(nothing))?.equals(bytes) === true)
        throw new BankTrouble(
          `${path} is whole, and may never have been where the bank looks: ask the bank whether it has ${name}, and take that away if it does, or name it ${name}.ach if it does not`,
        );
  }

  /** That one file is handed over once is told by its number on the disk: there is none where each name of it has another one. */
  async function expectOneNumber(): Promise<void> {
    if (await numbersFiles(handed)) return;
    throw new BankTrouble(
      `the disk of ${folder} gives two names of one file two numbers, as sshfs does: have the folder on a disk of this machine, and the bank's tools copy from and to it`,
    );
  }

  /** Marks a file as handed over, unless it is already: one of all writers ever does. */
  async function marks(part: string, { name }: BankFile): Promise<boolean> {
    const mark = join(handed, name);
    try {
      await link(part, mark);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      // a server of NFS that is started anew meanwhile says so of what it has just made
      return (await fileNumber(part).catch(nothing)) === (await fileNumber(mark));
    }
  }

  /** Whether the bank's tools have taken a file that was put into outgoing/. */
  async function isTaken({ name }: BankFile): Promise<{ readonly state: 'accepted' } | BankWaiting> {
    const found = await stat(join(outgoing, `${name}.ach`)).catch(nothing);
    return found === undefined ? { state: 'accepted' } : { state: 'waiting', forMs: Math.max(0, Date.now() - found.ctimeMs) };
  }

  /**
   * Since when a loss of `handed` is known; none: the beginning of time. The moment is written into the marker when it is first seen: whoever
   * touches it later, or copies it, excuses no more by that.
   */
  async function lostUntil(nowMs: number): Promise<number> {
    const path = join(handed, KNOWN_LOSS);
    const found = await stat(path).catch(nothing);
    if (found === undefined) return Number.NEGATIVE_INFINITY;
    const written = Date.parse(await readFile(path, 'utf8'));
    if (!Number.isNaN(written)) return written;
    const atMs = Math.floor(found.mtimeMs);
    if (atMs > nowMs) return atMs;
    const part = `${path}.${randomBytes(4).toString('hex')}`;
    await writeWhole(part, Buffer.from(new Date(atMs).toISOString()));
    await rename(part, path);
    await sync(handed);
    return atMs;
  }

  /** A day's letter is used again by a database that has forgotten the file of that name: the bank never gets two of one name. */
  async function refuseOther({ name, bytes }: BankFile): Promise<void> {
    if (!(await readFile(join(handed, name))).equals(bytes))
      throw new BankTrouble(`another file ${name} was handed over before (${join(handed, name)})`);
  }

  return {
    isWitness: false,
    had: () =>
      onDisk(async () => {
        const names = (await readdir(handed)).filter((name) => NAME.test(name)).sort();
        return Promise.all(names.map(async (name) => ({ name, sha256: sha256(await readFile(join(handed, name))) })));
      }),
    forgets: (files, nowMs) =>
      onDisk(async () => {
        const known = new Set(await readdir(handed));
        const lostMs = await lostUntil(nowMs);
        // a loss that is still to come excuses nothing
        const isLost = ({ atMs }: DatedFile): boolean => lostMs <= nowMs && atMs <= lostMs;
        return files.filter((file) => !known.has(file.name) && !isLost(file)).map(({ name }) => name);
      }),
    contentOf: ({ name }) => onDisk(() => readFile(join(handed, name))),
    handOver: (file) =>
      onDisk(async () => {
        const part = join(outgoing, `.${file.name}.${randomBytes(4).toString('hex')}${PART}`);
        await expectOneNumber();
        await writeWhole(part, file.bytes);
        // a mark whose file was lost with the power says that the bank has taken it
        await sync(outgoing);
        if (await marks(part, file)) {
          await finish(file);
          return isTaken(file);
        }
        await rm(part, { force: true });
        await refuseOther(file);
        await finish(file);
        const taken = await isTaken(file);
        return taken.state === 'accepted' ? { state: 'duplicate' } : taken;
      }),
    ask: (file) =>
      onDisk(async () => {
        if ((await stat(join(handed, file.name)).catch(nothing)) === undefined) return { state: 'never' };
        await refuseOther(file);
        await finish(file);
        return isTaken(file);
      }),
    news: () =>
      onDisk(async () => {
        for (const name of await readdir(done)) if (UNCOMPARED.test(name)) await putBack(name);
        const found = (await readdir(incoming, { withFileTypes: true, encoding: 'buffer' })).filter(
          (one) => (one.isFile() || one.isSymbolicLink()) && one.name[0] !== DOT,
        );
        const sorted = found.sort((a, b) => Buffer.compare(a.name, b.name));
        return { cutOffMs: null, reports: readOneByOne({ incoming, atRestMs, asRead }, sorted) };
      }),
    acknowledge: (reportId) =>
      onDisk(async () => {
        // the bank may have put its next one there under the same name since: moved first, nothing can take the place of what is compared
        const moved = `.${shortened(reportId)}.${randomBytes(4).toString('hex')}.unread`;
        await rename(join(incoming, reportId), join(done, moved));
        if (hashOf(await readFile(join(done, moved))) !== asRead.get(reportId)) return putBack(moved);
        asRead.delete(reportId);
        try {
          await rename(join(done, moved), join(done, reportId));
        } catch (error) {
          // a folder of that name lies there: what is booked must not come again, and what comes after it must be read
          if ((error as NodeJS.ErrnoException).code !== 'EISDIR') throw error;
          await rename(join(done, moved), join(done, `${shortened(reportId)}.${randomBytes(4).toString('hex')}`));
        }
        // where another worker has put it back meanwhile, both are one file, and nothing was renamed
        await rm(join(done, moved), { force: true });
      }),
  };
}

const NAME = /^\d{4}-\d\d-\d\d-[A-Z0-9]$/;

const DOT = '.'.charCodeAt(0);

type Reading = {
  readonly incoming: string;
  readonly atRestMs: number;
  /** Is told the hash of each report that is read. */
  readonly asRead: Map<string, string>;
};

async function* readOneByOne(reading: Reading, found: readonly Dirent<Buffer>[]): AsyncGenerator<BankReport> {
  for (const one of found) {
    const report = one.isFile() ? await readable(reading, one.name) : linkOf(one.name);
    if (report !== null) yield report;
  }
}

/** It is not followed: it would be acknowledged by moving the link, and what it leads to may change. */
const linkOf = (name: Buffer): BankReport => ({
  id: name.toString('latin1'),
  kind: 'unreadable',
  reason: 'it is a link, and only files are read',
  mayReturn: true,
});

/** One file that cannot be read says nothing of the others; null for one that is gone. */
async function readable(reading: Reading, name: Buffer): Promise<BankReport | null> {
  const id = name.toString();
  if (!Buffer.from(id).equals(name))
    return { id: name.toString('latin1'), kind: 'unreadable', reason: 'its name is no UTF-8', mayReturn: true };
  try {
    return await reportOf(reading, id);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    return { id, kind: 'unreadable', reason: message, mayReturn: true };
  }
}

/**
 * `<file>.refused` or `<file>.ach.refused` says, in words, that the bank executes nothing of a file, or that it is a duplicate; everything
 * else is a NACHA file of the bank.
 */
async function reportOf({ incoming, atRestMs, asRead }: Reading, name: string): Promise<BankReport> {
  const path = join(incoming, name);
  const { size, ctimeMs } = await stat(path);
  const restsForMs = Date.now() - ctimeMs;
  // one from the future was written by a clock that was fast
  if (name.endsWith(REFUSED) && Math.abs(restsForMs) < atRestMs) return { id: name, kind: 'begun', file: fileIn(name) };
  if (size > MOST_BYTES) {
    const reason = `it is larger than ${MOST_BYTES} bytes`;
    return { id: name, kind: 'unreadable', reason, ...((await isNacha(path)) ? { mayReturn: true } : {}) };
  }
  const bytes = await readFile(path);
  asRead.set(name, hashOf(bytes));
  const content = bytes.toString('latin1');
  if (!name.endsWith(REFUSED)) return { id: name, kind: 'nacha', content };
  const file = fileIn(name);
  const reason = content
    .trim()
    .replace(/[^\x20-\x7e]+/g, ' ')
    .slice(0, 300);
  // it has had the file, and executes that
  if (DUPLICATE.test(reason)) return { id: name, kind: 'had', file };
  if (reason === '')
    return { id: name, kind: 'unreadable', reason: 'it has no words: nobody can say whether the file is a duplicate' };
  return { id: name, kind: 'refused', file, reason };
}

const fileIn = (name: string): string => name.slice(0, -REFUSED.length).replace(/\.ach$/, '');

/** Whether a file that is not read begins as one that may tell of returns. */
async function isNacha(path: string): Promise<boolean> {
  const handle = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(NACHA_START), 0, NACHA_START, 0);
    return beginsAsNacha(buffer.toString('latin1', 0, bytesRead));
  } finally {
    await handle.close();
  }
}
