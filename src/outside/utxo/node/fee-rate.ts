// What a transaction must pay to be mined soon is a node's word, and what is offered is paid: one that lies would have each payout pay as much as the
// signer allows.
import { type Member, saidInTime, type Waiting } from './member.ts';
import type { SingleNode } from './node.ts';
import { NodeTrouble } from './trouble.ts';

/** Nodes have seen other transactions for other times; estimates this many times apart come of no such difference. */
const MOST_APART = 10n;

/**
 * What the middle one of those says that have an estimate, of two the lower: offering too little costs time only. One that was just started has none,
 * and its least fee counts where no other has one. Trouble when none answers.
 */
export async function middleFeeRate(
  members: readonly Member<SingleNode>[],
  waiting: Waiting,
): Promise<{ readonly rate: bigint | null; readonly contradiction: string | null }> {
  const answers = await Promise.all(
    members.map(async (member) => {
      const asked = member.node.feeWord().then((word) => ({ word }));
      return { name: member.node.name, said: await saidInTime(member, asked, waiting) };
    }),
  );
  const said = answers.flatMap(({ name, said: one }) => (one instanceof NodeTrouble ? [] : [{ name, word: one.word }]));
  if (said.length === 0) throw answers[0]?.said;
  const words = said.flatMap(({ name, word }) => (word === null ? [] : [{ name, ...word }]));
  const estimates = words.filter(({ isEstimate }) => isEstimate);
  const counted = (estimates.length > 0 ? estimates : words).sort((a, b) => (a.rate < b.rate ? -1 : a.rate > b.rate ? 1 : 0));
  const [least, most] = [counted[0], counted.at(-1)];
  const middle = counted[Math.floor((counted.length - 1) / 2)];
  if (least === undefined || most === undefined || middle === undefined) return { rate: null, contradiction: null };
  const contradiction =
    most.rate <= least.rate * MOST_APART
      ? null
      : `contradiction: by ${most.name} a transaction costs more than ${MOST_APART} times as much as by ${least.name}: what is sent may wait, or cost too much, until the one that is wrong is taken out of the configuration`;
  return { rate: middle.rate, contradiction };
}
