// `bursar chain rescan`: compares every output from a height up to the watcher's cursor with all addresses, whatever their age, and records
// what is missing as the watchers record it; the judge books it by the same rules. On Ethereum's chain, where what a block pays is a node's word,
// what nodes show no more is taken back. Works beside a running watcher.
import type { CurrencyCode } from '../../core/currency.ts';
import { MOST_ADDRESSES } from '../../core/evm/port.ts';
import type { ChainPort, NodeCondition } from '../../core/ports.ts';
import { CursorMoved, readCursor } from '../../store/chain/blocks.ts';
import { earlyAmong } from '../../store/chain/early-payments.ts';
import { asRecorded } from '../../store/chain/inner-ether.ts';
import { withoutOwnSends } from '../../store/chain/own-senders.ts';
import { missingPayments } from '../../store/chain/payment-facts.ts';
import { knownScripts } from '../../store/chain/script-owners.ts';
import { evmScripts, spentOutpoints } from '../../store/chain/watched.ts';
import type { ChainContext } from '../chain/context.ts';
import { isPassing } from '../chain/pass-result.ts';
import { createOutpointSet, watchOnly } from '../chain/watch-list.ts';
import { createCollector } from './block-collector.ts';
import { type KnownBlock, readAgain, recordAgain } from './rescan.ts';
import {
  bringBackCapital,
  type CapitalSought,
  knowOwnAnew,
  type NotSought,
  soughtCapital,
  takeBackUnshown,
  type Unshown,
  type UnshownWhy,
} from './taken-back.ts';

export type Rescanned = {
  readonly fromHeight: number;
  readonly toHeight: number;
  readonly blocks: number;
  /** How many of them the node neither shows the calls of nor has the state of: what contracts sent in them was looked for by nobody. */
  readonly unseen: number;
  /** What was not recorded, or not as the chain has it, by outpoint. */
  readonly found: readonly FoundPayment[];
  /** What the ledger has booked although no payment row exists: what the judge knew of it is in no block, so it is not touched. */
  readonly lost: readonly LostPayment[];
  /** What a node had shown, and no node does any more: it is gone, until one does again. */
  readonly takenBack: readonly Unshown[];
  /** The same where several nodes are configured, and no second one says so, or where nobody sees any more what contracts sent beside it. */
  readonly doubted: readonly (Unshown & { readonly reason: string })[];
  /** What nodes had not shown, or no more, at addresses that payouts leave from, and is shown there. */
  readonly isBack: readonly Unshown[];
  /** Addresses that payouts leave from where more lies than is known, and none of it was looked for. */
  readonly notSought: readonly NotSought[];
};
export type FoundPayment = { readonly outpoint: string; readonly transactionId: string; readonly height: number };
export type LostPayment = FoundPayment & { readonly entry: string };

/** The rescan cannot do what it was asked to; the message says why. */
export class RescanRefused extends Error {}

const TRIES = 50;

/**
 * @param options.onProgress called after each block
 * @param options.wait waits a moment before a node is asked again for what it does not say of a block and will soon be done without; without it
 *   that ends the reading
 * @throws RescanRefused for a currency without a node, a height that was not read yet, a pruned or unfit node
 */
export async function rescan(
  ctx: ChainContext,
  currency: CurrencyCode,
  options: {
    readonly fromHeight: number;
    readonly onProgress?: (height: number, toHeight: number) => void;
    readonly wait?: () => Promise<void>;
  },
): Promise<Rescanned> {
  const port = ctx.ports.chains.get(currency);
  if (port === undefined) throw new RescanRefused(`no node is configured for ${currency}`);
  const cursor = await readCursor(ctx.db, currency);
  if (cursor === null) throw new RescanRefused(`no worker has read the chain of ${currency} yet: there is nothing to read again`);
  refuseUnfit(currency, options.fromHeight, cursor.height, await port.condition());
  const spent = createOutpointSet(await spentOutpoints(ctx.db, currency, options.fromHeight - 1));
  const missed: MissedPayment[] = [];
  const unshown: UnshownWhy[] = [];
  const isBack: Unshown[] = [];
  const { notSought, ...capital } = await soughtCapital(ctx, currency);
  let unseen = 0;
  for (let height = options.fromHeight; height <= cursor.height; height++) {
    const read = await rescanBlock(ctx, port, height, { spent, capital }, options.wait);
    missed.push(...read.missed);
    unshown.push(...read.unshown);
    isBack.push(...read.isBack);
    if (read.isUnseen) unseen++;
    options.onProgress?.(height, cursor.height);
  }
  await knowOwnAnew(ctx, currency);
  const blocks = cursor.height - options.fromHeight + 1;
  return {
    fromHeight: options.fromHeight,
    toHeight: cursor.height,
    blocks,
    unseen,
    found: missed.filter(({ entry }) => entry === null),
    lost: missed.flatMap(({ entry, ...one }) => (entry === null ? [] : [{ ...one, entry }])),
    takenBack: unshown.flatMap(({ reason, ...one }) => (reason === null ? [one] : [])),
    doubted: unshown.flatMap(({ reason, ...one }) => (reason === null ? [] : [{ ...one, reason }])),
    isBack,
    notSought,
  };
}
type MissedPayment = FoundPayment & { readonly entry: string | null };
type ReadBlock = {
  readonly missed: readonly MissedPayment[];
  readonly isUnseen: boolean;
  readonly unshown: readonly UnshownWhy[];
  readonly isBack: readonly Unshown[];
};
type Recorded = Pick<ReadBlock, 'missed' | 'isUnseen'>;
/** The outpoints of what is known to be spent, and where capital is looked for. */
type Sought = { readonly spent: ReturnType<typeof createOutpointSet>; readonly capital: CapitalSought };

