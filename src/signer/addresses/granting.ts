// Gives out address indexes: the only place that does. A range begins where both the signer's journal and the database say that nothing was
// given yet; it is in the journal before the answer is sent, and an older copy of either is detected and its range passed over.
import { randomInt } from 'node:crypto';
import { END_OF_INDEXES } from '../../core/account-key.ts';
import type { CurrencyCode } from '../../core/currency.ts';
import {
  giveRange,
  isOpen,
  markJournal,
  type OpenRequest,
  openRequests,
  raiseKey,
  readJournalMark,
  type SkippedCause,
} from '../../store/chain/range-requests.ts';
import { describeSkipped } from '../../store/chain/signer-status.ts';
import { listKeys, type StoredKey } from '../../store/chain/xpubs.ts';
import type { Database } from '../../store/postgres/connect.ts';
import type { Journal } from './given-addresses.ts';

export type Granting = {
  /** Compares the journal with the database: before the first range, and whenever the database may be another one than before. */
  compare(): Promise<void>;
  /** Answers every open request. */
  answerAll(): Promise<void>;
};

export type GrantingOptions = {
  readonly db: Database;
  readonly journal: Journal;
  /** The system's clock. */
  readonly now: () => number;
  /** Whether a key that the database calls the signer's really is. */
  readonly owns: (currency: CurrencyCode, xpub: string) => Promise<boolean>;
  /** Receives what an operator must know. */
  readonly report: (line: string) => void;
};

/**
 * How many indexes at least are passed over when the journal was lost or is an older copy: more than can have been given out since. How many
 * beyond that is drawn each time: of two machines that are set up one after the other from one backup, the second does not know what the first gave out.
 */
export const JUMP = 1_000_000;
const JUMP_DRAWN = 4_000_000;
/**
 * Every start of a signer passes over this many indexes and one for each second since the journal was written (for 10,000 seconds at most), or
 * four times the usual number where that is more. Journal and database may both be copies from one moment (a data folder put back, a machine set back to a snapshot),
 * which nothing inside them shows: what was given out after that moment lies in what is passed over.
 */
const START_JUMP = 1_000;
const TIMES_USUAL = 4;
const AT_LEAST_ONE_A_SECOND_FOR = 10_000;
const TRIES = 5;

/**
 * The one place that gives out address indexes; ranges never overlap with what the journal or the database has given, also after either was
 * put back.
 */
export function createGranting(options: GrantingOptions): Granting {
  const { db, journal, owns, report, now } = options;
  let started = false;

  /** What is wrong with the journal, as far as the database shows; null = nothing. */
  async function faultOfJournal(): Promise<Exclude<SkippedCause, 'database_behind'> | null> {
    const mark = await readJournalMark(db);
    const isFirst = journal.counter() === 0;
    if (isFirst && journal.found === 'damaged') return 'journal_lost';
    if (mark === null) return null;
    if (mark.lineage !== journal.lineage) return 'journal_lost';
    return mark.counter > journal.counter() ? 'journal_behind' : null;
  }

  /** A range that was in the journal when the signer died before answering: its request still waits. */
  async function isLostOnTheWay(key: { readonly xpub: string; readonly nextIndex: number }): Promise<boolean> {
    const last = journal.last();
    if (last === null || last.xpub !== key.xpub || last.first !== key.nextIndex) return false;
    return last.end === journal.end(key.xpub) && (await isOpen(db, last.request));
  }

  /** How far the first comparison of this process jumps, with a journal that an earlier process has written. */
  function jumpAtStart(): number {
    const pace = journal.pace();
    if (started || journal.found !== 'kept') return 0;
    if (pace === null) return START_JUMP;
    const seconds = Math.max(0, (now() - pace.writtenAtMs) / 1000);
    const usual = TIMES_USUAL * pace.perSecond * seconds;
    return Math.min(JUMP, START_JUMP + Math.ceil(Math.max(usual, Math.min(seconds, AT_LEAST_ONE_A_SECOND_FOR))));
  }

  async function compare(): Promise<void> {
    const fault = await faultOfJournal();
    const atStart = jumpAtStart();
    const mark = await readJournalMark(db);
    const farJump = JUMP + randomInt(JUMP_DRAWN);
    const changes: { key: StoredKey; to: number; cause: SkippedCause | null }[] = [];
    for (const key of await listKeys(db)) {
      const given = Math.max(key.nextIndex, journal.end(key.xpub));
      const jump = fault === null ? (given === 0 ? 0 : atStart) : farJump;
      const to = Math.min(given + jump, END_OF_INDEXES);
      const isBehind = given > key.nextIndex && !(await isLostOnTheWay(key));
      const cause = fault ?? (isBehind ? 'database_behind' : null);
      changes.push({ key, to, cause });
    }
    const given = changes.map(({ key, to }) => ({ xpub: key.xpub, first: key.nextIndex, end: to }));
    await journal.write({ given, counter: (mark?.counter ?? 0) + 1 });
    const raised = changes.filter(({ key, to }) => to > key.nextIndex);
    await db.transaction(async (sql) => {
      for (const { key, to, cause } of raised) await raiseKey(sql, { keyId: key.id, from: key.nextIndex, to, cause });
      await markJournal(sql, { lineage: journal.lineage, counter: journal.counter() });
    });
    for (const { key, to, cause } of raised)
      if (cause !== null) report(describeSkipped({ currency: key.currency, firstIndex: key.nextIndex, endIndex: to, cause }));
    started = true;
  }

  /** False when the key's counter has changed meanwhile. */
  async function answer(request: OpenRequest): Promise<boolean> {
    const { key, currency } = request;
    if (key.origin === 'signer' && !(await owns(currency, key.xpub))) {
      report(`no address of ${currency} is given out: the key that the database receives to is not of this seed`);
      return true;
    }
    const before = { xpub: key.xpub, nextIndex: key.nextIndex };
    const first = Math.max(key.nextIndex, journal.end(key.xpub));
    const skipped = first === key.nextIndex || (await isLostOnTheWay(before)) ? null : 'database_behind';
    const end = first + request.size;
    if (end > END_OF_INDEXES) {
      report(`no address of ${currency} is left below BIP32's last index: put another account key in use`);
      return true;
    }
    await journal.write({ given: [{ xpub: key.xpub, first, end }], request: request.id });
    const mark = { lineage: journal.lineage, counter: journal.counter() };
    if (!(await giveRange(db, { request, firstIndex: first, skipped, ...mark }))) {
      // the key was retired or changed meanwhile; nobody got these indexes, so passing over them needs no report later
      await raiseKey(db, { keyId: key.id, from: key.nextIndex, to: end, cause: skipped });
      return false;
    }
    if (skipped !== null) report(describeSkipped({ currency, firstIndex: key.nextIndex, endIndex: first, cause: skipped }));
    return true;
  }

  return {
    compare,
    async answerAll() {
      for (let attempt = 1; attempt <= TRIES; attempt++) {
        const keys = new Set<string>();
        let isAnswered = false;
        let moved = false;
        for (const request of await openRequests(db)) {
          // a second request for a key is read again: the first has changed the key's counter, also where it got no answer
          if (keys.has(request.key.xpub)) moved = true;
          else if (await answer(request)) isAnswered = true;
          else moved = true;
          keys.add(request.key.xpub);
        }
        if (!moved) return;
        if (isAnswered) attempt = 0;
      }
      throw new Error('another process changes the counters of the account keys: does another signer run on this database?');
    },
  };
}
