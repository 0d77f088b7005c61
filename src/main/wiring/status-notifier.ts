// Wakes the callers who wait for a change of a transaction's status: the database's notifications arrive on one session and are distributed
// to every waiting call of this process.
import type { StatusNotifier } from '../../flow/transactions/reads.ts';
import type { Database } from '../../store/postgres/connect.ts';

/** Listens from the moment it resolves. When notifications may have been missed, all callers are woken and check for themselves. */
export async function openStatusNotifier(db: Database): Promise<{ readonly notifier: StatusNotifier; close(): Promise<void> }> {
  const waiting = new Map<string, Set<() => void>>();
  function notify(id: string): void {
    for (const wake of [...(waiting.get(id) ?? [])]) wake();
  }
  const close = await db.listen(
    ['transaction_changed'],
    // the ids of all that changed together, separated by spaces
    (_channel, ids) => {
      for (const id of ids.split(' ')) notify(id);
    },
    () => {
      for (const id of [...waiting.keys()]) notify(id);
    },
  );
  const notifier: StatusNotifier = {
    next: (id, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) {
          resolve();
          return;
        }
        const mine = waiting.get(id) ?? new Set();
        function wake(): void {
          signal.removeEventListener('abort', wake);
          mine.delete(wake);
          if (mine.size === 0 && waiting.get(id) === mine) waiting.delete(id);
          resolve();
        }
        waiting.set(id, mine.add(wake));
        signal.addEventListener('abort', wake);
      }),
  };
  return { notifier, close };
}
