// How slow this machine is. Limits of processor time are those of a machine with nothing else to do: one that gives its processors to others as
// well takes longer for the same work, and says nothing about the code.
import { createHash } from 'node:crypto';
import { workedMs } from './longest-turn.ts';

/** Milliseconds that the work below takes on the machine on which the limits were set. */
const REFERENCE_MS = 100;
const TRIES = 5;
/** Of one try: the system counts processor time in steps of 4 ms. */
const ROUNDS = 12;

/** Some of everything that our work consists of: numbers of any size, objects, texts, bytes. */
function someWork(): number {
  const rows = Array.from({ length: 8_000 }, (_, n) => ({
    id: `pay_${n}`,
    amount: String(BigInt(n) * 1_000_003n),
    isCounted: n % 3 === 0,
  }));
  const read = JSON.parse(JSON.stringify(rows)) as typeof rows;
  const sums = new Map<string, bigint>();
  for (const { id, amount } of read) sums.set(id.slice(0, 6), (sums.get(id.slice(0, 6)) ?? 0n) + BigInt(amount));
  const hash = createHash('sha256');
  for (const [id, sum] of sums) hash.update(`${id}${sum}`);
  read.sort((a, b) => (a.amount < b.amount ? -1 : 1));
  return hash.digest().length;
}

/** @returns by how much to multiply a limit of processor time; 1 at the least. It takes a moment: call it where the limit is looked at */
export function slowness(): number {
  const took = Array.from({ length: TRIES }, () => {
    const before = workedMs();
    for (let n = 0; n < ROUNDS; n++) someWork();
    return workedMs() - before;
  });
  const middle = took.toSorted((a, b) => a - b)[TRIES >> 1] as number;
  return Math.max(1, middle / REFERENCE_MS);
}
