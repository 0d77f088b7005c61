// Reads every chain a second time, at final depth and independently of what the watchers recorded: it records what our addresses received
// there, and the audit compares that with payments and ledger.

import type { BlockRef } from '../../core/block-ref.ts';
import { finalDepth } from '../../core/confirmations.ts';
import { type CurrencyCode, isUtxo } from '../../core/currency.ts';
import type { ChainPort, TransactionFacts } from '../../core/ports.ts';
import { CursorMoved, readCursor } from '../../store/chain/blocks.ts';
import { asRecorded, paidInside, type RecordedPlace, recordedIn } from '../../store/chain/inner-ether.ts';
import { withoutOwnSends } from '../../store/chain/own-senders.ts';
import {
  addReceipts,
  beginReconciled,
  type Receipt,
  type Reconciled,
  readReconciled,
  reconciledDown,
  rewindReconciled,
  setReconciledTrouble,
} from '../../store/chain/receipts.ts';
import { ownersOf } from '../../store/chain/script-owners.ts';
import { deniedScripts, paymentsIn } from '../../store/chain/unconfirmed-blocks.ts';
import type { ChainContext } from '../chain/context.ts';
import { isPassing, troubleOf } from '../chain/pass-result.ts';
import { heights, readAhead } from '../chain/read-ahead.ts';
import { watchOnly } from '../chain/watch-list.ts';
import { createCollector } from './block-collector.ts';

export type ReconcileResult = {
  readonly blocksRead: number;
  /** Up to this height the chain was read a second time; null before the first watcher has begun. */
  readonly height: number | null;
  /** There is more to read at once. */
  readonly more: boolean;
  /** Why it could not go on; null when it could. */
  readonly trouble: string | null;
  /** The node answers but cannot be read for this (pruned, wrong answers): an operator must know. */
  readonly unread: boolean;
};

const BLOCKS_AT_ONCE = 200;
/** A provider may answer wrongly for a moment; a block that was pruned stays so. */
const LASTING_MS = 10 * 60_000;
const PAGE = 50;

/** Continues where the last reading ended, for a limited number of blocks. Trouble with the node is in the result. */
export async function reconcile(
  ctx: ChainContext,
  currency: CurrencyCode,
  options: { readonly limit?: number } = {},
): Promise<ReconcileResult> {
  const port = ctx.ports.chains.get(currency);
  if (port === undefined)
    return { blocksRead: 0, height: null, more: false, trouble: `no node is configured for ${currency}`, unread: false };
  const nowMs = ctx.ports.clock.now();
  const cursor = await readCursor(ctx.db, currency);
  const begun = (await readReconciled(ctx.db, currency)) ?? (await firstReconciled(ctx, currency, nowMs));
  if (cursor === null || begun === null) return { blocksRead: 0, height: null, more: false, trouble: null, unread: false };
  let at = begun;
  let blocksRead = 0;
  try {
    const condition = await port.condition();
    if (condition.state !== 'ready')
      return { blocksRead, height: at.height, more: false, trouble: condition.reason, unread: false };
    at = await ontoBestChain(ctx, port, at);
    const deep = Math.min(cursor.height, condition.height) - finalDepth(currency).depth + 1;
    const last = Math.min(deep, at.height + (options.limit ?? BLOCKS_AT_ONCE));
    for await (const block of blocksAfter(ctx, port, at, last)) {
      const after = at;
      await ctx.db.transaction((sql) => addReceipts(sql, currency, { after, block, receipts: block.receipts, atMs: nowMs }));
      at = { ...at, height: block.height, hash: block.hash };
      blocksRead++;
    }
    if (at.trouble !== null && (blocksRead > 0 || at.height >= deep)) await setReconciledTrouble(ctx.db, currency, null);
    return { blocksRead, height: at.height, more: at.height < deep && blocksRead > 0, trouble: null, unread: false };
  } catch (error) {
    const trouble = troubleOf(error);
    if (trouble === null && !(error instanceof CursorMoved)) throw error;
    const unread = (trouble?.state === 'pruned' || trouble?.state === 'bad_answer') && !isPassing(error);
    const wasReadOn = blocksRead > 0;
    if (unread && trouble !== null && (wasReadOn || trouble.reason !== at.trouble)) {
      const lastsMs = trouble.state === 'pruned' ? 0 : LASTING_MS;
      await setReconciledTrouble(ctx.db, currency, { reason: trouble.reason, lastsMs, wasReadOn });
    }
    // what could not be read was read, and this will pass
    if (!unread && wasReadOn && at.trouble !== null) await setReconciledTrouble(ctx.db, currency, null);
    return { blocksRead, height: at.height, more: false, trouble: (error as Error).message, unread };
  }
}

