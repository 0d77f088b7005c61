// A pass finds that the node's best chain no longer holds our cursor: this finds where the branches part, and records the change. Up to 100
// blocks are removed and replaced in one database transaction together with the state of the mempool, so that no payment ever looks missing
// in between.
import type { BlockFacts, ChainPort, NodeCondition } from '../../core/ports.ts';
import {
  type BlockRow,
  type ChainCursor,
  deleteBlocksAbove,
  hashesDown,
  insertBlocks,
  moveCursor,
} from '../../store/chain/blocks.ts';
import {
  compareWithMempool,
  recordMempoolChanges,
  recordSightings,
  takeBackAbove,
  wakeJudge,
} from '../../store/chain/sightings.ts';
import { insertUnconfirmed } from '../../store/chain/unconfirmed-blocks.ts';
import { readUnmined } from '../../store/chain/unmined.ts';
import type { ChainContext } from './context.ts';
import type { ChainWatchList } from './watch-list.ts';

type Ready = Extract<NodeCondition, { state: 'ready' }>;
export type FollowOptions = {
  readonly cursor: ChainCursor;
  /** The tip that the node reported at the pass's beginning, compared with our other nodes: only blocks of this history are written. */
  readonly tip: Ready;
  readonly atMs: number;
  readonly limit: number;
  /** Whether the nodes' agreement is still known; asked before anything is written that may be booked. */
  isSure(): Promise<boolean>;
  /** The newest number of the database when a transaction was first read in the mempool; null when it was not. */
  firstSeen(txid: string): number | null;
};
/** How far a pass advanced along the blocks. */
export type Followed = {
  readonly cursor: ChainCursor;
  readonly blocksRead: number;
  readonly atTip: boolean;
  readonly more: boolean;
  /** The node's chain is ours, only shorter. */
  readonly behind?: boolean;
  /** Things in the blocks that are no payments but must be logged. */
  readonly notices?: readonly string[];
};
type Fork = { readonly height: number; readonly hash: string };

/** Deeper ones are recorded too, but then the new branch follows block by block. */
const WHOLE_DEPTH = 100;
const PAGE = 50;
const MOVED = (cursor: ChainCursor): Followed => ({ cursor, blocksRead: 0, atTip: false, more: true });

/**
 * @returns null when the cursor is on the node's best chain (or will be: the node is ahead of it), otherwise how far the pass advanced. A
 * node that is only behind us changes nothing.
 */
export async function followFork(
  ctx: ChainContext,
  port: ChainPort,
  watch: ChainWatchList,
  options: FollowOptions,
): Promise<Followed | null> {
  const { cursor, tip } = options;
  if (tip.height >= cursor.height) {
    const hash = saidAt(tip, cursor.height) ?? (await port.hashAt(cursor.height));
    if (hash === cursor.hash) return null;
    if (hash === null) return MOVED(cursor);
  }
  const fork = await findFork(ctx, port, cursor.height, tip.height);
  if (fork === null) return MOVED(cursor);
  // restored from an old copy, or still syncing: its chain is ours, only shorter
  if (fork.height === tip.height) return { cursor, blocksRead: 0, atTip: false, more: false, behind: true };
  return takeBranch(ctx, port, watch, { ...options, fork });
}

/** The hash at a height as far as the node said it with its tip; null where it must be asked. */
export function saidAt(tip: Ready, height: number): string | null {
  if (height === tip.height) return tip.hash;
  return height === tip.height - 1 ? (tip.previousHash ?? null) : null;
}

/** The highest block that the node's best chain and ours share; null when the node's chain changed while it was searched. */
async function findFork(ctx: ChainContext, port: ChainPort, ourHeight: number, tipHeight: number): Promise<Fork | null> {
  const fromHeight = Math.min(ourHeight, tipHeight);
  let lowest: Fork | null = null;
  for (let height = fromHeight; ; ) {
    const page = await hashesDown(ctx.db, port.currency, height, PAGE);
    for (const ours of page) {
      const hash = await port.hashAt(ours.height);
      if (hash === null) return null;
      if (hash === ours.hash) return ours;
      lowest = ours;
    }
    if (page.length < PAGE) break;
    height = (page[page.length - 1] as Fork).height - 1;
  }
  // Everything that we ever read is replaced, and the branches part below it: a transaction that double-spends our payments may be there
  // too.
  const height = lowest === null ? fromHeight : Math.max(0, Math.min(lowest.height - 1, ourHeight - WHOLE_DEPTH));
  const hash = await port.hashAt(height);
  return hash === null ? null : { height, hash };
}

