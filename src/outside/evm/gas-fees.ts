// What gas costs now is a node's word, and what is offered for the proposer is paid: whoever has one of our nodes and makes a block himself could
// ask for as much as the signer allows.
import type { EvmPort } from '../../core/evm/port.ts';
import { type Member, saidInTime, type Waiting } from '../utxo/node/member.ts';
import type { ReadingNode } from '../utxo/node/node.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';

type GasFees = Awaited<ReturnType<EvmPort['gasFees']>>;

/** What the middle one of those that answer says, of two the lower: offering too little costs time only. Trouble when none answers. */
export async function middleGasFees(members: readonly Member<ReadingNode & EvmPort>[], waiting: Waiting): Promise<GasFees> {
  const answers = await Promise.all(members.map((member) => saidInTime(member, member.node.gasFees(), waiting)));
  const said = answers.flatMap((answer) => (answer instanceof NodeTrouble ? [] : [answer]));
  if (said.length === 0) throw answers[0];
  return { base: middle(said.map(({ base }) => base)), tip: middle(said.map(({ tip }) => tip)) };
}

function middle(all: readonly bigint[]): bigint {
  const sorted = [...all].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted[Math.floor((sorted.length - 1) / 2)] as bigint;
}
