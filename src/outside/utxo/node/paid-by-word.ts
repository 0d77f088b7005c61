// What all nodes of Ethereum's chain say of our own transactions: receipts are a node's word.
import type { EvmPort, PaidByWord } from '../../../core/evm/port.ts';
import { type Member, saidInTime, type Waiting } from './member.ts';
import type { ReadingNode } from './node.ts';
import { NodeTrouble } from './trouble.ts';

/** What any node says counts; those that do not answer are named. Trouble when none does. */
export async function succeededAnywhere(
  members: readonly Member<ReadingNode & EvmPort>[],
  asked: Parameters<EvmPort['succeeded']>,
  waiting: Waiting,
): Promise<PaidByWord> {
  const answers = await Promise.all(members.map((member) => saidInTime(member, member.node.succeeded(...asked), waiting)));
  const troubles = answers.filter((answer) => answer instanceof NodeTrouble);
  const said = answers.flatMap((answer) => (answer instanceof NodeTrouble ? [] : [answer]));
  if (said.length === 0) throw troubles[0];
  return {
    paid: said.find(({ paid }) => paid !== null)?.paid ?? null,
    isUnused: said.some(({ isUnused }) => isUnused),
    isDenied: said.filter(({ isDenied }) => isDenied).length >= Math.min(2, members.length),
    silent: [...troubles.map(({ message }) => message), ...said.flatMap(({ silent }) => silent)],
  };
}