async function firstReconciled(ctx: ChainContext, currency: CurrencyCode, nowMs: number): Promise<Reconciled | null> {
  await beginReconciled(ctx.db, currency, nowMs);
  return readReconciled(ctx.db, currency);
}

/**
 * Deletes what was found above a height (default: everything) and begins there again, at the block that the node reports. Nothing is
 * deleted when the node cannot give the first block to be read.
 * @throws NodeTrouble, CursorMoved
 */
export async function beginAgain(ctx: ChainContext, currency: CurrencyCode, fromHeight: number | null = null): Promise<void> {
  const port = ctx.ports.chains.get(currency);
  const begun = await readReconciled(ctx.db, currency);
  if (port === undefined || begun === null) return;
  const at = fromHeight === null ? begun : await ontoBestChain(ctx, port, begun);
  const height = Math.min(at.height, fromHeight ?? at.fromHeight);
  const hash = await port.hashAt(height);
  if (hash === null) throw new CursorMoved(`the node of ${currency} has no block ${height}`);
  const first = await port.hashAt(height + 1);
  if (first !== null) await port.readBlock(first, watchOnly([]));
  await ctx.db.transaction((sql) => rewindReconciled(sql, currency, { height, hash }, ctx.ports.clock.now()));
}

/** After a reorganisation deeper than the final depth: goes back to where the node's branch leaves what was read here. */
async function ontoBestChain(ctx: ChainContext, port: ChainPort, at: Reconciled): Promise<Reconciled> {
  const there = await port.hashAt(at.height);
  if (there === at.hash) return at;
  if (there === null) throw new CursorMoved(`the node of ${port.currency} is behind the second reading`);
  const to = (await lastShared(ctx, port, at.height - 1)) ?? (await beforeAll(port, at));
  await ctx.db.transaction((sql) => rewindReconciled(sql, port.currency, to, ctx.ports.clock.now()));
  return { ...at, fromHeight: Math.min(at.fromHeight, to.height), ...to };
}

/**
 * The highest block that was read here and is on the node's chain; null when none of the kept ones is. The watchers' blocks cannot be used:
 * they already hold the new branch.
 */
async function lastShared(ctx: ChainContext, port: ChainPort, fromHeight: number): Promise<BlockRef | null> {
  for (let height = fromHeight; ; ) {
    const page = await reconciledDown(ctx.db, port.currency, height, PAGE);
    for (const own of page) if ((await port.hashAt(own.height)) === own.hash) return own;
    const lowest = page.at(-1);
    if (lowest === undefined) return null;
    height = lowest.height - 1;
  }
}

/** Everything is read again, including the first block, in which nothing was searched before: it may have been replaced as well. */
async function beforeAll(port: ChainPort, at: Reconciled): Promise<BlockRef> {
  const height = Math.max(0, at.fromHeight - 1);
  const hash = await port.hashAt(height);
  if (hash === null) throw new CursorMoved(`the node of ${port.currency} has no block ${height}`);
  return { height, hash };
}

/** About what one receipt takes in memory. */
const RECEIPT_BYTES = 300;

type ReadBlock = { readonly height: number; readonly hash: string; readonly receipts: readonly Receipt[] };

/** The blocks above `at` up to a height, a few read ahead; ends early where they do not follow each other. */
async function* blocksAfter(ctx: ChainContext, port: ChainPort, at: Reconciled, last: number): AsyncGenerator<ReadBlock> {
  let previous = at.hash;
  const read = (height: number) => readReceipts(ctx, port, height);
  const heldBytes = (block: Awaited<ReturnType<typeof read>>): number => (block?.receipts.length ?? 0) * RECEIPT_BYTES;
  for await (const [, block] of readAhead(heights(at.height + 1, last), read, { currency: port.currency, heldBytes })) {
    if (block === null || block.previousHash !== previous) return;
    yield block;
    previous = block.hash;
  }
}

