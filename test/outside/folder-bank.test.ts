// The bank behind a folder: what is handed over lies there once, whatever died in between, and what the bank puts there is read.
import { createHash } from 'node:crypto';
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BankPort, BankTrouble } from '../../src/core/ach/bank-port.ts';
import { folderBank } from '../../src/outside/bank/folder-bank.ts';
import { collected } from '../support/collected.ts';

let folder: string;
let bank: BankPort;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-folder-bank-'));
  bank = folderBank(folder, { atRestMs: 0 });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const bytes = Buffer.from('101 …');
const file = { name: '2026-11-23-A', bytes, sha256: createHash('sha256').update(bytes).digest() };
const outgoing = (): string[] => readdirSync(join(folder, 'outgoing'));
const WAITING = { state: 'waiting', forMs: expect.any(Number) };
async function news(of = bank) {
  const { cutOffMs, reports } = await of.news();
  return { cutOffMs, reports: await collected(reports) };
}
/** The bank's tools take what is complete. */
const take = (): void => rmSync(join(folder, 'outgoing', '2026-11-23-A.ach'));

describe('a file', () => {
  test('lies in outgoing once, and not again after the bank has taken it', async () => {
    expect(await bank.ask(file)).toEqual({ state: 'never' });
    expect(await bank.handOver(file)).toEqual(WAITING);
    expect(await bank.ask(file)).toEqual(WAITING);
    expect(await bank.handOver(file)).toEqual(WAITING);
    expect(outgoing()).toEqual(['2026-11-23-A.ach']);
    expect(readFileSync(join(folder, 'outgoing', '2026-11-23-A.ach'))).toEqual(bytes);
    take();
    expect(await bank.ask(file)).toEqual({ state: 'accepted' });
    expect(await bank.handOver(file)).toEqual({ state: 'duplicate' });
    expect(outgoing()).toEqual([]);
  });

  test('whose writer died before it was handed over is not there, and leaves nothing that the bank may take', async () => {
    mkdirSync(join(folder, 'outgoing'), { recursive: true });
    writeFileSync(join(folder, 'outgoing', '.2026-11-23-A.0000.part'), 'half');
    expect(await bank.ask(file)).toEqual({ state: 'never' });
    expect(await bank.handOver(file)).toEqual(WAITING);
    expect(outgoing()).toEqual(['2026-11-23-A.ach']);
  });

  test('whose writer died between the mark and the move is moved by whoever asks next', async () => {
    for (const one of ['outgoing', 'handed']) mkdirSync(join(folder, one));
    const part = join(folder, 'outgoing', '.2026-11-23-A.1234.part');
    writeFileSync(part, bytes);
    linkSync(part, join(folder, 'handed', '2026-11-23-A'));
    expect(await bank.ask(file)).toEqual(WAITING);
    expect(outgoing()).toEqual(['2026-11-23-A.ach']);
    take();
    expect(await bank.handOver(file)).toEqual({ state: 'duplicate' });
    expect(outgoing()).toEqual([]);
  });

  test('that was marked, and lies there whole and unmoved under another number, as after the folder was copied, does not count as taken', async () => {
    for (const part of ['outgoing', 'handed']) mkdirSync(join(folder, part));
    const copy = '.2026-11-23-A.0a1b.part';
    for (const path of [join('handed', file.name), join('outgoing', copy), join('outgoing', '.2026-11-23-A.0000.part')])
      writeFileSync(join(folder, path), path.endsWith('0000.part') ? bytes.subarray(1) : bytes);
    for (const asked of [() => bank.ask(file), () => bank.handOver(file)])
      await expect(asked()).rejects.toThrow(/2026-11-23-A\.0a1b\.part .* ask the bank/);
    expect(outgoing()).toContain(copy);
    // a person finds that the bank does not have it, or has it
    renameSync(join(folder, 'outgoing', copy), join(folder, 'outgoing', '2026-11-23-A.ach'));
    expect(await bank.ask(file)).toEqual(WAITING);
    expect(outgoing()).toEqual(['2026-11-23-A.ach']);
    take();
    expect(await bank.ask(file)).toEqual({ state: 'accepted' });
  });

  test('is remembered when the bank has taken it, with its bytes; another file of its name is never handed over', async () => {
    expect(await bank.had()).toEqual([]);
    await bank.handOver(file);
    take();
    const [had, ...more] = await folderBank(folder).had();
    expect([had?.name, Buffer.from(had?.sha256 ?? []).equals(file.sha256), more]).toEqual([file.name, true, []]);
    expect(await bank.contentOf(file)).toEqual(bytes);
    const other = { ...file, bytes: Buffer.from('101 other'), sha256: createHash('sha256').update('101 other').digest() };
    await expect(bank.handOver(other)).rejects.toThrow(/another file 2026-11-23-A was handed over before/);
    await expect(bank.ask(other)).rejects.toThrow(BankTrouble);
    expect(outgoing()).toEqual([]);
  });

  test('of two workers at once is there once', async () => {
    const said = await Promise.all([bank.handOver(file), folderBank(folder).handOver(file), bank.ask(file)]);
    expect(said.filter(({ state }) => state === 'waiting').length).toBeGreaterThanOrEqual(1);
    expect(outgoing()).toEqual(['2026-11-23-A.ach']);
  });

  test('that cannot be written is no answer', async () => {
    writeFileSync(join(folder, 'outgoing'), 'not a folder');
    for (const call of [() => bank.handOver(file), () => bank.ask(file), () => bank.news()])
      await expect(call()).rejects.toThrow(BankTrouble);
  });
});

