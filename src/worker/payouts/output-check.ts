// Compares the outputs that the database believes unspent with the chain, before anything is signed after a start. A database and a signer that
// were put back together have both forgotten what they paid since: only the chain still shows it. It looks for outputs that something
// unknown spends, for outputs at addresses of ours that were never given out (change of a forgotten transaction), and for payments of payouts
// that nothing was signed for. While another node has one of these and the node that is read has not, payouts wait.
import type { BlockRef } from '../../core/block-ref.ts';
import { finalDepth } from '../../core/confirmations.ts';
import { chainRow, type UtxoCode } from '../../core/currency.ts';
import type { Context } from '../../flow/context.ts';
import { recordUnknown } from '../../flow/payouts/after-restore/unknown-movements.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import { spendingKey } from '../../store/chain/xpubs.ts';
import { checkedHeight, dropChecked, saveChecked } from '../../store/payouts/comparisons.ts';
import { savePayoutsWait } from '../../store/payouts/fee-rates.ts';
import { blocksAbove, closeReplaced, openMovements } from '../../store/payouts/unknown-movements.ts';
import { payingPortOf } from '../chain/context.ts';
import { atTip, reachable, troubleOf } from '../chain/pass-result.ts';
import { aheadOf, type OtherNode, otherNodes, spentAt } from './other-nodes.ts';
import { type Found, inMempool, judge, type Wanted, wantedOf } from './output-evidence.ts';
import type { Unstored } from './unstored.ts';

/** How old a copy may be of which all blocks since are read again, two weeks; of what was before them only the outputs tell. */
const READ_AGAIN_SECONDS = 1_209_600;
/** Blocks below the last comparison that are read again: a reorganisation may have replaced them. */
const MARGIN = 10;
/** After this time the driver goes on with what was signed; the blocks that are left are read at its next pass. */
const READS_WITHIN_MS = 2_000;
/** How often outputs are compared again while payouts are made, and while something is not explained. */
const AGAIN_MS = 600_000;
/** … and at rest: what is compared after the next start is what came since. */
export const AT_REST_MS = 6 * 3_600_000;
const UNRESOLVED_AGAIN_MS = 15_000;
const NOTHING_UNSTORED: Pick<Unstored, 'noteShown' | 'writeRest'> = { noteShown: () => false, writeRest: async () => true };

export type OutputCheck = {
  /** Whether everything that left was known since the start, or since something was forgotten. */
  hasPassed(): boolean;
  /** Whether that is so long ago that it is compared again at rest too. */
  isOld(): boolean;
  /**
   * What must be known before anything new is signed; null = everything that left is known.
   * @param anew something was to be signed before, and waits for its signature: what was compared then says nothing of now
   */
  trouble(anew: boolean): Promise<Trouble | null>;
  /** What was compared may be wrong now: the database was replaced, or the signer has forgotten something. */
  forget(): void;
};

/**
 * `isFound`: something has left that nobody here knows; otherwise the look itself must wait. `isShort`: for a moment, because a block has come since the last
 * one.
 */
export type Trouble = { readonly what: string; readonly isFound: boolean; readonly isShort?: boolean };

