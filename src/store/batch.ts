// Micro-batches: calls that arrive together become one statement. A batch leaves when the one before is answered: at low load it is one
// row and waits for nothing, and the more there is to do the larger it is, and the cheaper each row. Called by the stores of the hot paths.

const MAX_ROWS = 64;

/**
 * @param run answers a whole batch, in its order; when it fails for a batch of several, each item is tried alone, so that one bad row does
 *   not fail its neighbours
 */
export function createBatch<I, O>(run: (items: readonly I[]) => Promise<readonly O[]>): (item: I) => Promise<O> {
  type Waiting = { item: I; resolve: (value: O) => void; reject: (error: unknown) => void };
  const queue: Waiting[] = [];
  let underWay = false;
  let scheduled = false;

  async function answer(batch: readonly Waiting[]): Promise<void> {
    try {
      const answers = await run(batch.map((waiting) => waiting.item));
      batch.forEach((waiting, index) => {
        waiting.resolve(answers[index] as O);
      });
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error);
      else for (const waiting of batch) await answer([waiting]);
    }
  }

  async function leave(): Promise<void> {
    scheduled = false;
    underWay = true;
    await answer(queue.splice(0, MAX_ROWS));
    underWay = false;
    schedule();
  }

  function schedule(): void {
    if (scheduled || underWay || queue.length === 0) return;
    scheduled = true;
    setImmediate(leave);
  }

  return (item) =>
    new Promise<O>((resolve, reject) => {
      queue.push({ item, resolve, reject });
      schedule();
    });
}