test('what the bank puts into incoming is read until it is acknowledged', async () => {
  expect(await news()).toEqual({ cutOffMs: null, reports: [] });
  const incoming = join(folder, 'incoming');
  writeFileSync(join(incoming, 'returns-1.ach'), 'content');
  writeFileSync(join(incoming, '.being-written'), 'half');
  writeFileSync(join(incoming, '2026-11-23-A.refused'), 'company\nunknown\n');
  writeFileSync(join(incoming, '2026-11-23-B.ach.refused'), '');
  writeFileSync(join(incoming, '2026-11-23-C.refused'), 'DUPLICATE FILE');
  writeFileSync(join(incoming, 'large'), Buffer.alloc(17 * 1024 * 1024));
  writeFileSync(join(incoming, 'large-returns'), Buffer.concat([Buffer.from('\r\n'), Buffer.alloc(17 * 1024 * 1024, '101 ')]));
  const reports = [
    { id: '2026-11-23-A.refused', kind: 'refused', file: '2026-11-23-A', reason: 'company unknown' },
    {
      id: '2026-11-23-B.ach.refused',
      kind: 'unreadable',
      reason: 'it has no words: nobody can say whether the file is a duplicate',
    },
    { id: '2026-11-23-C.refused', kind: 'had', file: '2026-11-23-C' },
    { id: 'large', kind: 'unreadable', reason: 'it is larger than 16777216 bytes' },
    { id: 'large-returns', kind: 'unreadable', reason: 'it is larger than 16777216 bytes', mayReturn: true },
    { id: 'returns-1.ach', kind: 'nacha', content: 'content' },
  ];
  expect(await news()).toEqual({ cutOffMs: null, reports });
  expect(await news()).toEqual({ cutOffMs: null, reports });
  await bank.acknowledge('returns-1.ach');
  expect((await news()).reports).toEqual(reports.slice(0, -1));
  expect(readFileSync(join(incoming, 'done', 'returns-1.ach'), 'utf8')).toBe('content');
});

describe('what the bank puts into incoming under the name of a report that is being booked', () => {
  const incoming = (): string => join(folder, 'incoming');
  const contents = async () => (await news()).reports.map((report) => ('content' in report ? report.content : report.kind));

  test('is not acknowledged with it: it is read by the next look', async () => {
    await bank.news();
    writeFileSync(join(incoming(), 'returns.ach'), 'of today');
    expect(await contents()).toEqual(['of today']);
    writeFileSync(join(incoming(), 'returns.ach'), 'of tomorrow');
    await bank.acknowledge('returns.ach');
    expect(await contents()).toEqual(['of tomorrow']);
    await bank.acknowledge('returns.ach');
    expect([await contents(), readdirSync(join(incoming(), 'done'))]).toEqual([[], ['returns.ach']]);
    expect(readFileSync(join(incoming(), 'done', 'returns.ach'), 'utf8')).toBe('of tomorrow');
  });

  test('is read once more, and then no more, where another worker has put it back while it was put aside', async () => {
    await bank.news();
    mkdirSync(join(incoming(), 'done'), { recursive: true });
    writeFileSync(join(incoming(), 'done', 'returns.ach'), 'of today');
    linkSync(join(incoming(), 'done', 'returns.ach'), join(incoming(), 'returns.ach'));
    expect(await contents()).toEqual(['of today']);
    await bank.acknowledge('returns.ach');
    expect([await contents(), readdirSync(join(incoming(), 'done'))]).toEqual([[], ['returns.ach']]);
  });

  test('is read, and put aside, under a name as long as the disk takes one', async () => {
    await bank.news();
    const name = `${'r'.repeat(251)}.ach`;
    writeFileSync(join(incoming(), name), 'of today');
    expect(await contents()).toEqual(['of today']);
    writeFileSync(join(incoming(), name), 'of tomorrow');
    await bank.acknowledge(name);
    expect(await contents()).toEqual(['of tomorrow']);
    const [put = ''] = readdirSync(incoming()).filter((one) => one !== 'done');
    await bank.acknowledge(put);
    expect([await contents(), readdirSync(join(incoming(), 'done')).length]).toEqual([[], 1]);
  });

  test('is read also when the process has died between moving it and comparing it, beside another of its name', async () => {
    await bank.news();
    writeFileSync(join(incoming(), 'done', '.returns.ach.0a1b2c3d.unread'), 'of tomorrow');
    expect(await contents()).toEqual(['of tomorrow']);
    writeFileSync(join(incoming(), 'done', '.returns.ach.0a1b2c3e.unread'), 'of the day after');
    expect((await contents()).sort()).toEqual(['of the day after', 'of tomorrow']);
    expect(readdirSync(join(incoming(), 'done'))).toEqual([]);
  });
});

