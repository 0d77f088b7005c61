// Reads blocks again that the watchers have passed: rule 8's last look-up of single addresses, and the deep scan that compares every output
// with all addresses, including those too old for the watch list. Whatever it finds is recorded as the watchers record it.

import type { BlockRef } from '../../core/block-ref.ts';
import { type CurrencyCode, isUtxo } from '../../core/currency.ts';
import type { BlockFacts, ChainPort, TransactionFacts, WatchList } from '../../core/ports.ts';
import {
  type BlockRow,
  type ChainCursor,
  CursorMoved,
  hashesDown,
  lockCursor,
  readCursor,
  setDeepHeight,
} from '../../store/chain/blocks.ts';
import type { Sighting } from '../../store/chain/payment-facts.ts';
import { rewindBelow, rewindWhereUnfound } from '../../store/chain/receipts.ts';
import { knownScripts } from '../../store/chain/script-owners.ts';
import { recordSightings, takeBackAt, wakeJudge } from '../../store/chain/sightings.ts';
import { blockBefore, confirmBlock, insertUnconfirmed, type UnconfirmedBlock } from '../../store/chain/unconfirmed-blocks.ts';
import { type Sql, transactionByIndex } from '../../store/postgres/connect.ts';
import type { ChainContext } from '../chain/context.ts';
import { troubleOf } from '../chain/pass-result.ts';
import { factBytes, readAhead } from '../chain/read-ahead.ts';
import { watchOnly } from '../chain/watch-list.ts';
import { bestChain } from './best-chain.ts';
import { type Collector, createCollector } from './block-collector.ts';
import {
  type BlockMemory,
  createBlockMemory,
  createPrinter,
  printsOf,
  type ScriptFingerprints,
} from './block-script-fingerprints.ts';

/** Called with the reason why a node that answers cannot be read for this: a block that it pruned, a wrong answer. */
export type OnTrouble = (reason: string) => void;
export type RescanOptions = {
  readonly onTrouble?: OnTrouble;
  /** What earlier readings of this chain found; this reading adds to it. */
  readonly memory?: BlockMemory;
  /** The newest number of the database when this process first read a transaction in the mempool; null when it did not. */
  readonly firstSeen?: (txid: string) => number | null;
};

const DEEP_BLOCKS_AT_ONCE = 500;
/** Outputs of several small blocks are looked up together. */
const BATCH_BLOCKS = 50;
const BATCH_SCRIPTS = 5_000;
/** The largest number of mempool transactions in memory at once. */
const MEMPOOL_AT_ONCE = 2_000;

/**
 * Searches every block from a height to the cursor, and the mempool, for payments to these scripts: one pass for all of them. The node is
 * asked which chain is the best; a block whose content is remembered is fetched again only when it may pay one of them.
 * @returns false when it could not be finished (the node has trouble, the chain moved): nothing is lost, call it again
 */
export async function lookUpAgain(
  ctx: ChainContext,
  currency: CurrencyCode,
  options: RescanOptions & { readonly fromHeight: number; readonly scripts: readonly Uint8Array[] },
): Promise<boolean> {
  const port = ctx.ports.chains.get(currency);
  const cursor = await readCursor(ctx.db, currency);
  if (port === undefined || cursor === null) return false;
  const { memory = createBlockMemory() } = options;
  const watch = watchOnly(options.scripts);
  const mayPay = printsOf(options.scripts);
  /** Null when it pays none of them. */
  async function lookAt({ hash }: BlockRef): Promise<BlockFacts | null> {
    const prints = memory.get(hash);
    if (prints !== undefined) return mayPay(prints) ? port!.readBlock(hash, watch) : null;
    const printer = createPrinter(watch);
    const facts = await port!.readBlock(hash, printer.watch);
    memory.set(hash, printer.prints());
    // a list that cannot name what it watches is one node's word (outside/evm/second-word)
    return facts.touched.length === 0 ? null : port!.readBlock(hash, watch);
  }
  return unlessTrouble(options.onTrouble, async () => {
    const condition = await port.condition();
    // a node that is behind does not have all the blocks that we have read
    if (condition.state !== 'ready' || condition.height < cursor.height) return false;
    const places = bestChain(ctx, port, { from: options.fromHeight, to: cursor.height });
    for await (const [{ height, hash }, facts] of readAhead(places, lookAt, { currency, heldBytes: factBytes })) {
      if (facts !== null) await recordAgain(ctx, port, { ...facts, height, hash }, facts);
    }
    return lookAtMempool(ctx, port, watch, options.firstSeen ?? (() => null));
  });
}

