// Several nodes of one chain behind one ChainPort: one is read, the others stand by and are compared with it. The one in use stays in use
// while it is ready, so a node that comes back changes nothing.
import type { AskedToo, Clock, NodeAgreement, NodeCondition, SendAnswer } from '../../../core/ports.ts';
import { middleFeeRate } from './fee-rate.ts';
import { askInTime, createMember, type HashAt, inTime, type Member, rest, steadyMs, type Waiting } from './member.ts';
import type { ChainNode, ReadingNode, SingleNode, UtxoNode } from './node.ts';
import { NodeTrouble, plainText } from './trouble.ts';

export type NodeGroupOptions = {
  readonly clock: Clock;
  /** How long one look waits for the other nodes (default 2 s); for the one in use five times as long. */
  readonly patienceMs?: number;
};

type Ready = Extract<NodeCondition, { state: 'ready' }>;

/**
 * A node this far behind another is left at once; one less far behind, when it does not catch up within the time that a block takes from
 * node to node.
 */
const LAG_BLOCKS = 6;
const LAG_MS = 5_000;
/** A standby node that has been behind for this long is reported. */
const LAG_TOLD_MS = 60_000;
const silent = (name: string): NodeCondition => ({ state: 'down', reason: `${name}: no answer yet`, height: null });

/** What is done with the nodes of a group besides reading. */
export type Grouped<N extends ReadingNode> = {
  readonly node: ChainNode;
  /** Calls the node in use; when it fails, another one is chosen at the next look. */
  use<T>(call: (node: N) => Promise<T>): Promise<T>;
  /** The one in use first. */
  members(): readonly Member<N>[];
  readonly waiting: Waiting;
};

/** Several nodes of Bitcoin's family as one. @param nodes at least one, in the order of preference; all of one currency */
export function createNodeGroup(nodes: readonly SingleNode[], options: NodeGroupOptions): UtxoNode {
  const { node, use, members, waiting } = grouped(nodes, options);
  const prices = comparedPrices(node);
  return {
    ...node,
    currency: (nodes[0] as SingleNode).currency,
    condition: prices.condition,
    minedTransactions: (hash, txids) => use((one) => one.minedTransactions(hash, txids)),
    send: (raw) => sendToAll(members(), raw, waiting),
    feeRate: async () => (await prices.of(middleFeeRate(members(), waiting))).rate,
    spentOf: (outpoints) => use((one) => one.spentOf(outpoints)),
    nodes: () => members().map((member) => member.node),
    rawTransaction: (txid, blockHash) => use((one) => one.rawTransaction(txid, blockHash)),
  };
}

/** Takes from each price how its nodes contradict each other, and tells the last one with their condition. */
export function comparedPrices({ condition }: Pick<ChainNode, 'condition'>): {
  readonly condition: ChainNode['condition'];
  of<T extends { readonly contradiction: string | null }>(asked: Promise<T>): Promise<Omit<T, 'contradiction'>>;
} {
  let told: string | null = null;
  return {
    async condition(asked) {
      const said = await condition(asked);
      return said.state !== 'ready' || told === null ? said : { ...said, others: [...(said.others ?? []), told] };
    },
    async of(asked) {
      const { contradiction, ...price } = await asked;
      told = contradiction;
      return price;
    },
  };
}

