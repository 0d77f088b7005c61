// At most so many calls at once, the others wait in line: a keyed write holds a database connection while it may need a second one, and
// without a limit such writes could take all connections.
import { Refusal } from '../core/refusal.ts';

export type ConcurrencyLimit = <T>(work: () => Promise<T>) => Promise<T>;

/** Refused: overloaded, when `maxWaiting` are in line already. */
export function createConcurrencyLimit(atOnce: number, maxWaiting: number): ConcurrencyLimit {
  let running = 0;
  const line: (() => void)[] = [];
  return async (work) => {
    if (running >= atOnce) {
      if (line.length >= maxWaiting) throw new Refusal('overloaded');
      await new Promise<void>((resolve) => line.push(resolve));
    } else running += 1;
    try {
      return await work();
    } finally {
      const next = line.shift();
      if (next === undefined) running -= 1;
      else next(); // the place passes on to the next
    }
  };
}
