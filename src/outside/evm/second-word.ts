// What a block of Ethereum's chain pays to us, asked of a second node too. A block's hash proves nothing of what nodes say is in it: receipts,
// events and calls are a node's word. So where several nodes are configured, what only one of them shows counts for nothing; and while no other
// can say, the block is unconfirmed.
import type { Unconfirmed } from '../../core/block-ref.ts';
import type { BlockFacts, OutputFacts, TransactionFacts, WatchList } from '../../core/ports.ts';
import type { ReadingNode } from '../utxo/node/node.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';

type Node = Pick<ReadingNode, 'name' | 'forget'>;
type Asked = { readonly node: Node; read(watch: WatchList): Promise<BlockFacts | NodeTrouble> };
/** Who has read a block, and which nodes are asked about it besides. */
type Nodes = { readonly saidBy: Node; readonly others: readonly Asked[] };
/** An output to one of our addresses, and the transaction, or the block itself, that has it. */
type Paid = { readonly transaction: TransactionFacts; readonly output: OutputFacts };

/** How many of what another node does not show are named. */
const MOST_NAMED = 3;

/** The facts of a block without what another node denies. @param facts as `saidBy` has read it */
export async function withSecondWord(facts: BlockFacts, nodes: Nodes): Promise<BlockFacts> {
  const scripts = scriptsOf(paidIn(facts));
  return scripts.length === 0 ? facts : judged(facts, nodes, { watch: listOf(scripts), scripts });
}

/** The same for all that is watched: what only another node shows is told too. */
export async function withAllWords(facts: BlockFacts, nodes: Nodes, watch: WatchList): Promise<BlockFacts> {
  const scripts = [...(watch.scripts?.() ?? [])].map((script) => Buffer.from(script).toString('hex'));
  return judged(facts, nodes, { watch, scripts });
}

/** @param of `scripts`: those that the others are asked about, hex */
async function judged(
  facts: BlockFacts,
  { saidBy, others }: Nodes,
  of: { readonly watch: WatchList; readonly scripts: readonly string[] },
): Promise<BlockFacts> {
  if (others.length === 0) return facts;
  const answers = await Promise.all(others.map((other) => answerOf(facts, other, of.watch)));
  const said = answers.filter((answer) => answer.state === 'said');
  const isConfirmed = said.some(({ denied, isUnseen }) => denied.length === 0 && !isUnseen);
  const denial = isConfirmed ? undefined : said.find(({ denied }) => denied.length > 0);
  if (!isConfirmed && denial === undefined) {
    const reasons = answers.map((answer) => (answer.state === 'silent' ? answer.reason : `${answer.by}: ${UNSEEN}`));
    return { ...facts, unconfirmed: { state: 'silent', reason: reasons.join('; '), scripts: of.scripts } };
  }
  const more = said.find(({ hidden }) => hidden.length > 0);
  if (denial === undefined && more === undefined) return facts;
  // one of them may have been wrong for a moment: when they are asked again, they read the block again
  for (const node of [saidBy, ...others.map((other) => other.node)]) node.forget?.(facts.hash);
  const contradictions = [
    ...(denial === undefined ? [] : [{ shownBy: saidBy.name, notBy: denial.by, what: denial.denied }]),
    ...(more === undefined ? [] : [{ shownBy: more.by, notBy: saidBy.name, what: more.hidden }]),
  ];
  const unconfirmed: Unconfirmed = {
    state: denial === undefined ? 'hidden' : 'denied',
    reason: contradictions.map((one) => contradictionIn(facts.hash, one)).join('; '),
    scripts: scriptsOf(contradictions.flatMap(({ what }) => what)),
  };
  return { ...facts, touched: denial === undefined ? facts.touched : without(facts.touched, denial.denied), unconfirmed };
}

type Answer =
  | { readonly state: 'silent'; readonly reason: string }
  | ({ readonly state: 'said'; readonly by: string } & Compared);

