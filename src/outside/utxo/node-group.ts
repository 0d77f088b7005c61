// Several nodes of one chain behind one ChainPort: one is read, the others stand by and are compared with it. The one in use stays in use
// while it is ready, so a node that comes back changes nothing.
import { setTimeout as delay } from 'node:timers/promises';
import type { AskedToo, ChainPort, Clock, NodeAgreement, NodeCondition, SendAnswer } from '../../core/ports.ts';
import type { SingleNode, UtxoNode } from './node.ts';
import { createNodeProof, type NodeProof } from './node-proof.ts';
import { NodeTrouble, plainText } from './node-trouble.ts';

export type NodeGroupOptions = {
  readonly clock: Clock;
  /** How long one look waits for the other nodes (default 2 s); for the one in use five times as long. */
  readonly patienceMs?: number;
};

type Ready = Extract<NodeCondition, { state: 'ready' }>;
type Member = {
  readonly node: SingleNode;
  readonly proof: NodeProof;
  /** The request in progress: a node that hangs is not asked twice. */
  asking: Promise<NodeCondition> | null;
  /** After a call in which it failed it is not chosen until this time, while another is ready. */
  restsUntilMs: number;
  /** Why it rests. */
  fault: string | null;
  /** Since when it has been below another node with the same history; null while it is not. */
  behindSinceMs: number | null;
};

const REST_MS = 60_000;
/**
 * A node this far behind another is left at once; one less far behind, when it does not catch up within the time that a block takes from
 * node to node.
 */
const LAG_BLOCKS = 6;
const LAG_MS = 5_000;
/** A standby node that has been behind for this long is reported. */
const LAG_TOLD_MS = 60_000;
const OWN_PATIENCE = 5;
const silent = (name: string): NodeCondition => ({ state: 'down', reason: `${name}: no answer yet`, height: null });

