// The copies of our bank files in BURSAR_DATA_DIR/bank, written before the bank gets them, and of its reports, below it; none is ever changed.
import { createHash, randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BankReport, KeptFiles } from '../../core/ach/bank-port.ts';
import { referencesIn } from '../../core/ach/own-file.ts';
import type { Sealing } from '../../core/ports.ts';

const ENDING = '.ach';
const REPORTS = 'reports';
const ABOUT_REPORT = 'a report of the bank';
const REPORT = /^[0-9a-f]{64}\.json$/;
const NAME = /^\d{4}-\d\d-\d\d-[A-Z0-9]\.ach$/;

/** @param folder made when it is missing */
export function keptFiles(folder: string, sealing: Sealing): KeptFiles {
  const read = async (name: string): Promise<Uint8Array> => sealing.open(await readFile(join(folder, name + ENDING)), name);
  // a copy never changes
  const references = new Map<string, readonly string[]>();
  return {
    async keep({ name, bytes }) {
      const path = join(folder, name + ENDING);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      if (await writeOnce(path, sealing.seal(bytes, name))) return true;
      return Buffer.from(await read(name)).equals(bytes);
    },
    names: async () => (await namesIn(folder)).filter((name) => NAME.test(name)).map((name) => name.slice(0, -ENDING.length)),
    read,
    async references(name) {
      const found = references.get(name) ?? referencesIn(await read(name));
      references.set(name, found);
      return found;
    },
    async keepReport(report) {
      await mkdir(join(folder, REPORTS), { recursive: true, mode: 0o700 });
      await writeOnce(join(folder, REPORTS, reportName(report)), sealing.seal(Buffer.from(JSON.stringify(report)), ABOUT_REPORT));
    },
    async reports() {
      const names = (await namesIn(join(folder, REPORTS))).filter((name) => REPORT.test(name));
      const found: { readonly path: string; readonly atMs: number }[] = [];
      for (const name of names) {
        const path = join(folder, REPORTS, name);
        found.push({ path, atMs: (await stat(path)).mtimeMs });
      }
      const sorted = found.sort((a, b) => a.atMs - b.atMs).map(({ path }) => path);
      return readOneByOne(sorted, (bytes) => sealing.open(bytes, ABOUT_REPORT));
    },
  };
}

async function* readOneByOne(paths: readonly string[], opened: (bytes: Uint8Array) => Uint8Array): AsyncGenerator<BankReport> {
  for (const path of paths) yield JSON.parse(Buffer.from(opened(await readFile(path))).toString()) as BankReport;
}

/** A bank chooses the ids, perhaps the same each day: the hash of the whole is the name in our folder. */
const reportName = (report: BankReport): string => `${createHash('sha256').update(JSON.stringify(report)).digest('hex')}.json`;

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** A file that is whole and on disk, or not there; false when there is one already. */
async function writeOnce(path: string, bytes: Uint8Array): Promise<boolean> {
  const making = `${path}.${randomBytes(4).toString('hex')}`;
  const handle = await open(making, 'wx', 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
    await link(making, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  } finally {
    await handle.close();
    await rm(making, { force: true });
  }
  const folder = await open(join(path, '..'), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
  return true;
}
