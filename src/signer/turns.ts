// What must happen one after the other in the signer's process.

/** Runs what it is given alone: it begins when everything that came before has ended. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

/** A queue of its own. */
export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work);
    last = mine.catch(() => undefined);
    return mine;
  };
}