/** For so long after its time a block waits for a second node to say what it holds; after that one node's word counts. */
const WAITS_MS = 3_600_000;

/**
 * Looks up every output of the blocks since the last deep scan, so that payments to addresses of any age find their transaction. Where several
 * nodes must say what a block holds, all of them read it: one that shows less than another is noticed here.
 * @returns how many blocks were read
 */
export async function deepScan(ctx: ChainContext, currency: CurrencyCode, options: RescanOptions = {}): Promise<number> {
  const port = ctx.ports.chains.get(currency);
  const cursor = await readCursor(ctx.db, currency);
  if (port === undefined || cursor === null) return 0;
  const { memory } = options;
  const read = port.readByAll ?? port.readBlock;
  /** Null: no second node says yet what it holds. */
  async function collect({ height, hash }: BlockRef): Promise<CollectedBlock | null> {
    const collector = createCollector();
    const printer = createPrinter(collector.watch);
    const { previousHash, timeMs, unconfirmed } = await read(hash, printer.watch);
    if (unconfirmed !== undefined && ctx.ports.clock.now() - timeMs < WAITS_MS) return null;
    const prints = printer.prints();
    memory?.set(hash, prints);
    return { row: { height, hash, previousHash, timeMs }, prints, collector };
  }
  let blocks = 0;
  let batch: CollectedBlock[] = [];
  async function finishBatch(): Promise<void> {
    const full = batch;
    batch = [];
    await recordKnown(ctx, port!, full);
    blocks += full.length;
  }
  await unlessTrouble(options.onTrouble, async () => {
    const to = Math.min(cursor.height, cursor.deepHeight + DEEP_BLOCKS_AT_ONCE);
    let scripts = 0;
    try {
      const places = bestChain(ctx, port, { from: cursor.deepHeight + 1, to });
      for await (const [, block] of readAhead(places, collect, { currency, heldBytes: collectedBytes })) {
        if (block === null) break;
        batch.push(block);
        scripts += block.collector.count;
        if (batch.length < BATCH_BLOCKS && scripts < BATCH_SCRIPTS) continue;
        await finishBatch();
        scripts = 0;
      }
    } finally {
      // what was read before a block that cannot be read is recorded all the same
      await finishBatch();
    }
    return true;
  });
  return blocks;
}

type CollectedBlock = { readonly row: BlockRow; readonly prints: ScriptFingerprints; readonly collector: Collector };

function collectedBytes(block: CollectedBlock | null): number {
  return block === null ? 0 : block.prints.byteLength + block.collector.memoryBytes;
}

function* allScripts(blocks: readonly CollectedBlock[]): Generator<Uint8Array> {
  for (const { collector } of blocks) yield* collector.scripts();
}

/** Records what these blocks pay to addresses of any age, and that they were searched. @throws CursorMoved */
async function recordKnown(ctx: ChainContext, port: ChainPort, blocks: readonly CollectedBlock[]): Promise<void> {
  if (blocks.length === 0) return;
  const known = await knownScripts(ctx.db, allScripts(blocks));
  const mayPay = printsOf(known);
  const read = port.readByAll ?? port.readBlock;
  for (const { row, prints } of blocks) {
    if (mayPay(prints)) await recordAgain(ctx, port, row, await read(row.hash, watchOnly(known)));
  }
  const rows = blocks.map(({ row }) => row);
  const isOurs = await transactionByIndex(ctx.db, (sql) => setDeepHeight(sql, port.currency, rows));
  if (!isOurs) throw new CursorMoved(`blocks of ${port.currency} are being replaced`);
}

export type KnownBlock = BlockRow & { readonly facts: BlockFacts };

/** The block that we have recorded at a height; null when the node's best chain holds another one there. */
export async function readAgain(
  ctx: ChainContext,
  port: ChainPort,
  height: number,
  watch: WatchList,
): Promise<KnownBlock | null> {
  const hash = await port.hashAt(height);
  if (hash === null) return null;
  const [ours] = await hashesDown(ctx.db, port.currency, height, 1);
  // below our first block there is no header of ours to compare with
  if (ours !== undefined && ours.height === height && ours.hash !== hash) return null;
  const facts = await port.readBlock(hash, watch);
  return { height, hash, previousHash: facts.previousHash, timeMs: facts.timeMs, facts };
}

/**
 * Records what this block shows, if it is still in the best chain.
 * @param shown `seenAtMs`: when it was seen first (default: now); `insteadOf`: what one node's word had recorded of it, at which scripts that is
 *   gone, and at what time of the chain it is taken back there
 * @throws CursorMoved
 */