/** What nodes of any chain have in common as a group: which one is read, and how the others are compared with it. */
export function grouped<N extends ReadingNode>(nodes: readonly N[], options: NodeGroupOptions): Grouped<N> {
  const { clock, patienceMs = 2_000 } = options;
  const members: readonly Member<N>[] = nodes.map((node) => createMember(node, { clock, patienceMs }));
  const [first] = members;
  if (first === undefined) throw new Error('a group needs at least one node');
  let inUse = first;
  const waiting: Waiting = { clock, patienceMs, isInUse: (member) => member.node === inUse.node };
  const inOrder = (): readonly Member<N>[] => [inUse, ...members.filter((member) => member !== inUse)];

  async function use<T>(call: (node: N) => Promise<T>): Promise<T> {
    const member = inUse;
    try {
      return await call(member.node);
    } catch (error) {
      if (error instanceof NodeTrouble) rest(member, error, clock);
      throw error;
    }
  }

  async function condition(asked?: AskedToo): Promise<NodeCondition> {
    // the answer to an earlier request lists an older mempool
    const wasAsked = inUse.conditions.isOld();
    const all = await lookAtAll(inOrder(), waiting, asked);
    const nowMs = steadyMs(clock);
    const ready = choose(all, nowMs);
    if (ready === null) return noneReady(all);
    const agreements = await compare(ready, all, waiting);
    markBehind(ready, agreements, nowMs);
    const chosen = (await ahead(ready, agreements, nowMs)) ?? ready;
    inUse = chosen.member as Member<N>;
    const { mempool, others: lacks = [], ...said } = chosen.condition;
    const others = [...lacks, ...all.filter((one) => one !== chosen).flatMap((one) => faultOf(one, nowMs, chosen))];
    return {
      ...said,
      ...(mempool === undefined || wasAsked || chosen !== all[0] ? {} : { mempool }),
      node: chosen.member.node.name,
      agreement: summary(agreements),
      ...(others.length === 0 ? {} : { others }),
    };
  }

  const node: ChainNode = {
    currency: first.node.currency,
    name: nodes.map((one) => one.name).join(', '),
    condition,
    hashAt: (height) => use((node) => node.hashAt(height)),
    readBlock: (hash, watch) => use((node) => node.readBlock(hash, watch)),
    mempool: () => use((node) => node.mempool()),
    readMempoolTransactions: (txids, watch) => use((node) => node.readMempoolTransactions(txids, watch)),
    readRaw: (raw, watch) => inUse.node.readRaw(raw, watch),
    mempoolEntries: (txids) => use((node) => node.mempoolEntries(txids)),
    locks: (txids) => use((node) => node.locks(txids)),
    doubleSpendProofs:
      first.node.doubleSpendProofs === null
        ? null
        : (txids) => use(async (node) => (await node.doubleSpendProofs?.(txids)) ?? new Set()),
    blocksPaying: (...asked) => use(async (node) => (await node.blocksPaying?.(...asked)) ?? null),
    ...(first.node.isTip === undefined ? {} : { isTip: (block) => use(async (node) => (await node.isTip?.(block)) ?? false) }),
    ...(first.node.finalized === undefined ? {} : { finalized: () => use(async (node) => (await node.finalized?.()) ?? null) }),
    subscribe: (push) => use((node) => node.subscribe(push)),
    async close() {
      await Promise.all(nodes.map((one) => one.close()));
    },
  };
  return { node, use, members: inOrder, waiting };
}

type Sender = ReadingNode & Pick<SingleNode, 'send'>;

/**
 * Every node gets it; the first that has it is enough, and the others get it besides. Of several refusals the one of the node in use
 * is reported; a node that does not answer hides none.
 */
export async function sendToAll<N extends Sender>(
  members: readonly Member<N>[],
  raw: Uint8Array,
  waiting: Waiting,
): Promise<SendAnswer> {
  const answers = members.map((member) => inTime(member, member.node.send(raw), waiting));
  const taken = answers.map(async (answer) => {
    const said = await answer;
    if (isTaken(said)) return said;
    throw said;
  });
  try {
    return await Promise.any(taken);
  } catch {
    const all = await Promise.all(answers);
    const refusal = all.find((answer) => !(answer instanceof NodeTrouble));
    if (refusal === undefined) throw all[0];
    return refusal as SendAnswer;
  }
}

const isTaken = (said: SendAnswer | NodeTrouble): said is SendAnswer =>
  !(said instanceof NodeTrouble) && (said.state === 'accepted' || said.state === 'mined');

type Look<C extends NodeCondition = NodeCondition> = { readonly member: Member; readonly condition: C };

/** The one in use is the first; one that has not answered in time has no result. */
function lookAtAll(ordered: readonly Member[], waiting: Waiting, asked?: AskedToo): Promise<Look[]> {
  return Promise.all(
    ordered.map(async (member): Promise<Look> => {
      const call = () => conditionOf(member.node, waiting.isInUse(member) ? asked : undefined);
      const answer = await askInTime(member, { requests: member.conditions, call }, waiting);
      if (answer instanceof NodeTrouble) return { member, condition: member.trouble ?? silent(member.node.name) };
      member.trouble = answer.state === 'ready' ? null : answer;
      return { member, condition: answer };
    }),
  );
}

/** What an answer of one node breaks must not hold up the others. */
async function conditionOf(node: ChainNode, asked?: AskedToo): Promise<NodeCondition> {
  try {
    return await node.condition(asked);
  } catch (error) {
    return { state: 'bad_answer', reason: plainText(`${node.name}: ${(error as Error).message}`), height: null };
  }
}

/** The one in use while it is ready, otherwise the first that is; of those that rest after a failure the one whose failure is the oldest. */
function choose(all: readonly Look[], nowMs: number): Look<Ready> | null {
  const ready = all.filter(isReady);
  const [rested = null] = [...ready].sort((one, other) => one.member.restsUntilMs - other.member.restsUntilMs);
  return ready.find((one) => one.member.restsUntilMs <= nowMs) ?? rested;
}

function isReady(look: Look): look is Look<Ready> {
  return look.condition.state === 'ready';
}

/** None can be used: the state of the one in use, and the reasons of all. */
function noneReady(all: readonly Look[]): NodeCondition {
  const reasons = all.map((one) => (one.condition.state === 'ready' ? '' : one.condition.reason));
  return { ...(all[0] as Look).condition, reason: reasons.join('; ') } as NodeCondition;
}

