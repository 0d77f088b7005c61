// What a transaction must pay to be mined soon is a node's word, and what is offered is paid: one that lies would have each payout pay as much as the
// signer allows.
import type { Member, Waiting } from './member.ts';
import { contradictionOf, middle, saidByEach } from './middle-word.ts';
import type { SingleNode } from './node.ts';

/** Nodes have seen other transactions for other times; estimates this many times apart come of no such difference. */
const MOST_APART = 10n;

/**
 * What the middle one of those says that have an estimate. One that was just started has none, and its least fee counts where no other has one.
 * Trouble when none answers.
 */
export async function middleFeeRate(
  members: readonly Member<SingleNode>[],
  waiting: Waiting,
): Promise<{ readonly rate: bigint | null; readonly contradiction: string | null }> {
  const all = await saidByEach(members, async (node) => ({ word: await node.feeWord() }), waiting);
  const words = all.flatMap(({ name, said: { word } }) => (word === null ? [] : [{ ...word, name, price: word.rate }]));
  const estimates = words.filter(({ isEstimate }) => isEstimate);
  const counted = estimates.length > 0 ? estimates : words;
  return {
    rate: counted.length === 0 ? null : middle(counted.map(({ price }) => price)),
    contradiction: contradictionOf(counted, MOST_APART, 'a transaction'),
  };
}