export async function recordAgain(
  ctx: ChainContext,
  port: ChainPort,
  block: BlockRow,
  shown: Pick<BlockFacts, 'touched' | 'unconfirmed' | 'innerWords'> & {
    readonly seenAtMs?: number;
    readonly insteadOf?: {
      readonly block: Pick<UnconfirmedBlock, 'height' | 'hash' | 'previousHash' | 'isDenied' | 'scripts'>;
      readonly gone: readonly Uint8Array[];
      readonly atMs: number;
    };
  },
): Promise<void> {
  const { touched, unconfirmed, seenAtMs = ctx.ports.clock.now(), insteadOf } = shown;
  if (touched.length === 0 && (unconfirmed?.scripts ?? []).length === 0 && insteadOf === undefined) return;
  await record(
    ctx,
    port,
    touched.map((facts) => ({ facts, seenAtMs })),
    async (sql, cursor) => {
      const [ours] = await hashesDown(sql, port.currency, block.height, 1);
      const isOurs =
        block.height <= cursor.height && (ours === undefined || ours.height !== block.height || ours.hash === block.hash);
      if (!isOurs) throw new CursorMoved(`block ${block.hash} is no longer in the best chain`);
      if (insteadOf !== undefined) {
        await takeBackAt(sql, port.currency, { ...insteadOf.block, scripts: insteadOf.gone, atMs: insteadOf.atMs });
        await confirmBlock(sql, port.currency, insteadOf.block);
        const before = blockBefore(insteadOf.block);
        // the second reading may have taken it as it was
        if (before !== null) await rewindBelow(sql, port.currency, before, ctx.ports.clock.now());
        await wakeJudge(sql, port.currency);
      }
      await insertUnconfirmed(sql, port.currency, block, shown, ctx.ports.clock.now());
      return block;
    },
  );
}

async function lookAtMempool(
  ctx: ChainContext,
  port: ChainPort,
  watch: WatchList,
  firstSeen: (txid: string) => number | null,
): Promise<boolean> {
  const touched: TransactionFacts[] = [];
  const listed = await port.mempool();
  for (let from = 0; from < listed.length; from += MEMPOOL_AT_ONCE) {
    touched.push(...(await port.readMempoolTransactions(listed.slice(from, from + MEMPOOL_AT_ONCE), watch)).touched);
  }
  if (touched.length === 0) return true;
  // reading took time: what has been replaced meanwhile is no longer there
  const listing = new Set(await port.mempool());
  const waiting = touched.filter(({ txid }) => listing.has(txid));
  const nowMs = ctx.ports.clock.now();
  const entries = await port.mempoolEntries(waiting.map(({ txid }) => txid));
  const sightings = waiting.map((facts): Sighting => {
    const entered = entries.get(facts.txid) ?? null;
    return { facts, seenAtMs: Math.min(entered?.atMs ?? nowMs, nowMs), seenOrder: firstSeen(facts.txid), entered };
  });
  if (sightings.length > 0) await record(ctx, port, sightings, async () => null);
  return true;
}

async function record(
  ctx: ChainContext,
  port: ChainPort,
  sightings: readonly Sighting[],
  place: (sql: Sql, cursor: ChainCursor) => Promise<BlockRow | null>,
): Promise<void> {
  await ctx.db.transaction(async (sql) => {
    // a watcher that goes on at this very moment takes nothing from what was read here
    const cursor = await lockCursor(sql, port.currency);
    if (cursor === null) throw new CursorMoved(`${port.currency} has no cursor`);
    const block = await place(sql, cursor);
    const context = { block, caughtUpAtMs: cursor.caughtUpAtMs, atMs: cursor.caughtUpAtMs };
    if ((await recordSightings(sql, port.currency, context, sightings)) === 0) return;
    await wakeJudge(sql, port.currency);
    if (block !== null && !isUtxo(port.currency)) await rewindWhereUnfound(sql, port.currency, block, ctx.ports.clock.now());
  });
}

/** Trouble with the node, or a chain that moved, ends the work early: false. */
async function unlessTrouble(onTrouble: OnTrouble | undefined, work: () => Promise<boolean>): Promise<boolean> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CursorMoved) return false;
    const trouble = troubleOf(error);
    if (trouble === null) throw error;
    // every other state is reported by the chain watcher
    if (trouble.state === 'pruned' || trouble.state === 'bad_answer') onTrouble?.(trouble.reason);
    return false;
  }
}
