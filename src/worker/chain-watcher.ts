// Watches one UTXO chain through our own node: reads each block from the cursor to the tip, handles reorganisations, then the mempool, and
// records facts; it decides nothing. Any number of workers may run one: a session lock elects, the cursor's epoch protects. Called by the
// worker's loop, pass by pass.
import type { UtxoCode } from '../core/currency.ts';
import type { ChainPort, NodeCondition } from '../core/ports.ts';
import { beginCursor, type ChainCursor, CursorMoved, claimCursor, readCursor, setCaughtUp } from '../store/blocks.ts';
import { FAR_BEHIND, recordCondition } from '../store/node-conditions.ts';
import { followBlocks } from './block-follower.ts';
import type { ChainContext } from './chain-context.ts';
import { lookAtLocks } from './lock-watcher.ts';
import { createMempoolWatcher, type Looked, type MempoolReading } from './mempool-watcher.ts';
import { createOwnClock } from './own-clock.ts';
import { lookAtProofs } from './proof-watcher.ts';
import { type Followed, followFork } from './reorganisation.ts';
import { createWatchList, type WatchedScripts, watchOnly } from './watch-list.ts';

export type ChainWatcherOptions = {
  /** The scripts of this process, shared by its watchers. */
  readonly scripts: WatchedScripts;
  /** Blocks read in one pass at most (default 200). */
  readonly blocksPerPass?: number;
  /** How much of a mempool is read in one pass. */
  readonly mempoolReading?: MempoolReading;
};

export type PassResult = {
  /** `standby`: another worker watches this chain. */
  readonly role: 'watching' | 'standby';
  /** What the node said; null on standby. */
  readonly state: NodeCondition['state'] | null;
  readonly reason: string | null;
  /** What an operator must know although a node can be read: nodes that contradict each other, nodes that cannot stand in. */
  readonly alarms: readonly string[];
  /** Height of the cursor after the pass. */
  readonly height: number | null;
  readonly blocksRead: number;
  /** All that the node knew at the pass's begin has been recorded. */
  readonly caughtUp: boolean;
  /** There is more to read at once. */
  readonly more: boolean;
  /** The node has fewer blocks than were read from it (restored, or still reading): what it does not show may be there all the same. */
  readonly behind: boolean;
};

export type ChainWatcher = {
  /** One pass. Trouble of the node is recorded and told in the result; trouble of the database throws. */
  pass(): Promise<PassResult>;
  /** Calls back when a pass is worth while now. */
  onHint(callback: () => void): void;
  /** The newest number of the database when this transaction was first read in the mempool; null when this watcher did not see it there. */
  firstSeen(txid: string): number | null;
  close(): Promise<void>;
};

const BLOCKS_PER_PASS = 200;
/** In a pass that takes longer several nodes are compared again before the next block. */
const COMPARED_MS = 1_000;
const STANDBY: PassResult = {
  role: 'standby',
  state: null,
  reason: null,
  alarms: [],
  height: null,
  blocksRead: 0,
  caughtUp: false,
  more: false,
  behind: false,
};

type Ready = Extract<NodeCondition, { state: 'ready' }>;

