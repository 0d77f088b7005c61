// What gas costs now is a node's word, and what is offered for the proposer is paid: whoever has one of our nodes and makes a block himself could
// ask for as much as the signer allows.
import type { EvmPort } from '../../core/evm/port.ts';
import type { Member, Waiting } from '../utxo/node/member.ts';
import { contradictionOf, middle, saidByEach } from '../utxo/node/middle-word.ts';
import type { ReadingNode } from '../utxo/node/node.ts';

type GasFees = Awaited<ReturnType<EvmPort['gasFees']>>;

/**
 * Base fees of one chain this many times apart lie six full blocks apart: one of the nodes is wrong. And a payout offers just so much more than it is told
 * (core/payouts/gas): where a node says less than that of what is true, no block takes it.
 */
const MOST_APART = 2n;

/** What nodes say of gas, and what of it cannot be true together (null: nothing). */
export type MiddleFees = GasFees & { readonly contradiction: string | null };

/** What the middle one of those that answer says. Trouble when none answers. */
export async function middleGasFees(members: readonly Member<ReadingNode & EvmPort>[], waiting: Waiting): Promise<MiddleFees> {
  const all = await saidByEach(members, (node) => node.gasFees(), waiting);
  const bases = all.map(({ name, said }) => ({ name, price: said.base }));
  const sums = all.map(({ name, said }) => ({ name, price: said.base + said.tip }));
  const [least] = sums.toSorted((one, other) => (one.price < other.price ? -1 : 1));
  const isSaidByAll = sums.every(({ price }) => price === least?.price);
  return {
    ...(least === undefined || isSaidByAll ? {} : { cheapest: least.name }),
    base: middle(bases.map(({ price }) => price)),
    tip: middle(all.map(({ said }) => said.tip)),
    contradiction: contradictionOf(bases, MOST_APART, 'gas'),
  };
}