async function readReceipts(
  ctx: ChainContext,
  port: ChainPort,
  height: number,
): Promise<(ReadBlock & { previousHash: string }) | null> {
  const hash = await port.hashAt(height);
  if (hash === null) return null;
  const collector = createCollector();
  const { previousHash } = await port.readBlock(hash, collector.watch);
  // of a node without traces only balances show what contracts sent, and they are asked where something was recorded
  const hidden = await paidInside(ctx.db, port.currency, { height, hash });
  const owners = await ownersOf(ctx.db, [...collector.scripts(), ...hidden]);
  if (owners.size === 0) return { height, hash, previousHash, receipts: [] };
  const scripts = [...owners.keys()].map((script) => Buffer.from(script, 'hex'));
  const { touched, inner, unconfirmed } = await port.readBlock(hash, watchOnly(scripts));
  const fromOthers = await withoutOwnSends(ctx.db, port.currency, touched);
  const { facts, instead } = await asRecorded(ctx.db, port.currency, hash, fromOthers);
  // nobody can look again once the node has no state of the block: what was recorded stands, and EVM-1 compares the address
  const unseen =
    inner === 'unseen'
      ? await recordedIn(
          ctx.db,
          hash,
          hidden.map((script) => script.toString('hex')),
        )
      : [];
  // of what nodes contradict each other about nothing was found: what was recorded stands, and the contradiction is told
  const denied = new Set([
    ...(unconfirmed?.state === 'denied' ? unconfirmed.scripts : []),
    ...(await deniedScripts(ctx.db, port.currency, { height, hash })),
  ]);
  const kept = await paymentsIn(ctx.db, port.currency, { height, hash }, [...denied]);
  const shown = receiptsOf(facts, owners, denied);
  const isNamed = !isUtxo(port.currency) && shown.length > 0;
  const found = isNamed
    ? atRecordedPlaces(
        shown,
        receiptsUnder(await paymentsIn(ctx.db, port.currency, { height, hash }, [...owners.keys()]), owners),
      )
    : shown;
  const receipts = [...found, ...receiptsUnder([...instead, ...unseen, ...kept], owners)];
  const byPlace = new Map(receipts.map((one) => [`${one.txid}:${one.vout}`, one]));
  return { height, hash, previousHash, receipts: [...byPlace.values()] };
}

/**
 * Nodes of Ethereum's chain are compared by what is paid, and one may name other places than the one that was read before: where all that is found of a
 * transaction is recorded, it is found at the places of the record.
 */
function atRecordedPlaces(found: readonly Receipt[], recorded: readonly Receipt[]): readonly Receipt[] {
  const nameOf = ({ transactionId, amount }: Receipt): string => `${transactionId} ${amount}`;
  const known = Map.groupBy(recorded, ({ txid }) => txid);
  return [...Map.groupBy(found, ({ txid }) => txid)].flatMap(([txid, all]) => {
    const left = new Map((known.get(txid) ?? []).map((one) => [one.vout, nameOf(one)]));
    const [there, elsewhere]: [Receipt[], Receipt[]] = [[], []];
    for (const one of all) (left.get(one.vout) === nameOf(one) ? there : elsewhere).push(one);
    for (const { vout } of there) left.delete(vout);
    const free = Map.groupBy(left.keys(), (vout) => left.get(vout) as string);
    const placed = elsewhere.flatMap((one) => {
      const vout = free.get(nameOf(one))?.shift();
      return vout === undefined ? [] : [{ ...one, vout }];
    });
    return placed.length === elsewhere.length ? [...there, ...placed] : all;
  });
}

/** What was found again under another name than it is recorded by, or can be looked for by nobody. */
function receiptsUnder(places: readonly RecordedPlace[], owners: ReadonlyMap<string, string>): Receipt[] {
  return places.flatMap(({ txid, vout, script, amountMinor }) => {
    const transactionId = owners.get(script);
    return transactionId === undefined ? [] : [{ txid, vout, amount: amountMinor, coinbase: false, transactionId }];
  });
}

function receiptsOf(
  touched: readonly TransactionFacts[],
  owners: ReadonlyMap<string, string>,
  without: ReadonlySet<string>,
): Receipt[] {
  return touched.flatMap(({ txid, coinbase, outputs }) =>
    outputs.flatMap(({ vout, script, amountMinor }) => {
      const transactionId = owners.get(script);
      return transactionId === undefined || amountMinor <= 0n || without.has(script)
        ? []
        : [{ txid, vout, amount: amountMinor, coinbase, transactionId }];
    }),
  );
}