test('a refusal is read when nothing was written to it for a while: half of its words may say something else', async () => {
  const slow = folderBank(folder);
  await slow.news();
  writeFileSync(join(folder, 'incoming', '2026-11-23-A.refused'), 'REJECTED AS DUPL');
  const id = '2026-11-23-A.refused';
  expect((await news(slow)).reports).toEqual([{ id, kind: 'begun', file: '2026-11-23-A' }]);
  expect((await news()).reports).toMatchObject([{ id, kind: 'refused', file: '2026-11-23-A' }]);
});

test('one file that cannot be read keeps nobody from reading the others, and may tell of any return', async () => {
  await bank.news();
  const incoming = join(folder, 'incoming');
  writeFileSync(Buffer.concat([Buffer.from(`${incoming}/R`), Buffer.from([0xdc]), Buffer.from('CKGABE')]), '101');
  writeFileSync(join(incoming, 'returns-1.ach'), 'content');
  expect((await news()).reports).toEqual([
    { id: 'R\u00dcCKGABE', kind: 'unreadable', reason: 'its name is no UTF-8', mayReturn: true },
    { id: 'returns-1.ach', kind: 'nacha', content: 'content' },
  ]);
});

test('a link in incoming is not followed, and told: nobody knows what it would have said', async () => {
  await bank.news();
  symlinkSync('/etc/hostname', join(folder, 'incoming', 'returns.ach'));
  expect((await news()).reports).toEqual([
    { id: 'returns.ach', kind: 'unreadable', reason: 'it is a link, and only files are read', mayReturn: true },
  ]);
});

test('a folder that was put back, or is not mounted, has forgotten what was handed over, until somebody says that it is lost', async () => {
  const made = Date.parse('2026-11-23T00:59:00Z');
  const lost = new Date('2026-11-23T01:00:00Z');
  const before = { name: file.name, atMs: made };
  const later = { name: '2026-11-23-B', atMs: lost.getTime() + 60_000 };
  const now = lost.getTime() + 3_600_000;
  expect(await bank.forgets([], now)).toEqual([]);
  await bank.handOver(file);
  expect(await bank.forgets([before, later], now)).toEqual([later.name]);
  rmSync(folder, { recursive: true });
  expect(await bank.forgets([before], now)).toEqual([file.name]);
  writeFileSync(join(folder, 'handed', '.known-loss'), '');
  utimesSync(join(folder, 'handed', '.known-loss'), lost, lost);
  // of the same day, but made after the loss
  expect(await bank.forgets([before, later], now)).toEqual([later.name]);
  expect(await bank.forgets([before], lost.getTime() - 1)).toEqual([file.name]);
});

const FILES = 150;
const SIZE = 4 * 1024 * 1024;
test('many large files of the bank are read one after the other, not held together', { timeout: 60_000 }, async () => {
  await bank.news();
  const incoming = join(folder, 'incoming');
  writeFileSync(join(incoming, '000'), Buffer.alloc(SIZE, '101 '));
  for (let n = 1; n < FILES; n++) linkSync(join(incoming, '000'), join(incoming, String(n).padStart(3, '0')));
  const before = process.memoryUsage().rss;
  const { reports } = await bank.news();
  let seen = 0;
  let most = 0;
  for await (const { kind } of reports) {
    seen += Number(kind === 'nacha');
    most = Math.max(most, process.memoryUsage().rss - before);
  }
  expect(seen).toBe(FILES);
  expect(most).toBeLessThan((FILES / 2) * SIZE);
});
