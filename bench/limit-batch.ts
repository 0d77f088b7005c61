// Micro-batches for the limit server: calls that arrive while two statements are under way go into the next one, without a timer.
type Waiting<I, O> = { readonly item: I; readonly resolve: (output: O) => void; readonly reject: (error: unknown) => void };

const MOST_ITEMS = 64;
const MOST_IN_FLIGHT = 2;

/** @param run answers a batch, one output for each item in the same order */
export function microBatch<I, O>(run: (items: readonly I[]) => Promise<readonly O[]>): (item: I) => Promise<O> {
  const waiting: Waiting<I, O>[] = [];
  let inFlight = 0;
  let scheduled = false;
  async function flush(): Promise<void> {
    scheduled = false;
    if (waiting.length === 0 || inFlight === MOST_IN_FLIGHT) return;
    const batch = waiting.splice(0, MOST_ITEMS);
    inFlight += 1;
    try {
      const outputs = await run(batch.map((one) => one.item));
      for (const [index, one] of batch.entries()) one.resolve(outputs[index] as O);
    } catch (error) {
      for (const one of batch) one.reject(error);
    }
    inFlight -= 1;
    if (waiting.length > 0) void flush();
  }
  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!scheduled && inFlight < MOST_IN_FLIGHT) {
        scheduled = true;
        setImmediate(() => void flush());
      }
    });
}
