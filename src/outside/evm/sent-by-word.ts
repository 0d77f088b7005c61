// How many transactions an account has sent is a node's word. What leaves first from an address of ours has that nonce, and where it is too high there
// is a gap before it and everything after it, for ever.
import type { EvmPort, SentByWord } from '../../core/evm/port.ts';
import { type Member, saidInTime, type Waiting } from '../utxo/node/member.ts';
import type { ReadingNode } from '../utxo/node/node.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';

/** What two nodes say alike (the only one, where there is one). Trouble when none answers. */
export async function sentByWord(
  members: readonly Member<ReadingNode & EvmPort>[],
  address: string,
  waiting: Waiting,
): Promise<SentByWord> {
  const answers = await Promise.all(members.map((member) => saidInTime(member, member.node.sentBy(address), waiting)));
  const troubles = answers.filter((answer) => answer instanceof NodeTrouble);
  const words = answers.flatMap((answer) => (answer instanceof NodeTrouble ? [] : [answer]));
  if (words.length === 0) throw troubles[0];
  const enough = Math.min(2, members.length);
  const alike = [...Map.groupBy(words, ({ nonce }) => nonce).entries()].filter(([, all]) => all.length >= enough);
  return {
    nonce: alike.length === 1 ? (alike[0]?.[0] ?? null) : null,
    most: Math.max(...words.map(({ most }) => most)),
    said: [...troubles.map(({ message }) => message), ...words.flatMap(({ said }) => said)],
  };
}
