// The part of a watcher's pass that advances along the chain: reads blocks from the cursor towards the tip, a few ahead, and records each
// in one database transaction.

import type { CurrencyCode } from '../../core/currency.ts';
import type { BlockFacts, ChainPort, NodeCondition } from '../../core/ports.ts';
import { beginCursor, type ChainCursor, insertBlock, moveCursor, readCursor } from '../../store/chain/blocks.ts';
import { recordSightings, wakeJudge } from '../../store/chain/sightings.ts';
import { insertUnconfirmed } from '../../store/chain/unconfirmed-blocks.ts';
import { transactionByIndex } from '../../store/postgres/connect.ts';
import type { ChainContext } from './context.ts';
import { factBytes, heights, readAhead } from './read-ahead.ts';
import { type Followed, type FollowOptions, isBelowTip, saidAt, tokenNotices } from './reorganisation.ts';
import { type ChainWatchList, watchOnly } from './watch-list.ts';

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
 * Records blocks from the cursor towards the tip, each in one database transaction, at most `limit`. Ends early, with `more`, where a block
 * does not follow the one before: the next pass finds the fork.
 * @throws NodeTrouble for a block that cannot be read
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
  const read = (height: number) => readAt(port, watch, height, tip);
  const places = heights(cursor.height + 1, last);
  for await (const [, block] of readAhead(places, read, { currency: port.currency, heldBytes: factBytes })) {
    // the chain has changed during the pass: the next pass finds the fork
    const follows = block !== null && block.previousHash === cursor.hash;
    if (!follows || !(await options.isSure()) || !(await isBelowTip(port, tip, { height: cursor.height + 1, hash: block.hash })))
      return { cursor, blocksRead, atTip: false, more: true, notices };
    cursor = await connectBlock(ctx, port.currency, block, { ...options, cursor });
    notices.push(...tokenNotices(block));
    blocksRead++;
  }
  return { cursor, blocksRead, atTip: cursor.height === tip.height, more: cursor.height < tip.height, notices };
}

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

async function connectBlock(
  ctx: ChainContext,
  currency: CurrencyCode,
  block: BlockFacts,
  { cursor, atMs, firstSeen }: Pick<FollowOptions, 'cursor' | 'atMs' | 'firstSeen'>,
): Promise<ChainCursor> {
  const row = { height: cursor.height + 1, hash: block.hash, previousHash: block.previousHash, timeMs: block.timeMs };
  const seenAtMs = ctx.ports.clock.now();
  await transactionByIndex(ctx.db, async (sql) => {
    await moveCursor(sql, currency, cursor, row, atMs);
    await insertBlock(sql, currency, row);
    if (block.unconfirmed !== undefined)
      await insertUnconfirmed(sql, currency, row, { ...block.unconfirmed, words: block.innerWords, atMs: seenAtMs });
    await recordSightings(
      sql,
      currency,
      { block: row, caughtUpAtMs: cursor.caughtUpAtMs, atMs },
      block.touched.map((facts) => ({ facts, seenAtMs, seenOrder: firstSeen(facts.txid) })),
    );
    await wakeJudge(sql, currency);
  });
  return { ...cursor, height: row.height, hash: row.hash, epoch: cursor.epoch + 1n };
}
