// What a block of Ethereum's chain pays to us, asked of a second node too. A block's hash proves nothing of what nodes say is in it: receipts,
// events and calls are a node's word. So where several nodes are configured, what only one of them shows counts for nothing; and while no other
// can say, the block is unconfirmed.
import type { Unconfirmed } from '../../core/block-ref.ts';
import type { BlockFacts, OutputFacts, TransactionFacts, WatchList } from '../../core/ports.ts';
import type { ReadingNode } from '../utxo/node/node.ts';
import { within } from '../utxo/node/patience.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';

type Node = Pick<ReadingNode, 'name' | 'readBlock' | 'forget'>;
type Asked = { readonly node: Node; readonly patienceMs: number };
/** An output to one of our addresses, and the transaction, or the block itself, that has it. */
type Paid = { readonly transaction: TransactionFacts; readonly output: OutputFacts };

/** How many of what another node does not show are named. */
const MOST_NAMED = 3;

/**
 * The facts of a block without what another node denies.
 * @param facts as `saidBy` has read it
 * @param others nodes that are asked besides it, each with how long it has to answer
 */
export async function withSecondWord(
  facts: BlockFacts,
  { saidBy, others }: { readonly saidBy: Node; readonly others: readonly Asked[] },
): Promise<BlockFacts> {
  const paid = paidIn(facts);
  if (paid.length === 0) return facts;
  const scripts = [...new Set(paid.map(({ output }) => output.script))];
  const watch = listOf(scripts);
  const answers = await Promise.all(others.map((other) => answerOf(facts, paid, other, watch)));
  if (answers.some((answer) => answer.state === 'confirmed')) return facts;
  const denial = answers.find((answer) => answer.state === 'denied');
  if (denial === undefined) {
    const reasons = answers.map((answer) => (answer.state === 'silent' ? answer.reason : ''));
    return { ...facts, unconfirmed: { state: 'silent', reason: reasons.join('; '), scripts } };
  }
  // one of them may have been wrong for a moment: when they are asked again, they read the block again
  for (const node of [saidBy, ...others.map((other) => other.node)]) node.forget?.(facts.hash);
  return { ...facts, touched: without(facts.touched, denial.denied), unconfirmed: denialOf(facts, denial, saidBy.name) };
}

type Answer =
  | { readonly state: 'confirmed' }
  | { readonly state: 'silent'; readonly reason: string }
  | { readonly state: 'denied'; readonly by: string; readonly denied: readonly Paid[] };

async function answerOf(
  facts: BlockFacts,
  paid: readonly Paid[],
  { node, patienceMs }: Asked,
  watch: WatchList,
): Promise<Answer> {
  let theirs: BlockFacts | null;
  try {
    theirs = await within(node.readBlock(facts.hash, watch), patienceMs);
  } catch (error) {
    if (!(error instanceof NodeTrouble)) throw error;
    return { state: 'silent', reason: error.message };
  }
  if (theirs === null) return { state: 'silent', reason: `${node.name}: no answer within ${patienceMs / 1000} s` };
  const { denied, unseen } = compared(facts, paid, theirs);
  if (denied.length > 0) return { state: 'denied', by: node.name, denied };
  if (unseen)
    return { state: 'silent', reason: `${node.name}: it shows neither the calls of the block nor the balances after it` };
  return { state: 'confirmed' };
}

/**
 * What of the payments of a block another node does not show. Ether that contracts sent is known to some by calls, to others by balances: then
 * what an address has been paid in the whole block is compared.
 */
function compared(
  facts: BlockFacts,
  paid: readonly Paid[],
  theirs: BlockFacts,
): { readonly denied: readonly Paid[]; readonly unseen: boolean } {
  const shown = paidIn(theirs);
  const left = new Map<string, number>();
  for (const one of shown) left.set(nameOf(one), (left.get(nameOf(one)) ?? 0) + 1);
  const missing = paid.filter((one) => {
    const count = left.get(nameOf(one)) ?? 0;
    left.set(nameOf(one), count - 1);
    return count <= 0;
  });
  const isByBalance = facts.inner === 'by_balance' || theirs.inner === 'by_balance';
  const isCovered = ({ output: { script } }: Paid): boolean => isByBalance && totalTo(script, paid) <= totalTo(script, shown);
  const uncovered = missing.filter((one) => !isCovered(one));
  const hidden = theirs.inner === 'unseen' ? uncovered.filter(isInner) : [];
  return { denied: uncovered.filter((one) => !hidden.includes(one)), unseen: hidden.length > 0 };
}

/** Two equal events of a transaction are two payments, so they are counted; their places are each reader's own. */
const nameOf = ({ transaction, output }: Paid): string => `${transaction.txid} ${output.script} ${output.amountMinor}`;
/** Ether that a contract has sent: it has a place behind the transaction's own value. */
const isInner = ({ transaction, output }: Paid): boolean =>
  !transaction.coinbase && (output.byBalance === true || output.vout > 0);
const paidIn = ({ touched }: BlockFacts): readonly Paid[] =>
  touched.flatMap((transaction) => transaction.outputs.map((output) => ({ transaction, output })));
const totalTo = (script: string, paid: readonly Paid[]): bigint =>
  paid.reduce((total, { output }) => (output.script === script ? total + output.amountMinor : total), 0n);

function without(touched: readonly TransactionFacts[], denied: readonly Paid[]): readonly TransactionFacts[] {
  const gone = new Set(denied.map(({ output }) => output));
  return touched.map((transaction) => ({ ...transaction, outputs: transaction.outputs.filter((output) => !gone.has(output)) }));
}

function denialOf(facts: BlockFacts, { by, denied }: Extract<Answer, { state: 'denied' }>, saidBy: string): Unconfirmed {
  const named = denied
    .slice(0, MOST_NAMED)
    .map(({ transaction, output }) => `${output.amountMinor} base units in ${transaction.txid} to 0x${output.script.slice(-40)}`);
  const more = denied.length > named.length ? `, and ${denied.length - named.length} more` : '';
  return {
    state: 'denied',
    reason: `${saidBy} shows in block ${facts.hash} what ${by} does not: ${named.join(', ')}${more}`,
    scripts: [...new Set(denied.map(({ output }) => output.script))],
  };
}

/** A watch list of a few scripts, hex. */
function listOf(scripts: readonly string[]): WatchList {
  const wanted = new Set(scripts);
  return {
    hasScript: (bytes, start, end) => wanted.has(Buffer.from(bytes.subarray(start, end)).toString('hex')),
    hasOutpoint: () => false,
    scripts: () => scripts.map((script) => Buffer.from(script, 'hex')),
    fresh: async () => undefined,
  };
}
