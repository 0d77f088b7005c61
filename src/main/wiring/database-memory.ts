// What this machine remembers of its database, in a file of the data folder: a database that was put back to an earlier state while nothing
// ran is recognised by it, or shows it by itself (store/postgres/database-home.ts). The worker keeps the file up to date; what is at most some
// seconds old is enough, because nobody puts back a copy that is younger.
import { randomBytes } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Network } from '../../core/currency.ts';
import { replaceFile } from '../../signer/own-files.ts';
import { connect, type Database } from '../../store/postgres/connect.ts';
import { type DatabaseSeen, databaseNow, settleDatabase } from '../../store/postgres/database-home.ts';
import { MAY_BE_MISSING } from '../../store/postgres/database-replacements.ts';
import { migrate } from '../../store/postgres/migrate.ts';
import type { Job } from '../../worker/loop.ts';
import { storedClusterFolder } from '../postgres/cluster-paths.ts';

const FILE = 'database-seen.json';
const WHAT = 'which database was used here, and how far it was: an older state of it is recognised by this';
const UNUSABLE = 'what this machine remembers of its database';
/** It holds no secret, and whoever runs a command may have made it. */
const MODE = 0o644;
const NOTED_EVERY_MS = 5_000;
/** Where no event was written, the rest is noted this often. */
const NOTED_AT_REST_MS = 60_000;

type Told = (line: string) => void;

/**
 * Migrates the database, and finds out whether it is an earlier state than the one before: nothing may be written to it before.
 * @returns the names of the migrations that were applied
 */
export async function prepareDatabase(
  { url, serviceUrl }: { readonly url: string; readonly serviceUrl: string },
  { network, dataFolder, tell }: { readonly network: Network; readonly dataFolder: string; readonly tell: Told },
): Promise<readonly string[]> {
  const applied = await migrate({ url, network });
  const db = connect({ url: serviceUrl, role: 'bursar_app', maxConnections: 1, applicationName: 'bursar start' });
  try {
    await settle(db, dataFolder, tell);
  } finally {
    await db.close();
  }
  return applied;
}

async function settle(db: Database, dataFolder: string, tell: Told, given: string | null = null): Promise<DatabaseSeen> {
  const before = await readSeen(dataFolder).catch((error: Error) => {
    tell(`${UNUSABLE}: ${error.message}`);
    return null;
  });
  const filesMade = await filesMadeAt(dataFolder);
  const { seen, found } = await settleDatabase(db, randomBytes(8).toString('hex'), { seen: before, given, filesMade });
  if (found !== null) tell(`the database was put back or replaced (${found}): ${MAY_BE_MISSING}`);
  // a full disk keeps nobody from starting
  if (found !== null || before?.lineage !== seen.lineage)
    await writeSeen(dataFolder, seen).catch((error: Error) => tell(`${UNUSABLE}: ${error.message}`));
  return seen;
}

/** When the files of the database in this data folder were made; null where it is elsewhere, or the file system does not tell. */
async function filesMadeAt(dataFolder: string): Promise<string | null> {
  const { birthtimeNs } = await stat(join(storedClusterFolder(dataFolder), 'PG_VERSION'), { bigint: true }).catch(() => ({
    birthtimeNs: 0n,
  }));
  return birthtimeNs === 0n ? null : birthtimeNs.toString();
}

export type DatabaseMemory = {
  /** Keeps the file up to date, and notices that the database was put back meanwhile. */
  readonly job: Job;
  /** Something shows that the database was replaced. */
  replaced(evidence: string): Promise<void>;
  /** Notes where the database is when this process stops. */
  note(): Promise<void>;
};

/** What a worker remembers. @param tell an earlier state was found */
export async function openDatabaseMemory(db: Database, dataFolder: string, tell: Told): Promise<DatabaseMemory> {
  let seen = await settle(db, dataFolder, tell);
  let notedMs = Number.NEGATIVE_INFINITY;
  let turn: Promise<unknown> = Promise.resolve();

  async function note(isLast: boolean): Promise<void> {
    const now = await databaseNow(db, seen);
    if (now === null) {
      seen = await settle(db, dataFolder, tell);
      return;
    }
    const isAtRest = now.lastEvent?.id === seen.lastEvent?.id && now.raised === seen.raised;
    if (!isLast && isAtRest && performance.now() < notedMs + NOTED_AT_REST_MS) return;
    await writeSeen(dataFolder, now);
    seen = now;
    notedMs = performance.now();
  }
  /** One after the other. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  }
  return {
    job: {
      name: 'note the database',
      everyMs: NOTED_EVERY_MS,
      urgent: false,
      async run() {
        await inTurn(() => note(false));
        return false;
      },
    },
    replaced: (evidence) =>
      inTurn(async () => {
        seen = await settle(db, dataFolder, tell, evidence);
      }),
    note: () => inTurn(() => note(true)),
  };
}

type Written = Omit<DatabaseSeen, 'log' | 'lastEvent'> & {
  readonly log: string | null;
  readonly lastEvent: { readonly id: string; readonly merchantId: string; readonly mark: string } | null;
};

/** Null: there is none, or it says nothing. */
async function readSeen(dataFolder: string): Promise<DatabaseSeen | null> {
  const text = await readFile(join(dataFolder, FILE), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (text === null) return null;
  try {
    const { log, lastEvent, ...rest } = JSON.parse(text) as Written;
    const { id, merchantId, mark } = lastEvent ?? { id: '0', merchantId: '0', mark: '' };
    const last = lastEvent === null ? null : { id: BigInt(id), merchantId: BigInt(merchantId), mark };
    return { ...rest, filesMade: rest.filesMade ?? null, log: log === null ? null : BigInt(log), lastEvent: last };
  } catch {
    return null;
  }
}

async function writeSeen(dataFolder: string, seen: DatabaseSeen): Promise<void> {
  const content = JSON.stringify(
    { what: WHAT, ...seen },
    (_, value) => (typeof value === 'bigint' ? value.toString() : value),
    1,
  );
  await replaceFile(join(dataFolder, FILE), `${content}\n`, MODE);
}