/** Takes back the blocks above `fork`, and records those that the node's best chain has there now. */
async function takeBranch(
  ctx: ChainContext,
  port: ChainPort,
  watch: ChainWatchList,
  options: FollowOptions & { readonly fork: Fork },
): Promise<Followed> {
  const { cursor, tip, fork, atMs } = options;
  const whole = cursor.height - fork.height <= WHOLE_DEPTH;
  // another transaction in the new blocks may spend what the lost blocks held
  await watch.watchAbove(fork.height);
  const branch = whole
    ? await readBranch(port, watch, fork, Math.min(tip.height, fork.height + Math.max(options.limit, WHOLE_DEPTH)))
    : [];
  if (branch === null) return MOVED(cursor);
  const mempool = new Set(await port.mempool());
  const end = branch.at(-1) ?? (await forkRow(port, fork));
  const isAtTip = await isTip(port, end);
  if (whole && end.height === tip.height && !isAtTip) return MOVED(cursor);
  if (!(await options.isSure()) || (branch.length > 0 && !(await isBelowTip(port, tip, end)))) return MOVED(cursor);

  const seenAtMs = ctx.ports.clock.now();
  await ctx.db.transaction(async (sql) => {
    await moveCursor(sql, port.currency, cursor, end, atMs);
    await deleteBlocksAbove(sql, port.currency, fork.height);
    await takeBackAbove(sql, port.currency, { height: fork.height, oldTip: cursor.height, newTip: end.height, atMs });
    await insertBlocks(sql, port.currency, branch);
    for (const block of branch) {
      await insertUnconfirmed(sql, port.currency, block, block.facts, seenAtMs);
      const sightings = block.facts.touched.map((facts) => ({ facts, seenAtMs, seenOrder: options.firstSeen(facts.txid) }));
      await recordSightings(sql, port.currency, { block, caughtUpAtMs: cursor.caughtUpAtMs, atMs }, sightings);
    }
    if (isAtTip) {
      const unmined = await readUnmined(sql, port.currency, 0, { txids: mempool, changed: null });
      await recordMempoolChanges(sql, port.currency, compareWithMempool(unmined, mempool, atMs, cursor.height));
    }
    await wakeJudge(sql, port.currency);
  });
  const next = { ...cursor, height: end.height, hash: end.hash, epoch: cursor.epoch + 1n };
  const notices = branch.flatMap((block) => tokenNotices(block.facts));
  return { cursor: next, blocksRead: branch.length, atTip: end.height === tip.height, more: end.height < tip.height, notices };
}

/** Whether a block of the node's best chain is in the history that ends in this tip. */
export async function isBelowTip(port: ChainPort, tip: Ready, block: Fork): Promise<boolean> {
  if (block.height === tip.height) return block.hash === tip.hash;
  return (await port.hashAt(tip.height)) === tip.hash;
}

/** Whether a block is the node's tip now. */
export async function isTip(port: ChainPort, block: Fork): Promise<boolean> {
  if (port.isTip !== undefined) return port.isTip(block);
  return (await port.hashAt(block.height)) === block.hash && (await port.hashAt(block.height + 1)) === null;
}

/** How many of one block are told: anybody can write events of a contract of their own by the ten thousand. */
const MOST_NOTICES = 10;

/** Tokens that we do not carry at our addresses: neither they nor the BCH under them are booked. */
export function tokenNotices(block: BlockFacts): string[] {
  const all = block.touched.flatMap(({ txid, tokenOutputs = [] }) => tokenOutputs.map((output) => ({ txid, output })));
  const told = all
    .slice(0, MOST_NOTICES)
    .map(
      ({ txid, output: { vout, category, tokens, nft, amountMinor } }) =>
        `${txid}:${vout} in block ${block.hash} brings tokens to an address of ours (${category.startsWith('0x') ? 'contract' : 'category'} ${category}, ${tokens} units${nft ? ' and an NFT' : ''}${amountMinor > 0n ? `, on ${amountMinor} base units` : ''}): not a payment, nothing is booked`,
    );
  const rest = all.length - told.length;
  return rest === 0
    ? told
    : [...told, `${rest} more in block ${block.hash} bring tokens to addresses of ours: nothing is booked`];
}

type BranchBlock = BlockRow & { readonly facts: BlockFacts };

/** The new branch's blocks above the fork; null when it changed while it was read. */
async function readBranch(port: ChainPort, watch: ChainWatchList, fork: Fork, last: number): Promise<BranchBlock[] | null> {
  const branch: BranchBlock[] = [];
  let previous = fork.hash;
  for (let height = fork.height + 1; height <= last; height++) {
    const hash = await port.hashAt(height);
    if (hash === null) return null;
    const facts = await port.readBlock(hash, watch);
    if (facts.previousHash !== previous) return null;
    branch.push({ height, hash, previousHash: facts.previousHash, timeMs: facts.timeMs, facts });
    previous = hash;
  }
  return branch;
}

async function forkRow(port: ChainPort, fork: Fork): Promise<BlockRow> {
  const { previousHash, timeMs } = await port.readBlock(fork.hash, {
    hasScript: () => false,
    hasOutpoint: () => false,
    fresh: async () => undefined,
  });
  return { height: fork.height, hash: fork.hash, previousHash, timeMs };
}
