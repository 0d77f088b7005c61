// Micro-batches: calls that arrive together become one statement. A batch leaves as soon as fewer than two are under way, so at low load it
// is one row and waits for nothing. Called by the stores of the hot paths.

const MAX_ROWS = 64;
const MAX_IN_FLIGHT = 2;

/**
 * @param run answers a whole batch, in its order; when it fails for a batch of several, each item is tried alone, so that one bad row does
 *   not fail its neighbours
 */
export function createBatch<I, O>(run: (items: readonly I[]) => Promise<readonly O[]>): (item: I) => Promise<O> {
  type Waiting = { item: I; resolve: (value: O) => void; reject: (error: unknown) => void };
  let queue: Waiting[] = [];
  let inFlight = 0;
  let scheduled = false;

  async function flush(batch: Waiting[]): Promise<void> {
    inFlight++;
    try {
      const answers = await run(batch.map((waiting) => waiting.item));
      batch.forEach((waiting, index) => {
        waiting.resolve(answers[index] as O);
      });
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error);
      else for (const waiting of batch) await flush([waiting]);
    } finally {
      inFlight--;
      schedule();
    }
  }

  function leave(): void {
    scheduled = false;
    while (queue.length > 0 && inFlight < MAX_IN_FLIGHT) {
      const batch = queue.length > MAX_ROWS ? queue.splice(0, MAX_ROWS) : queue;
      if (batch === queue) queue = [];
      void flush(batch);
    }
  }

  function schedule(): void {
    if (scheduled || queue.length === 0 || inFlight >= MAX_IN_FLIGHT) return;
    scheduled = true;
    setImmediate(leave);
  }

  return (item) =>
    new Promise<O>((resolve, reject) => {
      queue.push({ item, resolve, reject });
      schedule();
    });
}
