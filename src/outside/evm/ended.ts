// How a transaction ended that an address of ours has sent: a receipt is a node's word, so where several nodes are configured, two must show the
// same.
import type { BlockRef } from '../../core/block-ref.ts';
import { evmAddressOf } from '../../core/currencies/evm.ts';
import type { EndedByWord, EndedTransaction, EvmPort } from '../../core/evm/port.ts';
import { type Member, saidInTime, type Waiting } from '../utxo/node/member.ts';
import type { ReadingNode } from '../utxo/node/node.ts';
import { orRefusal } from '../utxo/node/rpc.ts';
import { NodeTrouble, RpcRefusal } from '../utxo/node/trouble.ts';
import { asFields, asHash, asNumber, readReceipt, readTransaction } from './answers.ts';
import { endedFacts } from './payments.ts';
import { type EvmSource, isLimit, readAs } from './source.ts';

/** Of what a transaction pays. */
const MOST_TOLD = 5;

/** What one node shows of it. @param contract of the token whose payments are asked for; null for ether @param finalized what it calls final */
export async function endedAt(
  { rpc }: EvmSource,
  { txid, contract }: Asked,
  finalized: () => Promise<BlockRef | null>,
): Promise<EndedByWord> {
  const methods = ['eth_getTransactionByHash', 'eth_getTransactionReceipt'];
  const answers = await orRefusal(rpc.batch(methods.map((method) => ({ method, params: [txid] }))));
  const refusal = [answers].flat().find((answer) => answer instanceof RpcRefusal);
  if (refusal instanceof RpcRefusal)
    throw new NodeTrouble(isLimit(refusal) ? 'busy' : 'bad_answer', `${rpc.name}: ${refusal.message}`, { cause: refusal });
  const [transaction, receipt] = answers as readonly unknown[];
  const ended = readAs(rpc, methods.join(', '), () => readEnded(transaction, receipt, { txid, contract }));
  const { result, gasPaid } = ended?.facts.outcome ?? {};
  // what two nodes show otherwise is told
  const first = (ended?.facts.outputs ?? []).slice(0, MOST_TOLD);
  const paid = first.map(({ script, amountMinor }) => `, ${amountMinor} to ${evmAddressOf(script)}`);
  const what =
    ended === null ? 'in no block' : `${result} in block ${ended.blockHash}, for ${gasPaid} wei of gas${paid.join('')}`;
  const isFinal = ended !== null && ended.height <= ((await finalized())?.height ?? -1);
  return { ended, isFinal, said: [`${rpc.name} shows it ${what}`] };
}

type Asked = { readonly txid: string; readonly contract: string | null };

function readEnded(transaction: unknown, receipt: unknown, { txid, contract }: Asked): EndedTransaction | null {
  if (transaction === null || receipt === null || asFields(transaction, 'the transaction').blockHash == null) return null;
  const { blockHash, blockNumber } = asFields(transaction, 'the transaction');
  const hash = asHash(blockHash, 'blockHash');
  const facts = endedFacts(readTransaction(transaction), readReceipt(receipt, { txid, hash }), contract);
  return { height: asNumber(blockNumber, 'blockNumber'), blockHash: hash, facts };
}

/** What two nodes show alike (the only one, where there is one). Trouble when none answers. */
export async function endedByWord(
  members: readonly Member<ReadingNode & EvmPort>[],
  txid: string,
  waiting: Waiting,
): Promise<EndedByWord> {
  const answers = await Promise.all(members.map((member) => saidInTime(member, member.node.ended(txid), waiting)));
  const troubles = answers.filter((answer) => answer instanceof NodeTrouble);
  const words = answers.flatMap((answer) => (answer instanceof NodeTrouble ? [] : [answer]));
  if (words.length === 0) throw troubles[0];
  const enough = Math.min(2, members.length);
  const shown = Map.groupBy(words, ({ ended }) => (ended === null ? null : nameOf(ended)));
  shown.delete(null);
  const alike = [...shown.values()].filter((all) => all.length >= enough);
  const [all = []] = alike.length === 1 ? alike : [];
  return {
    ended: all[0]?.ended ?? null,
    isFinal: all.filter(({ isFinal }) => isFinal).length >= enough,
    said: [...troubles.map(({ message }) => message), ...words.flatMap(({ said }) => said)],
  };
}

/** All that is booked of it, as text. */
function nameOf({ height, blockHash, facts: { txid, inputs, outputs, outcome } }: EndedTransaction): string {
  const [sender] = inputs;
  const paid = outputs.map(({ vout, script, amountMinor }) => `${vout} ${script} ${amountMinor}`);
  return [height, blockHash, txid, sender?.txid, sender?.vout, outcome?.result, outcome?.gasPaid, ...paid].join(' ');
}