function refuseUnfit(currency: CurrencyCode, fromHeight: number, toHeight: number, condition: NodeCondition): void {
  if (condition.state !== 'ready') throw new RescanRefused(`the node of ${currency} is ${condition.state}: ${condition.reason}`);
  if (fromHeight > toHeight) {
    throw new RescanRefused(
      `${currency} was read up to block ${toHeight}: block ${fromHeight} and those after it are read by the worker`,
    );
  }
  if (condition.height < toHeight) {
    throw new RescanRefused(
      `the node of ${currency} is at block ${condition.height} and behind what was read (${toHeight}): try again when it has caught up`,
    );
  }
  if (condition.prunedBelow !== undefined && fromHeight < condition.prunedBelow) {
    throw new RescanRefused(
      `the node of ${currency} is pruned: it has no block below ${condition.prunedBelow}, so ${fromHeight} to ${condition.prunedBelow - 1} cannot be read; rescan from ${condition.prunedBelow}, or use a node that has them`,
    );
  }
}

async function rescanBlock(
  ctx: ChainContext,
  port: ChainPort,
  height: number,
  { spent, capital }: Sought,
  wait?: () => Promise<void>,
): Promise<ReadBlock> {
  const takenBack: UnshownWhy[] = [];
  const isBack: Unshown[] = [];
  for (let attempt = 1; ; ) {
    try {
      const collector = createCollector(spent);
      const block = await readAgain(ctx, port, height, collector.watch);
      if (block === null) throw new CursorMoved(`block ${height} of ${port.currency} is being replaced`);
      const unshown = await takeBackUnshown(ctx, port, block);
      // it is read anew where what comes next fails, and shows no more then what is taken back already
      takenBack.push(...unshown.filter(({ reason }) => reason === null));
      isBack.push(...(await bringBackCapital(ctx, port, block, { ...capital, paid: collector.scripts() })));
      const others = { unshown: [...takenBack, ...unshown.filter(({ reason }) => reason !== null)], isBack };
      if (block.facts.inner !== undefined) return { ...(await recordHidden(ctx, port, block, spent)), ...others };
      const known = await knownScripts(ctx.db, collector.scripts());
      if (known.length === 0 && !collector.spent()) return { missed: [], isUnseen: false, ...others };
      return { ...(await recordMissing(ctx, port, block, known, spent)), ...others };
    } catch (error) {
      if (wait !== undefined && isPassing(error)) await wait();
      // the watcher moved on meanwhile
      else if (!(error instanceof CursorMoved) || ++attempt > TRIES) throw error;
    }
  }
}

/** A block whose calls are not shown says nothing of where they sent ether: all addresses are looked at, so many at once. */
async function recordHidden(
  ctx: ChainContext,
  port: ChainPort,
  block: KnownBlock,
  spent: ReturnType<typeof createOutpointSet>,
): Promise<Recorded> {
  const missed: MissedPayment[] = [];
  let isUnseen = false;
  for (let before: string | null = null; ; ) {
    const page = await evmScripts(ctx.db, { before, limit: MOST_ADDRESSES });
    const read = await recordMissing(ctx, port, block, page.scripts, spent);
    missed.push(...read.missed);
    isUnseen ||= read.isUnseen;
    if (page.before === null) return { missed, isUnseen };
    before = page.before;
  }
}

async function recordMissing(
  ctx: ChainContext,
  port: ChainPort,
  block: KnownBlock,
  known: readonly Buffer[],
  spent: ReturnType<typeof createOutpointSet>,
): Promise<Recorded> {
  const read = await port.readBlock(block.hash, { ...watchOnly(known), hasOutpoint: spent.hasOutpoint });
  const fromOthers = await withoutOwnSends(ctx.db, port.currency, read.touched, block);
  const { facts: touched } = await asRecorded(ctx.db, port.currency, block.hash, fromOthers);
  const outputs = touched.flatMap((facts) => facts.outputs.map((output) => ({ txid: facts.txid, ...output })));
  const missing = await missingPayments(ctx.db, port.currency, { blockHash: block.hash, outputs });
  const txids = new Set(missing.map((one) => one.txid));
  const lost = new Set(missing.filter((one) => one.entry !== null).map((one) => `${one.txid}:${one.vout}`));
  // also what spends the outputs of a payment: a lost double-spend may have gone unnoticed
  await recordAgain(ctx, port, block, {
    ...read,
    touched: touched
      .filter((facts) => txids.has(facts.txid) || facts.spends.length > 0 || facts.unprotectedOutputs !== undefined)
      .map((facts) => ({ ...facts, outputs: facts.outputs.filter(({ vout }) => !lost.has(`${facts.txid}:${vout}`)) })),
  });
  // an output that was there before its transaction was created is no payment that was missed
  const noted = await earlyAmong(ctx.db, port.currency, missing);
  const payments = missing.filter(({ txid, vout }) => !noted.has(`${txid}:${vout}`));
  const missed = payments.map(({ txid, vout, transactionId, entry }) => ({
    outpoint: `${txid}:${vout}`,
    transactionId,
    height: block.height,
    entry,
  }));
  return { missed, isUnseen: read.inner === 'unseen' };
}
