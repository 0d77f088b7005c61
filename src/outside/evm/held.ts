// What an address of ours holds of a token after a final block, by the word of each node: what is missing there for good is booked as lost, so two must
// say the same, and none that there is more.
import type { BlockRef } from '../../core/block-ref.ts';
import type { EvmPort, HeldByWord } from '../../core/evm/port.ts';
import { greatest } from '../../core/money.ts';
import { type Member, saidInTime, type Waiting } from '../utxo/node/member.ts';
import type { ReadingNode } from '../utxo/node/node.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';

type Asked = Pick<ReadingNode & EvmPort, 'name' | 'finalized' | 'hashAt' | 'account'>;

/** What one node says. @throws NodeTrouble */
export async function heldAt(node: Asked, address: string, block: BlockRef): Promise<HeldByWord> {
  const nothing = (what: string): HeldByWord => ({ held: null, most: null, said: [`${node.name} ${what}`] });
  const { height, hash } = block;
  if (((await node.finalized())?.height ?? -1) < height) return nothing(`does not call block ${height} final`);
  if ((await node.hashAt(height)) !== hash) return nothing(`has another block ${height}`);
  const { nonce, units } = await node.account(address, height);
  return { held: { nonce, units }, most: units, said: [`${node.name} says ${units} units, and ${nonce} transactions sent`] };
}

/** What two nodes say alike (the only one, where there is one). Trouble when none answers. */
export async function heldByWord(
  members: readonly Member<ReadingNode & EvmPort>[],
  asked: { readonly address: string; readonly block: BlockRef },
  waiting: Waiting,
): Promise<HeldByWord> {
  const { address, block } = asked;
  const answers = await Promise.all(members.map((member) => saidInTime(member, member.node.heldBy(address, block), waiting)));
  const troubles = answers.filter((answer) => answer instanceof NodeTrouble);
  const words = answers.flatMap((answer) => (answer instanceof NodeTrouble ? [] : [answer]));
  if (words.length === 0) throw troubles[0];
  const said = words.flatMap(({ held }) => held ?? []);
  const enough = Math.min(2, members.length);
  const alike = [...Map.groupBy(said, ({ nonce, units }) => `${nonce} ${units}`).values()].filter((all) => all.length >= enough);
  return {
    held: alike.length === 1 ? (alike[0]?.[0] ?? null) : null,
    most: said.length === 0 ? null : said.map(({ units }) => units).reduce(greatest),
    said: [...troubles.map(({ message }) => message), ...words.flatMap((word) => word.said)],
  };
}
