// What a block of Ethereum's chain pays to us, asked of a second node too. A block's hash proves nothing of what nodes say is in it: receipts,
// events and calls are a node's word. So where several nodes are configured, what only one of them shows counts for nothing; and while no other
// can say, the block is unconfirmed.
import type { InnerWord, Unconfirmed } from '../../core/block-ref.ts';
import { plus } from '../../core/money.ts';
import type { BlockFacts, OutputFacts, TransactionFacts, WatchList } from '../../core/ports.ts';
import type { ReadingNode } from '../utxo/node/node.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';

type Node = Pick<ReadingNode, 'name' | 'forget'>;
type Asked = { readonly node: Node; read(watch: WatchList): Promise<BlockFacts | NodeTrouble> };
/** Who has read a block, and which nodes are asked about it besides. */
type Nodes = {
  readonly saidBy: Node;
  readonly others: readonly Asked[];
  /** Two others show what the one that was read does not: another one is read from now on. */
  readonly leave: (why: string) => void;
};
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
  { saidBy, others, leave }: Nodes,
  of: { readonly watch: WatchList; readonly scripts: readonly string[] },
): Promise<BlockFacts> {
  if (others.length === 0) return facts;
  const paid = paidIn(facts);
  const answers = await Promise.all(others.map((other) => answerOf(facts, paid, other, of.watch)));
  const said = answers.filter((answer) => answer.state === 'said');
  const readers = [{ by: saidBy.name, facts }, ...said.map(({ by, theirs }) => ({ by, facts: theirs }))].filter(seesInner);
  const innerWords = innerWordsOf(readers);
  const heard = { ...facts, innerSeenBy: readers.length, ...(innerWords.length === 0 ? {} : { innerWords }) };
  // one of them is enough for each payment, and none need show all
  const unsaid = paid.filter((one) => !said.some(({ denied, unseen }) => !denied.has(one) && !unseen.has(one)));
  const isDenied = (one: Paid): boolean => said.some((answer) => answer.denied.has(one));
  const denied = unsaid.filter(isDenied);
  const silent = unsaid.filter((one) => !isDenied(one));
  const reasons = answers.flatMap((answer) =>
    answer.state === 'silent' ? [answer.reason] : answer.unseen.size > 0 ? [`${answer.by}: ${UNSEEN}`] : [],
  );
  const unseen = {
    reason: reasons.join('; '),
    scripts: said.length === 0 ? of.scripts : scriptsOf(silent),
    ...(said.length === 0 ? {} : { isOnlyUnseen: true as const }),
  };
  const isSilent = said.length === 0 || silent.length > 0;
  const more = said.find(({ hidden }) => hidden.length > 0);
  if (denied.length === 0 && more === undefined)
    return isSilent ? { ...heard, unconfirmed: { state: 'silent', ...unseen } } : heard;
  // one of them may have been wrong for a moment: when they are asked again, they read the block again
  for (const node of [saidBy, ...others.map((other) => other.node)]) node.forget?.(facts.hash);
  const deniers = said.filter((answer) => denied.some((one) => answer.denied.has(one))).map(({ by }) => by);
  const contradictions = [
    ...(denied.length === 0 ? [] : [{ shownBy: saidBy.name, notBy: deniers.join(', '), what: denied }]),
    ...(more === undefined ? [] : [{ shownBy: more.by, notBy: saidBy.name, what: more.hidden }]),
  ];
  if (isOutvoted(said)) leave(`${saidBy.name} does not show in block ${facts.hash} what two other nodes do`);
  const unconfirmed: Unconfirmed = {
    state: denied.length === 0 ? 'hidden' : 'denied',
    reason: contradictions.map((one) => contradictionIn(facts.hash, one)).join('; '),
    scripts: scriptsOf(contradictions.flatMap(({ what }) => what)),
    ...(isSilent ? { unseen } : {}),
  };
  return { ...heard, touched: denied.length === 0 ? facts.touched : without(facts.touched, denied), unconfirmed };
}

type Answer =
  | { readonly state: 'silent'; readonly reason: string }
  | ({ readonly state: 'said'; readonly by: string; readonly theirs: BlockFacts } & Compared);

async function answerOf(facts: BlockFacts, paid: readonly Paid[], { node, read }: Asked, watch: WatchList): Promise<Answer> {
  const theirs = await read(watch);
  if (theirs instanceof NodeTrouble) return { state: 'silent', reason: theirs.message };
  return { state: 'said', by: node.name, theirs, ...compared(facts, paid, theirs) };
}

