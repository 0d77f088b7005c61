// Who waits for a transaction's next change of status (wait_seconds) is woken here by the database's notifications. Made once per API
// process, in main/wire.ts.
import type { Database } from '../store/connect.ts';
import type { StatusBell } from './transaction-reads.ts';

/** Listens to `transaction_changed`; while the connection was lost everybody is woken once, to look again. */
export async function listenForStatus(db: Database): Promise<StatusBell & { close(): Promise<void> }> {
  const waiting = new Map<string, Set<() => void>>();
  function ring(transactionId: string): void {
    for (const wake of waiting.get(transactionId) ?? []) wake();
  }
  const stop = await db.listen(
    ['transaction_changed'],
    (_channel, transactionId) => ring(transactionId),
    () => {
      for (const transactionId of [...waiting.keys()]) ring(transactionId);
    },
  );
  return {
    next(transactionId, signal) {
      return new Promise((resolve) => {
        const wakes = waiting.get(transactionId) ?? new Set();
        function wake(): void {
          signal.removeEventListener('abort', wake);
          wakes.delete(wake);
          if (wakes.size === 0) waiting.delete(transactionId);
          resolve();
        }
        if (signal.aborted) {
          resolve();
          return;
        }
        waiting.set(transactionId, wakes.add(wake));
        signal.addEventListener('abort', wake, { once: true });
      });
    },
    close: stop,
  };
}