async function answerOf(facts: BlockFacts, { node, read }: Asked, watch: WatchList): Promise<Answer> {
  const theirs = await read(watch);
  if (theirs instanceof NodeTrouble) return { state: 'silent', reason: theirs.message };
  return { state: 'said', by: node.name, ...compared(facts, theirs) };
}

const UNSEEN = 'it shows neither the calls of the block nor the balances after it';
type Compared = {
  /** What the other node does not show. */
  readonly denied: readonly Paid[];
  /** What only the other shows. */
  readonly hidden: readonly Paid[];
  /** It cannot say whether there is some of what contracts have sent. */
  readonly isUnseen: boolean;
};

function compared(facts: BlockFacts, theirs: BlockFacts): Compared {
  const isByBalance = facts.inner === 'by_balance' || theirs.inner === 'by_balance';
  const [ours, shown] = [paidIn(facts), paidIn(theirs)];
  const missing = notIn(shown, ours, isByBalance);
  const unseen = theirs.inner === 'unseen' ? missing.filter(isInner) : [];
  const more = notIn(ours, shown, isByBalance);
  return {
    denied: missing.filter((one) => !unseen.includes(one)),
    // of a node that cannot see what contracts send it is told already
    hidden: facts.inner === 'unseen' ? more.filter((one) => !isInner(one)) : more,
    isUnseen: unseen.length > 0,
  };
}

/**
 * What of some payments of a block another list of them lacks. Ether that contracts sent is known to some nodes by calls, to others by balances:
 * then what an address has been paid in the whole block is compared.
 */
function notIn(shown: readonly Paid[], paid: readonly Paid[], isByBalance: boolean): readonly Paid[] {
  const left = new Map<string, number>();
  for (const one of shown) left.set(nameOf(one), (left.get(nameOf(one)) ?? 0) + 1);
  const missing = paid.filter((one) => {
    const count = left.get(nameOf(one)) ?? 0;
    left.set(nameOf(one), count - 1);
    return count <= 0;
  });
  return missing.filter(({ output: { script } }) => !isByBalance || totalTo(script, paid) > totalTo(script, shown));
}

/** Two equal events of a transaction are two payments, so they are counted; their places are each reader's own. */
const nameOf = ({ transaction, output }: Paid): string => `${transaction.txid} ${output.script} ${output.amountMinor}`;
/** Ether that a contract has sent: it has a place behind the transaction's own value. */
const isInner = ({ transaction, output }: Paid): boolean => !transaction.coinbase && output.vout > 0;
const paidIn = ({ touched }: BlockFacts): readonly Paid[] =>
  touched.flatMap((transaction) => transaction.outputs.map((output) => ({ transaction, output })));
const scriptsOf = (paid: readonly Paid[]): readonly string[] => [...new Set(paid.map(({ output }) => output.script))];
const totalTo = (script: string, paid: readonly Paid[]): bigint =>
  paid.reduce((total, { output }) => (output.script === script ? total + output.amountMinor : total), 0n);

function without(touched: readonly TransactionFacts[], denied: readonly Paid[]): readonly TransactionFacts[] {
  const gone = new Set(denied.map(({ output }) => output));
  return touched.map((transaction) => ({ ...transaction, outputs: transaction.outputs.filter((output) => !gone.has(output)) }));
}

type Contradiction = { readonly shownBy: string; readonly notBy: string; readonly what: readonly Paid[] };

function contradictionIn(hash: string, { shownBy, notBy, what }: Contradiction): string {
  const named = what
    .slice(0, MOST_NAMED)
    .map(({ transaction, output }) => `${output.amountMinor} base units in ${transaction.txid} to 0x${output.script.slice(-40)}`);
  const more = what.length > named.length ? `, and ${what.length - named.length} more` : '';
  return `${shownBy} shows in block ${hash} what ${notBy} does not: ${named.join(', ')}${more}`;
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
