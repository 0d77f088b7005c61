// Micro-batches: calls that arrive together become one statement. At low load a batch is one row and waits for nothing; the higher the
// load, the larger the batch and the cheaper each row.

const MAX_ROWS = 64;

/**
 * @param atOnce how many batches run at the same time. One makes them larger, which pays where a row is expensive; two keep the process
 * busy while
 *   the database reads
 * @param run answers a whole batch, in its order; when the database refuses a batch of several, each item is tried alone, so that one bad
 *   row does not fail the others. Any other failure (the connection broke, no answer came) goes to every item: the batch may have been
 *   committed, and must not be done twice
 */
export function createBatch<I, O>(atOnce: number, run: (items: readonly I[]) => Promise<readonly O[]>): (item: I) => Promise<O> {
  type Waiting = { item: I; resolve: (value: O) => void; reject: (error: unknown) => void };
  const queue: Waiting[] = [];
  let underWay = 0;
  let scheduled = false;

  async function answer(batch: readonly Waiting[]): Promise<void> {
    try {
      const answers = await run(batch.map((waiting) => waiting.item));
      batch.forEach((waiting, index) => {
        waiting.resolve(answers[index] as O);
      });
    } catch (error) {
      if (batch.length > 1 && isRolledBack(error)) for (const waiting of batch) await answer([waiting]);
      else for (const waiting of batch) waiting.reject(error);
    }
  }

  async function send(): Promise<void> {
    underWay++;
    await answer(queue.splice(0, MAX_ROWS));
    underWay--;
    schedule();
  }

  function leave(): void {
    scheduled = false;
    while (queue.length > 0 && underWay < atOnce) void send();
  }

  function schedule(): void {
    if (scheduled || underWay >= atOnce || queue.length === 0) return;
    scheduled = true;
    setImmediate(leave);
  }

  return (item) =>
    new Promise<O>((resolve, reject) => {
      queue.push({ item, resolve, reject });
      schedule();
    });
}

/**
 * Takes an item to what is done for its key: at once where nothing is under way for that key, otherwise together with all that arrive
 * meanwhile.
 * @param run as for {@link createBatch}; the same work for the same key
 */
export type BatchOfKey = <I, O>(key: string, item: I, run: (items: readonly I[]) => Promise<readonly O[]>) => Promise<O>;

/** One batch at a time of each key; those of different keys run beside each other. */
export function createBatchOfKey(): BatchOfKey {
  type OfKey = { readonly take: (item: unknown) => Promise<unknown>; waiting: number };
  const all = new Map<string, OfKey>();
  return async <I, O>(key: string, item: I, run: (items: readonly I[]) => Promise<readonly O[]>): Promise<O> => {
    const ofKey = all.get(key) ?? {
      take: createBatch(1, run as (items: readonly unknown[]) => Promise<readonly O[]>),
      waiting: 0,
    };
    all.set(key, ofKey);
    ofKey.waiting++;
    try {
      return (await ofKey.take(item)) as O;
    } finally {
      if (--ofKey.waiting === 0) all.delete(key);
    }
  };
}

/** Whether the statement is known to have had no effect: the server refused it, and not because of a time limit. */
function isRolledBack(error: unknown): boolean {
  const { severity, code } = error as { severity?: unknown; code?: unknown };
  return severity === 'ERROR' && code !== '57014';
}
