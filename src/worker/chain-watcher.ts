// Watches one UTXO chain through our own node: reads each block from the cursor to the tip, handles reorganisations, then the mempool, and
// records facts; it decides nothing. Any number of workers may run one: a session lock elects, the cursor's epoch protects. Called by the
// worker's loop, pass by pass.
import type { UtxoCode } from '../core/currency.ts';
import type { BlockFacts, ChainPort, NodeCondition } from '../core/ports.ts';
import { beginCursor, type ChainCursor, CursorMoved, insertBlock, moveCursor, readCursor, setCaughtUp } from '../store/blocks.ts';
import { recordSightings, wakeJudge } from '../store/chain-facts.ts';
import { recordCondition } from '../store/node-conditions.ts';
import type { ChainContext } from './chain-context.ts';
import { lookAtLocks } from './lock-watcher.ts';
import { createMempoolWatcher } from './mempool-watcher.ts';
import { lookAtProofs } from './proof-watcher.ts';
import { type Followed, followFork, tokenNotices } from './reorganisation.ts';
import { type ChainWatchList, createWatchList, type WatchedScripts, watchOnly } from './watch-list.ts';

export type ChainWatcherOptions = {
  /** The scripts of this process, shared by its watchers. */
  readonly scripts: WatchedScripts;
  /** Blocks read in one pass at most (default 200). */
  readonly blocksPerPass?: number;
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
};

export type ChainWatcher = {
  /** One pass. Trouble of the node is recorded and told in the result; trouble of the database throws. */
  pass(): Promise<PassResult>;
  /** Calls back when a pass is worth while now. */
  onHint(callback: () => void): void;
  close(): Promise<void>;
};

const BLOCKS_PER_PASS = 200;
const READ_AHEAD = 3;
const STANDBY: PassResult = {
  role: 'standby',
  state: null,
  reason: null,
  alarms: [],
  height: null,
  blocksRead: 0,
  caughtUp: false,
  more: false,
};

type Ready = Extract<NodeCondition, { state: 'ready' }>;

/** @throws when no node is configured for the currency */
export function createChainWatcher(ctx: ChainContext, currency: UtxoCode, options: ChainWatcherOptions): ChainWatcher {
  const port = ctx.ports.chains.get(currency);
  if (port === undefined) throw new Error(`no node is configured for ${currency}`);
  const { clock } = ctx.ports;
  const lock = ctx.db.sessionLock(`chain-watcher ${currency}`);
  const watch = createWatchList(ctx, currency, options.scripts);
  const hints: (() => void)[] = [];
  const hint = () => {
    for (const callback of hints) callback();
  };
  const pushes = createSubscription(port);
  const mempool = createMempoolWatcher(ctx, port, watch, { isPushed: pushes.isOpen, onHit: hint });

  async function read(condition: Ready, atMs: number): Promise<PassResult> {
    await pushes.open(condition.node ?? null, {
      onHint: () => {
        mempool.lookAtAll();
        hint();
      },
      onTransaction: (raw) => mempool.take(raw),
    });
    const cursor = (await readCursor(ctx.db, currency)) ?? (await begin(ctx, port as ChainPort, condition, atMs));
    const limit = options.blocksPerPass ?? BLOCKS_PER_PASS;
    const followed =
      (await followFork(ctx, port as ChainPort, watch, { cursor, tip: condition, atMs, limit })) ??
      (await followBlocks(ctx, port as ChainPort, watch, { cursor, tip: condition, atMs, limit }));
    if (followed.blocksRead > 0) mempool.lookAtAll();
    const complete = followed.atTip && (await mempool.look(followed.cursor, atMs));
    if (followed.atTip) await lookAtLocks(ctx, port as ChainPort, followed.cursor);
    const proofs = followed.atTip ? await lookAtProofs(ctx, port as ChainPort) : [];
    const caughtUp = complete && (await setCaughtUp(ctx.db, currency, followed.cursor, atMs));
    const { blocksRead, more } = followed;
    const alarms = [...alarmsOf(condition), ...proofs, ...(followed.notices ?? [])];
    return result(condition, { height: followed.cursor.height, blocksRead, caughtUp, more, alarms });
  }

  async function readOrTrouble(
    condition: NodeCondition,
    atMs: number,
  ): Promise<{ condition: NodeCondition; result: PassResult }> {
    if (condition.state !== 'ready') return { condition, result: result(condition, {}) };
    try {
      return { condition, result: await read(condition, atMs) };
    } catch (error) {
      if (error instanceof CursorMoved) return { condition, result: result(condition, { more: true }) };
      const trouble = troubleOf(error);
      if (trouble === null) throw error;
      return { condition: trouble, result: result(trouble, {}) };
    }
  }

  return {
    async pass() {
      if (!(await lock.acquire())) {
        await pushes.close();
        return STANDBY;
      }
      const atMs = clock.now();
      const done = await readOrTrouble(await port.condition(), atMs);
      await recordCondition(ctx.db, currency, done.condition, atMs);
      return done.result;
    },
    onHint(callback) {
      hints.push(callback);
    },
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
    ...part,
  };
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

/** Reads blocks from the cursor towards the tip, a few ahead, and records each in one transaction. */
async function followBlocks(
  ctx: ChainContext,
  port: ChainPort,
  watch: ChainWatchList,
  options: { readonly cursor: ChainCursor; readonly tip: Ready; readonly atMs: number; readonly limit: number },
): Promise<Followed> {
  let { cursor } = options;
  const last = Math.min(options.tip.height, cursor.height + options.limit);
  const ahead: Promise<BlockFacts | null>[] = [];
  let next = cursor.height + 1;
  let blocksRead = 0;
  const notices: string[] = [];
  const fetchNext = () => {
    const reading = readAt(port, watch, next++);
    reading.catch(() => undefined); // awaited below, or of no interest after an error before it
    ahead.push(reading);
  };
  while (cursor.height < last) {
    while (next <= last && ahead.length < READ_AHEAD) fetchNext();
    const block = await (ahead.shift() as Promise<BlockFacts | null>);
    // the chain has changed under the pass: the next one finds the fork
    if (block === null || block.previousHash !== cursor.hash) return { cursor, blocksRead, atTip: false, more: true, notices };
    cursor = await connectBlock(ctx, port.currency, cursor, block, options.atMs);
    notices.push(...tokenNotices(block));
    blocksRead++;
  }
  const atTip = cursor.height === options.tip.height;
  return { cursor, blocksRead, atTip, more: cursor.height < options.tip.height, notices };
}

async function readAt(port: ChainPort, watch: ChainWatchList, height: number): Promise<BlockFacts | null> {
  const hash = await port.hashAt(height);
  return hash === null ? null : port.readBlock(hash, watch);
}

async function connectBlock(
  ctx: ChainContext,
  currency: UtxoCode,
  cursor: ChainCursor,
  block: BlockFacts,
  atMs: number,
): Promise<ChainCursor> {
  const row = { height: cursor.height + 1, hash: block.hash, previousHash: block.previousHash, timeMs: block.timeMs };
  const seenAtMs = ctx.ports.clock.now();
  await ctx.db.transaction(async (sql) => {
    await moveCursor(sql, currency, cursor, row, atMs);
    await insertBlock(sql, currency, row);
    await recordSightings(
      sql,
      currency,
      { block: row, caughtUpAtMs: cursor.caughtUpAtMs, atMs },
      block.touched.map((facts) => ({ facts, seenAtMs })),
    );
    await wakeJudge(sql, currency);
  });
  return { ...cursor, height: row.height, hash: row.hash, epoch: cursor.epoch + 1n };
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
