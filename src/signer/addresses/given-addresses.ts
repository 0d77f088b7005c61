// How far the indexes of each account key were ever given out: the signer's own record, on disk before an index is used, so that no older
// copy of the database gives an address to a second customer. Keyed by the account key itself. Only the signer's process opens it, under
// its lock.
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '../own-files.ts';

/** A range of indexes that was given: from the first to the one before `end`. */
export type Given = { readonly xpub: string; readonly first: number; readonly end: number };
export type Journal = {
  /** How it was found when it was opened: `new` when there was none, `damaged` when its content cannot be trusted. */
  readonly found: 'kept' | 'new' | 'damaged';
  /** Made with the journal: two journals of different lineage do not know of each other. */
  readonly lineage: string;
  /** Rises with every change. */
  counter(): number;
  /** The first index of this key that was never given out; 0 for an unknown key. */
  end(xpub: string): number;
  /** When it was written last, and how many indexes a second were asked for on average since it was begun (over a day at least); null in a new one. */
  pace(): { readonly writtenAtMs: number; readonly perSecond: number } | null;
  /** What was given last, and for which request; null before the first. */
  last(): (Given & { readonly request: string }) | null;
  /**
   * Resolves when the change is on disk. Nothing is ever lowered.
   * @param change.request the request that the first range is given for, if any
   * @param change.counter the counter becomes at least this
   */
  write(change: { readonly given: readonly Given[]; readonly request?: string; readonly counter?: number }): Promise<void>;
};

type Content = {
  readonly version: 1;
  readonly what: string;
  readonly lineage: string;
  readonly counter: number;
  readonly ends: Readonly<Record<string, number>>;
  readonly last: (Given & { readonly request: string }) | null;
  readonly beganAtMs?: number;
  readonly writtenAtMs?: number;
  /** How many indexes were given for requests, without what was passed over. */
  readonly requested?: number;
};

const FILE = 'given-addresses.json';
const WHAT = 'how far the address indexes of each account key were given out; never put an older copy of this file back';

/**
 * Opens the journal of a signer's folder; the first write creates it. A damaged one is kept beside it under another name.
 * @param folder the signer's own
 * @param now the system's clock
 */
export async function openJournal(folder: string, now: () => number): Promise<Journal> {
  const path = join(folder, FILE);
  const read = await readContent(path);
  if (read === 'damaged') await rename(path, `${path}.damaged-${randomBytes(4).toString('hex')}`);
  let content: Content = typeof read === 'object' ? read : emptyContent();
  let turn: Promise<unknown> = Promise.resolve();

  async function replace(next: Content): Promise<void> {
    await writeContent(folder, next);
    content = next;
  }
  return {
    found: typeof read === 'object' ? 'kept' : read,
    lineage: content.lineage,
    counter: () => content.counter,
    end: (xpub) => content.ends[xpub] ?? 0,
    last: () => content.last,
    pace: () => paceOf(content),
    write(change) {
      const mine = turn.then(() => replace(changed(content, change, now())));
      turn = mine.catch(() => undefined);
      return mine;
    },
  };
}

function emptyContent(): Content {
  return { version: 1, what: WHAT, lineage: randomBytes(8).toString('hex'), counter: 0, ends: {}, last: null };
}

const A_DAY_S = 86_400;

function paceOf({ beganAtMs, writtenAtMs, requested = 0 }: Content): ReturnType<Journal['pace']> {
  if (beganAtMs === undefined || writtenAtMs === undefined) return null;
  return { writtenAtMs, perSecond: requested / Math.max(A_DAY_S, (writtenAtMs - beganAtMs) / 1000) };
}

function changed(before: Content, change: Parameters<Journal['write']>[0], nowMs: number): Content {
  const ends: Record<string, number> = { ...before.ends };
  for (const { xpub, end } of change.given) ends[xpub] = Math.max(ends[xpub] ?? 0, end);
  const [first] = change.given;
  const last = first === undefined || change.request === undefined ? before.last : { ...first, request: change.request };
  const requested = (before.requested ?? 0) + (last === before.last || first === undefined ? 0 : first.end - first.first);
  const times = { beganAtMs: before.beganAtMs ?? nowMs, writtenAtMs: nowMs, requested };
  return { ...before, counter: Math.max(before.counter + 1, change.counter ?? 0), ends, last, ...times };
}

async function readContent(path: string): Promise<Content | 'new' | 'damaged'> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'new';
    throw error;
  }
  try {
    const { sha256, ...content } = JSON.parse(text) as Content & { readonly sha256: string };
    return content.version === 1 && sha256 === hashOf(content) ? content : 'damaged';
  } catch {
    return 'damaged';
  }
}

/** Replaces the content as a whole or not at all; the content and the file's name are on disk when this resolves. */
async function writeContent(folder: string, content: Content): Promise<void> {
  const path = join(folder, FILE);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(`${JSON.stringify({ ...content, sha256: hashOf(content) }, null, 1)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  await syncFolder(folder);
}

function hashOf(content: Content): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex');
}