/** @throws when no node is configured for the currency */
export function createChainWatcher(ctx: ChainContext, currency: UtxoCode, settings: ChainWatcherOptions): ChainWatcher {
  const port = ctx.ports.chains.get(currency);
  if (port === undefined) throw new Error(`no node is configured for ${currency}`);
  const { clock } = ctx.ports;
  const lock = ctx.db.sessionLock(`chain-watcher ${currency}`);
  const ownClock = createOwnClock(ctx, currency);
  const watch = createWatchList(ctx, currency, settings.scripts);
  /** The cursor's epoch as the last pass left it: another one means that another watcher was at work. */
  let epoch: bigint | null = null;
  const hints: (() => void)[] = [];
  const hint = () => {
    for (const callback of hints) callback();
  };
  const pushes = createSubscription(port);
  const mempool = createMempoolWatcher(ctx, port, watch, {
    isPushed: pushes.isOpen,
    onHit: hint,
    reading: settings.mempoolReading,
  });

  async function read(condition: Ready, atMs: number, isSure: () => Promise<boolean>): Promise<PassResult> {
    await pushes.open(condition.node ?? null, {
      onHint: () => {
        mempool.lookAtAll();
        hint();
      },
      onTransaction: (raw) => mempool.take(raw),
    });
    const known = (await readCursor(ctx.db, currency)) ?? (await begin(ctx, port as ChainPort, condition, atMs));
    // what is far behind is told from the first block on, not when the pass is over
    if (condition.height - known.height > FAR_BEHIND) await recordCondition(ctx.db, currency, condition, atMs);
    const cursor = known.epoch === epoch ? known : await claimCursor(ctx.db, currency, known);
    epoch = null;
    const { firstSeen } = mempool;
    const options = { cursor, tip: condition, atMs, limit: settings.blocksPerPass ?? BLOCKS_PER_PASS, isSure, firstSeen };
    const followed =
      (await followFork(ctx, port as ChainPort, watch, options)) ?? (await followBlocks(ctx, port as ChainPort, watch, options));
    if (followed.blocksRead > 0) mempool.lookAtAll();
    const looked = await lookAtMempool(followed, atMs);
    if (followed.atTip) await lookAtLocks(ctx, port as ChainPort, followed.cursor);
    const proofs = followed.atTip ? await lookAtProofs(ctx, port as ChainPort) : [];
    const caughtUp =
      looked === 'complete' && (await ctx.db.transaction((sql) => setCaughtUp(sql, currency, followed.cursor, atMs)));
    epoch = followed.cursor.epoch;
    const { blocksRead, behind = false } = followed;
    const more = followed.more || looked === 'more';
    const alarms = [
      ...alarmsOf(condition),
      ...(behind ? [behindReason(condition, followed.cursor)] : []),
      ...proofs,
      ...mempool.alarms(),
      ...(followed.notices ?? []),
    ];
    return result(condition, { height: followed.cursor.height, blocksRead, caughtUp, more, behind, alarms });
  }

  async function lookAtMempool({ cursor, atTip, behind = false }: Followed, atMs: number): Promise<Looked> {
    if (behind) return (await mempool.lookBehind(cursor)) ? 'more' : 'incomplete';
    return atTip ? mempool.look(cursor, atMs) : 'incomplete';
  }

  /** What the node says now; a contradiction of several is recorded before anything is read, for every block that is written wakes the judge. */
  async function ask(atMs: number): Promise<NodeCondition> {
    const condition = await (port as ChainPort).condition();
    if (isContested(condition)) await recordCondition(ctx.db, currency, condition, atMs);
    return condition;
  }

  async function readOrTrouble(first: NodeCondition, atMs: number): Promise<{ condition: NodeCondition; result: PassResult }> {
    let condition = first;
    let askedMs = clock.now();
    async function isSure(): Promise<boolean> {
      if (condition.state !== 'ready') return false;
      if (condition.accord === undefined || Math.abs(clock.now() - askedMs) < COMPARED_MS) return true;
      condition = await ask(atMs);
      askedMs = clock.now();
      return condition.state === 'ready';
    }
    if (condition.state !== 'ready') return { condition, result: result(condition, {}) };
    try {
      const done = await read(condition, atMs, isSure);
      return { condition, result: done };
    } catch (error) {
      mempool.lookAtAll(); // what was pushed may not have been recorded
      if (error instanceof CursorMoved) return { condition, result: result(condition, { more: true }) };
      const trouble = troubleOf(error);
      if (trouble === null) throw error;
      return { condition: trouble, result: result(trouble, {}) };
    }
  }

  return {
    async pass() {
      if (!(await lock.acquire())) {
        // the cursor's epoch keeps what a frozen watcher does when it wakes up out of the books
        await lock.relieve();
        await pushes.close();
        ownClock.forget();
        return STANDBY;
      }
      const atMs = await ownClock.look();
      const done = await readOrTrouble(await ask(atMs), atMs);
      // where its session was lost meanwhile another watches in its place: what this one was told is old
      if (!(await lock.acquire())) return done.result;
      const { behind, height } = done.result;
      await recordCondition(ctx.db, currency, done.condition, atMs, {
        behind: behind ? behindReason(done.condition, { height }) : null,
      });
      return done.result;
    },
    onHint(callback) {
      hints.push(callback);
    },
    firstSeen: mempool.firstSeen,
    async close() {
      await pushes.close();
      await lock.release();
    },
  };
}

function result(condition: NodeCondition, part: Partial<PassResult>): PassResult {
  const reason = condition.state === 'ready' ? null : condition.reason;
  return {
    role: 'watching',
    state: condition.state,
    reason,
    alarms: alarmsOf(condition),
    height: null,
    blocksRead: 0,
    caughtUp: false,
    more: false,
    behind: false,
    ...part,
  };
}

function behindReason(node: { readonly height: number | null }, read: { readonly height: number | null }): string {
  return `behind what was read: node ${node.height}, read ${read.height}`;
}

function isContested(condition: NodeCondition): boolean {
  return condition.state === 'ready' && condition.accord?.state === 'contested';
}

function alarmsOf(condition: NodeCondition): string[] {
  if (condition.state !== 'ready') return [];
  const { accord, others = [] } = condition;
  return [...(accord?.state === 'contested' ? [`the nodes contradict each other: ${accord.reason}`] : []), ...others];
}

/** The node's trouble that a call of the port threw (outside/node-trouble), or null for any other error. */
export function troubleOf(error: unknown): Exclude<NodeCondition, Ready> | null {
  if (!(error instanceof Error) || error.name !== 'NodeTrouble') return null;
  const { state } = error as Error & { state: Exclude<NodeCondition['state'], 'ready'> };
  return { state, reason: error.message, height: null };
}

/** The first start on this chain: from the node's tip on, nothing older can be ours. */
async function begin(ctx: ChainContext, port: ChainPort, tip: Ready, atMs: number): Promise<ChainCursor> {
  const block = await port.readBlock(tip.hash, watchOnly([]));
  await ctx.db.transaction((sql) =>
    beginCursor(
      sql,
      port.currency,
      { height: tip.height, hash: block.hash, previousHash: block.previousHash, timeMs: block.timeMs },
      atMs,
    ),
  );
  return (await readCursor(ctx.db, port.currency)) as ChainCursor;
}

/** The pushes of the node that is read, opened once and again when another node is read; a node without ZMQ is asked only once. */
function createSubscription(port: ChainPort) {
  let open: { close(): Promise<void> } | null = null;
  let asked: { readonly node: string | null } | null = null;
  async function close(): Promise<void> {
    const closing = open;
    open = null;
    asked = null;
    await closing?.close();
  }
  return {
    isOpen: () => open !== null,
    async open(node: string | null, push: Parameters<ChainPort['subscribe']>[0]) {
      if (asked !== null && asked.node === node) return;
      await close();
      open = await port.subscribe(push);
      asked = { node };
    },
    close,
  };
}
