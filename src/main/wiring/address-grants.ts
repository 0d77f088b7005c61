// Makes the signer's process give out address indexes for as long as it runs: woken by each request, one signer at a time per database,
// with a new comparison whenever the database may have been replaced meanwhile.
import type { Journal } from '../../signer/addresses/given-addresses.ts';
import { createGranting, type GrantingOptions } from '../../signer/addresses/granting.ts';
import { SIGNER_LOCK, WANTED } from '../../store/chain/range-requests.ts';
import type { Database } from '../../store/postgres/connect.ts';
import { outageOf } from '../process/outage-log.ts';

const LOOK_MS = 1_000;
/** How often the journal and the database record each other's state, whether or not anything is given: an older copy of either is detected. */
const MARK_MS = 3_600_000;

/**
 * Resolves when the requests so far are answered, or another signer has this database: then it waits for that one to end.
 * @param report receives what an operator must know
 */
export async function grantAddresses(
  db: Database,
  journal: Journal,
  options: Pick<GrantingOptions, 'owns' | 'report' | 'now'>,
): Promise<{ close(): Promise<void> }> {
  let comparedMs: number | null = null;
  let wanted = false;
  let running: Promise<void> | null = null;
  let last = '';
  const lock = db.sessionLock(SIGNER_LOCK, () => {
    comparedMs = null;
  });
  const granting = createGranting({ db, journal, ...options });

  /** Logged once while it stays the same. */
  function trouble(line: string): void {
    if (line !== '' && line !== last) options.report(line);
    last = line;
  }
  async function work(): Promise<void> {
    if (!(await lock.acquire())) {
      await lock.terminateStaleHolder();
      trouble('another signer gives out addresses for this database: this one waits until that has ended');
      return;
    }
    if (comparedMs === null || performance.now() - comparedMs > MARK_MS) {
      wanted = true;
      await granting.compare();
      comparedMs = performance.now();
    }
    while (wanted) {
      wanted = false;
      await granting.answerAll();
    }
    trouble('');
  }
  function look(): Promise<void> {
    running ??= work()
      .catch((error: Error) => {
        wanted = true;
        // the messages of a database that comes up change: log only the first
        trouble(`no addresses are given out: ${outageOf(error) === null ? error.message : 'the database cannot be used'}`);
      })
      .finally(() => {
        running = null;
      });
    return running;
  }
  const stopListening = await db.listen(
    [WANTED],
    () => {
      wanted = true;
      void look();
    },
    () => {
      // it may have been restored, or replaced by a replica
      comparedMs = null;
      void look();
    },
  );
  await look();
  const timer = setInterval(() => void look(), LOOK_MS);
  return {
    async close() {
      clearInterval(timer);
      await stopListening();
      await running;
      await lock.release();
    },
  };
}
