// The part of a watcher's pass that advances along the chain: reads blocks from the cursor towards the tip, a few ahead, and records them:
// each that holds something of ours in one database transaction, together with those before it that do not.

import type { CurrencyCode } from '../../core/currency.ts';
import type { BlockFacts, ChainPort, NodeCondition } from '../../core/ports.ts';
import { type BlockRow, beginCursor, type ChainCursor, insertBlocks, moveCursor, readCursor } from '../../store/chain/blocks.ts';
import { recordSightings, wakeJudge } from '../../store/chain/sightings.ts';
import { insertUnconfirmed } from '../../store/chain/unconfirmed-blocks.ts';
import { transactionByIndex } from '../../store/postgres/connect.ts';
import type { ChainContext } from './context.ts';
import { factBytes, heights, readAhead } from './read-ahead.ts';
import { type Followed, type FollowOptions, isBelowTip, saidAt, tokenNotices } from './reorganisation.ts';
import { type ChainWatchList, watchOnly } from './watch-list.ts';

/** So many blocks that hold nothing of ours are recorded together, or as many as were read in this time. */
const TOGETHER = 50;
const TOGETHER_MS = 1_000;

/** The first start on a chain: begins at the node's tip, since nothing older can be ours; returns the cursor there. */
export async function beginChain(
  ctx: ChainContext,
  port: ChainPort,
  tip: Extract<NodeCondition, { state: 'ready' }>,
  atMs: number,
): Promise<ChainCursor> {
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

/**
 * Records blocks from the cursor towards the tip, at most `limit`. Ends early, with `more`, where a block does not follow the one before: the
 * next pass finds the fork.
 * @throws NodeTrouble for a block that cannot be read; those before it are recorded
 */
export async function followBlocks(
  ctx: ChainContext,
  port: ChainPort,
  watch: ChainWatchList,
  options: FollowOptions,
): Promise<Followed> {
  let { cursor } = options;
  const { tip } = options;
  const last = Math.min(tip.height, cursor.height + options.limit);
  let blocksRead = 0;
  const notices: string[] = [];
  /** Read, and not recorded yet. */
  let unrecorded: BlockFacts[] = [];
  let sinceMs = performance.now();
  /** False when the chain has changed during the pass: nothing was written, and the next pass finds the fork. */
  async function record(): Promise<boolean> {
    const blocks = unrecorded;
    unrecorded = [];
    sinceMs = performance.now();
    const end = blocks.at(-1);
    if (end === undefined) return true;
    const place = { height: cursor.height + blocks.length, hash: end.hash };
    if (!(await options.isSure()) || !(await isBelowTip(port, tip, place))) return false;
    cursor = await connectBlocks(ctx, port.currency, blocks, { ...options, cursor });
    notices.push(...blocks.flatMap(tokenNotices));
    blocksRead += blocks.length;
    return true;
  }
  async function readAll(): Promise<boolean> {
    const read = (height: number) => readAt(port, watch, height, tip);
    const places = heights(cursor.height + 1, last);
    for await (const [, block] of readAhead(places, read, { currency: port.currency, heldBytes: factBytes })) {
      if (block === null || block.previousHash !== (unrecorded.at(-1) ?? cursor).hash) return false;
      unrecorded.push(block);
      const canWait = isWithoutOurs(block) && unrecorded.length < TOGETHER && performance.now() - sinceMs < TOGETHER_MS;
      if (!canWait && !(await record())) return false;
    }
    return true;
  }
  try {
    const isWhole = await readAll();
    const isRecorded = await record();
    if (!isWhole || !isRecorded) return { cursor, blocksRead, atTip: false, more: true, notices };
  } catch (error) {
    await record();
    throw error;
  }
  return { cursor, blocksRead, atTip: cursor.height === tip.height, more: cursor.height < tip.height, notices };
}

const isWithoutOurs = ({ touched, unconfirmed }: BlockFacts): boolean => touched.length === 0 && unconfirmed === undefined;

async function readAt(
  port: ChainPort,
  watch: ChainWatchList,
  height: number,
  tip: FollowOptions['tip'],
): Promise<BlockFacts | null> {
  // where the tip tells of its parent as well (Ethereum), a block is read by the tip's word: nothing newer would be written in this pass
  const hash = (tip.previousHash === undefined ? null : saidAt(tip, height)) ?? (await port.hashAt(height));
  return hash === null ? null : port.readBlock(hash, watch);
}

/** @param blocks in their order, at least one; only the last of them may hold something of ours */
async function connectBlocks(
  ctx: ChainContext,
  currency: CurrencyCode,
  blocks: readonly BlockFacts[],
  { cursor, atMs, firstSeen }: Pick<FollowOptions, 'cursor' | 'atMs' | 'firstSeen'>,
): Promise<ChainCursor> {
  const rows = blocks.map(({ hash, previousHash, timeMs }, at) => ({
    height: cursor.height + 1 + at,
    hash,
    previousHash,
    timeMs,
  }));
  const end = rows.at(-1) as BlockRow;
  const facts = blocks.at(-1) as BlockFacts;
  const seenAtMs = ctx.ports.clock.now();
  await transactionByIndex(ctx.db, async (sql) => {
    await moveCursor(sql, currency, cursor, end, atMs);
    await insertBlocks(sql, currency, rows);
    await insertUnconfirmed(sql, currency, end, facts, seenAtMs);
    await recordSightings(
      sql,
      currency,
      { block: end, caughtUpAtMs: cursor.caughtUpAtMs, atMs },
      facts.touched.map((touched) => ({ facts: touched, seenAtMs, seenOrder: firstSeen(touched.txid) })),
    );
    await wakeJudge(sql, currency);
  });
  return { ...cursor, height: end.height, hash: end.hash, epoch: cursor.epoch + 1n };
}
