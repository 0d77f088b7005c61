// The copies of our bank files in BURSAR_DATA_DIR/bank, written before the bank gets them, and of its reports, below it; none is ever changed.
import { createHash, randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BankReport, KeptFiles } from '../../core/ach/bank-port.ts';

const ENDING = '.ach';
const REPORTS = 'reports';
const REPORT = /^[0-9a-f]{64}\.json$/;
const NAME = /^\d{4}-\d\d-\d\d-[A-Z0-9]\.ach$/;

/** @param folder made when it is missing */
export function keptFiles(folder: string): KeptFiles {
  return {
    async keep({ name, bytes }) {
      const path = join(folder, name + ENDING);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      if (await writeOnce(path, bytes)) return true;
      return (await readFile(path)).equals(bytes);
    },
    names: async () => (await namesIn(folder)).filter((name) => NAME.test(name)).map((name) => name.slice(0, -ENDING.length)),
    read: (name) => readFile(join(folder, name + ENDING)),
    async keepReport(report) {
      await mkdir(join(folder, REPORTS), { recursive: true, mode: 0o700 });
      await writeOnce(join(folder, REPORTS, reportName(report.id)), Buffer.from(JSON.stringify(report)));
    },
    async reports() {
      const names = (await namesIn(join(folder, REPORTS))).filter((name) => REPORT.test(name));
      const found = await Promise.all(
        names.map(async (name) => {
          const path = join(folder, REPORTS, name);
          return { atMs: (await stat(path)).mtimeMs, report: JSON.parse(await readFile(path, 'utf8')) as BankReport };
        }),
      );
      return found.sort((a, b) => a.atMs - b.atMs).map(({ report }) => report);
    },
  };
}

/** A bank chooses the ids: only their hash is a name in our folder. */
const reportName = (id: string): string => `${createHash('sha256').update(id).digest('hex')}.json`;

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