/** The comparison for one currency of Bitcoin's family; nothing has passed when it is made. */
export function createOutputCheck(
  ctx: Context,
  currency: UtxoCode,
  unstored: Pick<Unstored, 'noteShown' | 'writeRest'> = NOTHING_UNSTORED,
): OutputCheck {
  const port = payingPortOf(ctx, currency);
  let passedAtMs: number | null = null;
  /** The newest block then. */
  let passedAt: string | null = null;
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  /** Whether the mempool was compared since the start: later every transaction of ours is known before it is sent. */
  let isFirst = true;
  /** What only another node had at the last look, one sentence. */
  let unseen: string | null = null;
  /** What the blocks up to this height have shown already. */
  let read: { height: number; readonly found: Found[] } | null = null;

  /** Whether what was compared still says everything: a block that has come since may show something else that left. */
  async function isFresh(anew: boolean): Promise<boolean> {
    if (passedAtMs === null || performance.now() - passedAtMs >= (anew ? UNRESOLVED_AGAIN_MS : AGAIN_MS)) return false;
    return (await readCursor(ctx.db, currency))?.hash === passedAt;
  }

  async function trouble(anew: boolean): Promise<Trouble | null> {
    if (await isFresh(anew)) return null;
    const isShort = passedAtMs !== null && performance.now() - passedAtMs < AGAIN_MS;
    const open = await unresolved();
    // at rest it is compared too until that is over, by itself or because it was booked
    if (open !== null) passedAtMs = null;
    if (performance.now() - lookedAtMs < UNRESOLVED_AGAIN_MS) {
      if (open !== null) return open;
      if (unseen !== null) return { what: unseen, isFound: false };
    }
    try {
      const wait = await look();
      await savePayoutsWait(ctx.db, currency, unseen);
      if (wait !== null) return open ?? { what: wait, isFound: false, isShort };
    } catch (error) {
      const said = troubleOf(error);
      if (said === null) throw error;
      return open ?? { what: `our outputs cannot be compared with the chain: ${said.reason}`, isFound: false };
    }
    lookedAtMs = performance.now();
    const still = await unresolved();
    passedAtMs = still === null ? lookedAtMs : null;
    return still;
  }

  async function unresolved(): Promise<Trouble | null> {
    const open = (await openMovements(ctx.db)).filter((one) => one.currency === currency);
    if (open.length === 0) return null;
    return { what: `${open.map(({ finding }) => finding).join('; ')} (bursar payout recover)`, isFound: true };
  }

  /** @returns why the look must wait; null = it was made */
  async function look(): Promise<string | null> {
    const { generation } = ctx.db.identity;
    unseen = null;
    const key = await spendingKey(ctx.db, currency);
    if (key === null) return rest();
    const cursor = await readCursor(ctx.db, currency);
    const begun = cursor === null ? null : await atTip(port, cursor);
    if (cursor === null || begun === null) return 'our outputs are compared when the chain was read to its end';
    const wanted = await wantedOf(ctx, key);
    if (wanted.outputs.length === 0 && wanted.payouts.length === 0) {
      await endReplaced(cursor);
      return saved(generation, cursor);
    }
    const others = await otherNodes(port);
    unseen = await aheadOf(others, cursor);
    if (unseen !== null) return unseen;
    const spent = await port.spentOf(wanted.outputs);
    const before = await checkedHeight(ctx.db, currency);
    const most = Math.ceil(READ_AGAIN_SECONDS / chainRow(currency).blockSeconds);
    read ??= { height: Math.max((before ?? cursor.height) - MARGIN, cursor.height - most), found: [] };
    const began = performance.now();
    for (const block of await blocksAbove(ctx.db, currency, read.height)) {
      if (performance.now() - began > READS_WITHIN_MS)
        return `our outputs are compared with the chain: block ${read.height} of ${cursor.height}`;
      const { touched } = await port.readBlock(block.hash, wanted.watch);
      read.found.push(...touched.map((facts) => ({ facts, blockHash: block.hash })));
      read.height = block.height;
    }
    const found = [...read.found];
    if (isFirst || spent.length > 0) found.push(...(await inMempool(port, wanted.watch)));
    const ended = await atTip(port, cursor);
    // another node may be read by now
    if (ended === null || ended.node !== begun.node) return 'our outputs are compared when the chain rests';
    // blocks that a reorganisation may remove are read again
    read = null;
    if (unstored.noteShown(found.map(({ facts }) => facts.txid))) return 'what was signed and has left is written back first';
    const unknown = await judge(ctx, { currency, wanted, spent, found });
    await recordUnknown(ctx, currency, unknown);
    await endReplaced(cursor);
    if (unknown.movements.length > 0) return null;
    unseen = await shownByOthers(
      others.map(({ node }) => node),
      wanted,
    );
    if (unseen !== null) {
      lookedAtMs = performance.now();
      passedAtMs = null;
      await dropChecked(ctx.db, currency);
      return unseen;
    }
    // what one of them took into a block meanwhile was in neither answer
    unseen = await aheadOf(await otherNodes(port), cursor);
    if (unseen !== null) return unseen;
    isFirst = false;
    return saved(generation, cursor);
  }

  /** What can be mined no more waits for nobody, also where all our outputs are spent. */
  async function endReplaced({ height }: BlockRef): Promise<void> {
    const finalHeight = height - finalDepth(currency).depth + 1;
    await closeReplaced(ctx.db, currency, { finalHeight, atMs: ctx.ports.clock.now() });
  }

  /**
   * What one of the other nodes has and the one that is read has not: it is not recorded before a block shows it, and may be gone until then.
   * Who pays the destination of a payout himself holds up that payout only, as at the node that is read.
   */
  async function shownByOthers(others: readonly OtherNode[], wanted: Wanted): Promise<string | null> {
    for (const node of others) {
      const spent = await spentAt(ctx, node, { read: port, outputs: wanted.outputs });
      if (spent === null) continue;
      const found = isFirst || spent.length > 0 ? await reachable(() => inMempool(node, wanted.watch)) : null;
      const { movements, payoutIds } = await judge(ctx, { currency, wanted, spent, found: found ?? [] });
      if (movements.length > 0) {
        const what = movements.map(({ finding }) => finding).join('; ');
        return `${node.name} has what the node that is read has not, and nobody here has signed: ${what}; what is paid waits until a block that was read shows it, or no node has it (one that is wrong: take it out of BURSAR_${currency}_RPC_URL)`;
      }
      if (payoutIds.length > 0) await recordUnknown(ctx, currency, { movements, payoutIds });
    }
    return null;
  }

  /**
   * What was compared says nothing of another copy that has taken the database's place: that has its signatures written back first. What waited for the
   * comparison is written back before anybody may cancel what it pays.
   */
  async function saved(generation: number, { height, hash }: BlockRef): Promise<string | null> {
    if (generation !== ctx.db.identity.generation) return 'our outputs are compared with the database that is there now';
    const wait = await rest();
    if (wait !== null) return wait;
    await saveChecked(ctx.db, currency, height);
    passedAt = hash;
    return null;
  }

  const rest = async (): Promise<string | null> =>
    (await unstored.writeRest()) ? null : 'what the signer has signed and nobody here has stored is written back first';

  return {
    trouble,
    hasPassed: () => passedAtMs !== null,
    isOld: () => passedAtMs !== null && performance.now() - passedAtMs >= AT_REST_MS,
    forget() {
      passedAtMs = null;
      unseen = null;
      read = null;
      isFirst = true;
    },
  };
}
