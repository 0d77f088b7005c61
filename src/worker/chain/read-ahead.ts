// Reads blocks ahead of their use, within a limit on what this whole process holds of blocks in advance: a miner chooses their size, and
// several jobs of five chains read at the same time.
import { type CurrencyCode, chainRow } from '../../core/currency.ts';
import type { BlockFacts } from '../../core/ports.ts';

/** What the readings of all jobs occupy together, those that are needed at once and those in advance. */
export type ReadingMemory = {
  readonly bytes: number;
  /** Whether this much more may be read in advance. */
  hasRoom(bytes: number): boolean;
  /** Counts a reading; the function returned changes what it counts for. */
  take(bytes: number): (bytes: number) => void;
};

const MOST_BYTES = 64 * 1024 * 1024;
const MOST_READINGS = 3;
/** About what one input or output of a transaction that touches something of ours takes in memory. */
const FACT_BYTES = 300;

/**
 * One count for all readings of a process.
 * @param mostBytes what is read in advance ends there
 */
export function createReadingMemory(mostBytes = MOST_BYTES): ReadingMemory {
  let held = 0;
  return {
    get bytes() {
      return held;
    },
    hasRoom: (bytes) => held + bytes <= mostBytes,
    take(bytes) {
      let own = bytes;
      held += own;
      return (now) => {
        held += now - own;
        own = now;
      };
    },
  };
}

const ofThisProcess = createReadingMemory();

export type ReadAheadOptions<T> = {
  /** Whose blocks they are: one that is being read counts as the largest that its chain allows. */
  readonly currency: CurrencyCode;
  /** What a block that was read still occupies, in bytes. */
  heldBytes(result: T): number;
  readonly memory?: ReadingMemory;
};

/**
 * Each place with the result of reading it, in their order. The next one is always read, further ones as long as there is room for them. A
 * result counts until the next one is requested.
 */
export async function* readAhead<P, T>(
  places: AsyncIterable<P> | Iterable<P>,
  read: (place: P) => Promise<T>,
  { currency, heldBytes, memory = ofThisProcess }: ReadAheadOptions<T>,
): AsyncGenerator<readonly [P, T]> {
  const unread = chainRow(currency).blockBytes;
  const source = inTurn(places);
  const ahead: Reading<P, T>[] = [];
  let isAtEnd = false;
  try {
    for (;;) {
      while (!isAtEnd && ahead.length < MOST_READINGS && (ahead.length === 0 || memory.hasRoom(unread))) {
        const next = await source.next();
        if (next.done) isAtEnd = true;
        else ahead.push(begin(next.value, read, memory.take(unread), heldBytes));
      }
      const reading = ahead.shift();
      if (reading === undefined) return;
      try {
        yield [reading.place, await reading.result];
      } finally {
        reading.release();
      }
    }
  } finally {
    for (const reading of ahead) reading.release();
    await source.return(undefined);
  }
}

async function* inTurn<P>(places: AsyncIterable<P> | Iterable<P>): AsyncGenerator<P, void> {
  yield* places;
}

type Reading<P, T> = { readonly place: P; readonly result: Promise<T>; release(): void };

function begin<P, T>(
  place: P,
  read: (place: P) => Promise<T>,
  count: (bytes: number) => void,
  heldBytes: (result: T) => number,
): Reading<P, T> {
  const result = read(place);
  result.then(
    (done) => count(heldBytes(done)),
    () => count(0), // whoever awaits the result gets the error; after one before it, it is of no interest
  );
  // what is still being read occupies memory until it is there
  const release = (): void => void result.then(() => count(0)).catch(() => undefined);
  return { place, result, release };
}

/** What the facts of a block occupy, in bytes. */
export function factBytes(block: BlockFacts | null): number {
  let facts = 0;
  for (const { inputs, outputs } of block?.touched ?? []) facts += 1 + inputs.length + outputs.length;
  return facts * FACT_BYTES;
}

/** The heights from one to another, both included. */
export function* heights(from: number, to: number): Generator<number> {
  for (let height = from; height <= to; height++) yield height;
}
