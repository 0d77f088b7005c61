// A price that is paid as nodes say it, where each of them may be wrong: the middle one counts, of two the lower, because offering too little costs
// time only.
import { type Member, saidInTime, type Waiting } from './member.ts';
import type { ReadingNode } from './node.ts';
import { NodeTrouble } from './trouble.ts';

type Said<T> = { readonly name: string; readonly said: T };
type Price = { readonly name: string; readonly price: bigint };

/**
 * What each of these nodes says that answers in time, with its name. One that has said of itself that it does not follow the chain (it is on another
 * network, still reads, or has stopped) knows nothing of today's prices, and is asked only where no other is. Trouble when none answers.
 */
export async function saidByEach<N extends ReadingNode, T extends object>(
  members: readonly Member<N>[],
  ask: (node: N) => Promise<T>,
  waiting: Waiting,
): Promise<readonly Said<T>[]> {
  const ready = members.filter(({ trouble }) => trouble === null);
  const answers = await Promise.all(
    (ready.length > 0 ? ready : members).map(async (member) => ({
      name: member.node.name,
      said: await saidInTime(member, ask(member.node), waiting),
    })),
  );
  const said = answers.flatMap(({ name, said: one }) => (one instanceof NodeTrouble ? [] : [{ name, said: one }]));
  if (said.length === 0) throw answers[0]?.said;
  return said;
}

const compared = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

/** The middle one of at least one, of two the lower. */
export function middle(prices: readonly bigint[]): bigint {
  return prices.toSorted(compared)[Math.floor((prices.length - 1) / 2)] as bigint;
}

/**
 * What an operator is told where the dearest is more than so many times the cheapest; null: nothing. Without the prices, which are others with each
 * block.
 * @param what has the price, as the subject of a sentence
 */
export function contradictionOf(prices: readonly Price[], times: bigint, what: string): string | null {
  const sorted = prices.toSorted((one, other) => compared(one.price, other.price));
  const [least, most] = [sorted[0], sorted.at(-1)];
  if (least === undefined || most === undefined || most.price <= least.price * times) return null;
  return `contradiction: by ${most.name} ${what} costs more than ${times} times as much as by ${least.name}: what is sent may wait, or cost too much, until the one that is wrong is taken out of the configuration`;
}