function faultOf({ member, condition }: Look, nowMs: number, chosen: Look<Ready>): string[] {
  if (condition.state !== 'ready') return [`${condition.state}: ${condition.reason}`];
  const behind = chosen.condition.height - condition.height;
  const isLong = behind > 0 && behindForMs(member, nowMs) >= LAG_TOLD_MS;
  if (behind >= LAG_BLOCKS || isLong)
    return [
      `behind: ${member.node.name}: at block ${condition.height}; ${chosen.member.node.name} is at ${chosen.condition.height}, ${behind} behind`,
    ];
  if (member.restsUntilMs > nowMs && member.fault !== null) return [`failed: ${member.fault}`];
  return behind <= -LAG_BLOCKS
    ? [`ahead: ${member.node.name}: at block ${condition.height}, ${-behind} ahead, which it has not shown yet`]
    : [];
}

type Compared = { readonly other: Look<Ready>; readonly agreement: NodeAgreement };

/** Compares every other ready node with the chosen one. */
function compare(chosen: Look<Ready>, all: readonly Look[], waiting: Waiting): Promise<Compared[]> {
  const others = all.filter((one): one is Look<Ready> => one !== chosen && isReady(one));
  return Promise.all(others.map(async (other) => ({ other, agreement: await compareTwo(chosen, other, waiting) })));
}

/** One contradiction is enough; without any, one agreement is agreement, on the highest block that two of them have. */
function summary(compared: readonly Compared[]): NodeAgreement {
  const agreements = compared.map((one) => one.agreement);
  const contested = agreements.find((agreement) => agreement.state === 'contested');
  const [highest] = agreements.filter((agreement) => agreement.state === 'agreed').sort((a, b) => b.height - a.height);
  return contested ?? highest ?? { state: 'unknown' };
}

/** Records, for every node with the chosen one's history, since when it has not had the highest of their tips. */
function markBehind(chosen: Look<Ready>, compared: readonly Compared[], nowMs: number): void {
  const agreed = compared.filter(({ agreement }) => agreement.state === 'agreed').map(({ other }) => other);
  const top = Math.max(chosen.condition.height, ...agreed.map((one) => one.condition.height));
  for (const { member, condition } of [chosen, ...agreed])
    member.behindSinceMs = condition.height < top ? (member.behindSinceMs ?? nowMs) : null;
}

/**
 * The highest node with the same history that has shown its blocks, once the chosen one has stopped following the chain: it is far behind, or
 * has been behind for long.
 */
async function ahead(chosen: Look<Ready>, compared: readonly Compared[], nowMs: number): Promise<Look<Ready> | null> {
  const own = chosen.condition.height;
  const isLate = behindForMs(chosen.member, nowMs) >= LAG_MS;
  const higher = compared
    .filter(({ other }) => other.condition.height >= own + (isLate ? 1 : LAG_BLOCKS) && other.member.restsUntilMs <= nowMs)
    .sort((a, b) => b.other.condition.height - a.other.condition.height);
  for (const { other, agreement } of higher) {
    if (agreement.state !== 'agreed') continue;
    if (await other.member.proof.isShown(agreement, other.condition, chosen.member.node)) return other;
  }
  return null;
}

function behindForMs({ behindSinceMs }: Member, nowMs: number): number {
  return behindSinceMs === null ? 0 : nowMs - behindSinceMs;
}

/** At the height of the lower tip both must hold the same block; what the other said of a lower one, too late, is compared there. */
async function compareTwo(chosen: Look<Ready>, other: Look<Ready>, waiting: Waiting): Promise<NodeAgreement> {
  const most = chosen.condition.height;
  const theirs = other.condition.height <= most ? other.condition : await askForHash(other.member, most, waiting);
  if (theirs instanceof NodeTrouble) return { state: 'unknown' };
  const { height } = theirs;
  const ours = height === most ? chosen.condition : await inTime(chosen.member, hashAt(chosen.member.node, height), waiting);
  // one of them has lost blocks since it was asked
  if (ours instanceof NodeTrouble || ours.hash === null || theirs.hash === null) return { state: 'unknown' };
  if (ours.hash === theirs.hash) return { state: 'agreed', height, hash: ours.hash };
  const [ourName, theirName] = [chosen.member.node.name, other.member.node.name];
  return {
    state: 'contested',
    reason: `at height ${height} ${ourName} has block ${ours.hash} and ${theirName} has ${theirs.hash}`,
  };
}

const askForHash = (member: Member, height: number, waiting: Waiting): Promise<HashAt | NodeTrouble> =>
  askInTime(member, { requests: member.hashes, call: () => hashAt(member.node, height) }, waiting);

const hashAt = async (node: ChainNode, height: number): Promise<HashAt> => ({ height, hash: await node.hashAt(height) });