/** @param nodes at least one, in the order of preference; all of one currency */
export function createNodeGroup(nodes: readonly SingleNode[], options: NodeGroupOptions): UtxoNode {
  const patienceMs = options.patienceMs ?? 2_000;
  function rest(member: Member, trouble: NodeTrouble): void {
    member.restsUntilMs = options.clock.now() + REST_MS;
    member.fault = trouble.message;
  }
  const members: readonly Member[] = nodes.map((node) => {
    const member: Member = {
      node,
      proof: createNodeProof(node, patienceMs, (trouble) => rest(member, trouble)),
      asking: null,
      restsUntilMs: 0,
      fault: null,
      behindSinceMs: null,
    };
    return member;
  });
  const [first] = members;
  if (first === undefined) throw new Error('a group needs at least one node');
  let inUse = first;

  /** Calls the node in use; when it fails, another one is chosen at the next look. */
  async function use<T>(call: (node: ChainPort) => Promise<T>): Promise<T> {
    const member = inUse;
    try {
      return await call(member.node);
    } catch (error) {
      if (error instanceof NodeTrouble) rest(member, error);
      throw error;
    }
  }

  async function condition(asked?: AskedToo): Promise<NodeCondition> {
    // the answer to an earlier request lists an older mempool
    const wasAsked = inUse.asking !== null;
    const [own, ...rest] = await lookAtAll(members, inUse, { patienceMs, asked });
    const all = [own as Look, ...rest];
    const nowMs = options.clock.now();
    const ready = choose(all, nowMs);
    if (ready === null) return noneReady(all);
    const agreements = await compare(ready, all);
    markBehind(ready, agreements, nowMs);
    const chosen = (await ahead(ready, agreements, nowMs)) ?? ready;
    inUse = chosen.member;
    const others = all.filter((one) => one !== chosen).flatMap((one) => faultOf(one, nowMs, chosen));
    const { mempool, ...said } = chosen.condition;
    return {
      ...said,
      ...(mempool === undefined || wasAsked ? {} : { mempool }),
      node: chosen.member.node.name,
      agreement: summary(agreements),
      ...(others.length === 0 ? {} : { others }),
    };
  }

  return {
    currency: first.node.currency,
    name: nodes.map((node) => node.name).join(', '),
    condition,
    hashAt: (height) => use((node) => node.hashAt(height)),
    readBlock: (hash, watch) => use((node) => node.readBlock(hash, watch)),
    minedTransactions: (hash, txids) => use((node) => node.minedTransactions(hash, txids)),
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
    send: (raw) => sendToAll(nodes, raw),
    feeRate: () => use((node) => node.feeRate()),
    spentOf: (outpoints) => use((node) => node.spentOf(outpoints)),
    rawTransaction: (txid, blockHash) => use((node) => node.rawTransaction(txid, blockHash)),
    subscribe: (push) => use((node) => node.subscribe(push)),
    async close() {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}

/** Every node gets it; one that has it is enough, and of refusals that of the first is told. */
async function sendToAll(nodes: readonly UtxoNode[], raw: Uint8Array): Promise<SendAnswer> {
  const answers = await Promise.allSettled(nodes.map((node) => node.send(raw)));
  const said = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
  const taken = said.find((answer) => answer.state === 'accepted' || answer.state === 'mined');
  const unknown = answers.find((answer) => answer.status === 'rejected');
  if (taken !== undefined) return taken;
  if (unknown !== undefined) throw unknown.reason;
  return said[0] as SendAnswer;
}

type Look<C extends NodeCondition = NodeCondition> = { readonly member: Member; readonly condition: C };

type Looking = { readonly patienceMs: number; readonly asked: AskedToo | undefined };

/** The one in use first, then the others in their order; one that has not answered yet has no result. */
async function lookAtAll(members: readonly Member[], inUse: Member, { patienceMs, asked }: Looking): Promise<Look[]> {
  const enough = new AbortController();
  const wait = (ms: number) => delay(ms, null, { signal: enough.signal }).catch(() => null);
  const tooLong = wait(patienceMs);
  const muchTooLong = wait(patienceMs * OWN_PATIENCE);
  const ordered = [inUse, ...members.filter((member) => member !== inUse)];
  const looks = await Promise.all(
    ordered.map(async (member): Promise<Look> => {
      const answer = await (member === inUse
        ? Promise.race([ask(member, asked), muchTooLong])
        : Promise.race([ask(member), tooLong]));
      return { member, condition: answer ?? silent(member.node.name) };
    }),
  );
  enough.abort();
  return looks;
}

function ask(member: Member, asked?: AskedToo): Promise<NodeCondition> {
  member.asking ??= conditionOf(member.node, asked).finally(() => {
    member.asking = null;
  });
  return member.asking;
}

/** What an answer of one node breaks must not hold up the others. */
async function conditionOf(node: UtxoNode, asked?: AskedToo): Promise<NodeCondition> {
  try {
    return await node.condition(asked);
  } catch (error) {
    return { state: 'bad_answer', reason: plainText(`${node.name}: ${(error as Error).message}`), height: null };
  }
}

/** The one in use while it is ready, otherwise the first that is; one that rests after a failure only when there is no other. */
function choose(all: readonly Look[], nowMs: number): Look<Ready> | null {
  const ready = all.filter(isReady);
  return ready.find((one) => one.member.restsUntilMs <= nowMs) ?? ready[0] ?? null;
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
function compare(chosen: Look<Ready>, all: readonly Look[]): Promise<Compared[]> {
  const others = all.filter((one): one is Look<Ready> => one !== chosen && isReady(one));
  return Promise.all(others.map(async (other) => ({ other, agreement: await compareTwo(chosen, other) })));
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

/** At the height of the lower tip both must hold the same block. */
async function compareTwo(a: Look<Ready>, b: Look<Ready>): Promise<NodeAgreement> {
  const height = Math.min(a.condition.height, b.condition.height);
  try {
    const [ours, theirs] = await Promise.all([hashOf(a, height), hashOf(b, height)]);
    // one of them has lost blocks since it was asked
    if (ours === null || theirs === null) return { state: 'unknown' };
    if (ours === theirs) return { state: 'agreed', height, hash: ours };
    const reason = `at height ${height} ${a.member.node.name} has block ${ours} and ${b.member.node.name} has ${theirs}`;
    return { state: 'contested', reason };
  } catch (error) {
    if (error instanceof NodeTrouble) return { state: 'unknown' };
    throw error;
  }
}

function hashOf({ member, condition }: Look<Ready>, height: number): Promise<string | null> {
  return height === condition.height ? Promise.resolve(condition.hash) : member.node.hashAt(height);
}
