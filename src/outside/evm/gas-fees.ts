// What gas costs now is a node's word, and what is offered for the proposer is paid: whoever has one of our nodes and makes a block himself could
// ask for as much as the signer allows.
import type { EvmPort } from '../../core/evm/port.ts';
import { type Member, saidInTime, type Waiting } from '../utxo/node/member.ts';
import type { ReadingNode } from '../utxo/node/node.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';

type GasFees = Awaited<ReturnType<EvmPort['gasFees']>>;

/**
 * Base fees of one chain this many times apart lie six full blocks apart: one of the nodes is wrong. And a payout offers just so much more than it is told
 * (core/payouts/gas): where a node says less than that of what is true, no block takes it.
 */
const MOST_APART = 2n;

/** What nodes say of gas, and what of it cannot be true together (null: nothing). */
export type MiddleFees = GasFees & { readonly contradiction: string | null };

/** What the middle one of those that answer says, of two the lower: offering too little costs time only. Trouble when none answers. */
export async function middleGasFees(members: readonly Member<ReadingNode & EvmPort>[], waiting: Waiting): Promise<MiddleFees> {
  const answers = await Promise.all(
    members.map(async (member) => ({ name: member.node.name, fees: await saidInTime(member, member.node.gasFees(), waiting) })),
  );
  const said = answers.flatMap(({ name, fees }) => (fees instanceof NodeTrouble ? [] : [{ name, ...fees }]));
  if (said.length === 0) throw answers[0]?.fees;
  said.sort((one, other) => compared(one.base, other.base));
  const [least, most] = [said[0] as (typeof said)[number], said.at(-1) as (typeof said)[number]];
  const contradiction =
    most.base <= least.base * MOST_APART
      ? null
      : // without the prices, which are others with each block
        `contradiction: by ${most.name} gas costs more than ${MOST_APART} times as much as by ${least.name}: what is sent may wait, or cost too much, until the one that is wrong is taken out of the configuration`;
  return { base: middle(said.map(({ base }) => base)), tip: middle(said.map(({ tip }) => tip)), contradiction };
}

const compared = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

function middle(all: readonly bigint[]): bigint {
  const sorted = [...all].sort(compared);
  return sorted[Math.floor((sorted.length - 1) / 2)] as bigint;
}
