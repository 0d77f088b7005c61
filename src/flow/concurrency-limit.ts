// Limits how many calls run at once, and how many of one caller; the others wait in line, and the callers take turns. Calls that hold a
// database connection for long (keyed writes, which may need a second one, and lists) could take all connections otherwise, and one merchant
// all of those; decisions on thousands of payments could take all memory.
import { Refusal } from '../core/refusal.ts';

/** Runs the work of this caller when it is its turn; one that may not wait is refused (overloaded) when it is not its turn at once. */
export type ConcurrencyLimit = <T>(caller: bigint, work: () => Promise<T>, mayWait?: boolean) => Promise<T>;

type Line = { running: number; readonly waiting: (() => void)[] };

/**
 * Refused: overloaded, when too many of this caller, or of all, are in line already.
 * @param most.atOnce of all callers, and `ofOne` of a single one
 * @param most.waiting of all callers; of a single one half as many
 */
export function createConcurrencyLimit(most: {
  readonly atOnce: number;
  readonly ofOne: number;
  readonly waiting: number;
}): ConcurrencyLimit {
  /** Whoever runs or waits; who had a turn last is behind the others. */
  const lines = new Map<bigint, Line>();
  let running = 0;
  let waiting = 0;

  function next(): void {
    for (const [caller, line] of lines) {
      if (running >= most.atOnce) return;
      if (line.running >= most.ofOne) continue;
      const go = line.waiting.shift();
      if (go === undefined) continue;
      waiting -= 1;
      take(caller, line);
      go();
    }
  }
  function take(caller: bigint, line: Line): void {
    running += 1;
    line.running += 1;
    lines.delete(caller);
    lines.set(caller, line);
  }
  function leave(caller: bigint, line: Line): void {
    running -= 1;
    line.running -= 1;
    if (line.running === 0 && line.waiting.length === 0) lines.delete(caller);
    next();
  }

  return async (caller, work, mayWait = true) => {
    const line = lines.get(caller) ?? { running: 0, waiting: [] };
    if (running < most.atOnce && line.running < most.ofOne) take(caller, line);
    else {
      if (!mayWait || waiting >= most.waiting || line.waiting.length >= most.waiting / 2) throw new Refusal('overloaded');
      waiting += 1;
      lines.set(caller, line);
      await new Promise<void>((resolve) => line.waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      leave(caller, line);
    }
  };
}