const UNSEEN = 'it shows neither the calls of the block nor the balances after it';
type Compared = {
  /** What the other node does not show. */
  readonly denied: ReadonlySet<Paid>;
  /** What it does not show, and cannot. */
  readonly unseen: ReadonlySet<Paid>;
  /** What only the other shows. */
  readonly hidden: readonly Paid[];
};

/** Whether two of them show the same that the node that was read does not. */
function isOutvoted(said: readonly Compared[]): boolean {
  const names = said.map(({ hidden }) => new Set(hidden.map(nameOf)));
  return names.some((one, at) => names.slice(at + 1).some((other) => [...one].some((name) => other.has(name))));
}

/** @param paid what the facts show, each as one object that the answer names */
function compared(facts: BlockFacts, paid: readonly Paid[], theirs: BlockFacts): Compared {
  const isByBalance = facts.inner === 'by_balance' || theirs.inner === 'by_balance';
  const shown = paidIn(theirs);
  const missing = notIn(shown, paid, isByBalance);
  const isUnseen = (one: Paid): boolean => theirs.inner === 'unseen' && isInner(one);
  const more = notIn(paid, shown, isByBalance);
  return {
    denied: new Set(missing.filter((one) => !isUnseen(one))),
    unseen: new Set(missing.filter(isUnseen)),
    // of a node that cannot see what contracts send it is told already
    hidden: facts.inner === 'unseen' ? more.filter((one) => !isInner(one)) : more,
  };
}

/**
 * What of some payments of a block another list of them lacks. Ether that contracts sent is known to some nodes by calls, to others by balances:
 * then what an address has got by them in the whole block is compared. What a transaction pays by itself, every node shows as it is.
 */
function notIn(shown: readonly Paid[], paid: readonly Paid[], isByBalance: boolean): readonly Paid[] {
  const left = new Map<string, number>();
  for (const one of shown) left.set(nameOf(one), (left.get(nameOf(one)) ?? 0) + 1);
  const missing = paid.filter((one) => {
    const count = left.get(nameOf(one)) ?? 0;
    left.set(nameOf(one), count - 1);
    return count <= 0;
  });
  const [inThese, inThose] = [innerByScript(paid), innerByScript(shown)];
  const isCovered = (one: Paid): boolean =>
    isByBalance && isInner(one) && (inThese.get(one.output.script) ?? 0n) <= (inThose.get(one.output.script) ?? 0n);
  return missing.filter((one) => !isCovered(one));
}

/**
 * Two equal events of a transaction are two payments, so they are counted; their places are each reader's own. What a block pays by itself has
 * its name, as what balances show has.
 */
const nameOf = ({ transaction: { txid, coinbase }, output: { script, amountMinor } }: Paid): string =>
  `${txid} ${coinbase} ${script} ${amountMinor}`;
/** Ether that a contract has sent: it has a place behind the transaction's own value. */
const isInner = ({ transaction, output }: Paid): boolean => !transaction.coinbase && output.vout > 0;
const paidIn = ({ touched }: BlockFacts): readonly Paid[] =>
  touched.flatMap((transaction) => transaction.outputs.map((output) => ({ transaction, output })));
const scriptsOf = (paid: readonly Paid[]): readonly string[] => [...new Set(paid.map(({ output }) => output.script))];
function innerByScript(paid: readonly Paid[]): ReadonlyMap<string, bigint> {
  const totals = new Map<string, bigint>();
  for (const { output } of paid.filter(isInner))
    totals.set(output.script, plus(totals.get(output.script) ?? 0n, output.amountMinor));
  return totals;
}

type Reader = { readonly by: string; readonly facts: BlockFacts };
const seesInner = ({ facts }: Reader): boolean => facts.inner !== 'unseen';

/** What each reader says that can see what contracts sent, at the scripts to which any of them shows it. */
function innerWordsOf(readers: readonly Reader[]): readonly InnerWord[] {
  const seeing = readers.map(({ by, facts }) => ({ node: by, sums: innerByScript(paidIn(facts)) }));
  const scripts = new Set(seeing.flatMap(({ sums }) => [...sums.keys()]));
  return seeing.flatMap(({ node, sums }) =>
    [...scripts].map((script) => ({ node, script, amountMinor: sums.get(script) ?? 0n })),
  );
}

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
