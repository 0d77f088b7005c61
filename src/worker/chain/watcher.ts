// Watches one chain through our own node: reads each block from the cursor to the tip, handles reorganisations, then the mempool, and records facts;
// it decides nothing. Any number of workers may run one: a session lock elects which one works, the cursor's epoch protects the data.
import type { CurrencyCode } from '../../core/currency.ts';
import type { NodeCondition } from '../../core/ports.ts';
import { type ChainCursor, CursorMoved, claimCursor, readCursor } from '../../store/chain/blocks.ts';
import { FAR_BEHIND } from '../../store/chain/node-conditions.ts';
import { DatabaseReplaced } from '../../store/postgres/database-identity.ts';
import { beginChain } from './block-follower.ts';
import { type ChainContext, portOf } from './context.ts';
import { createProofLook, lookAtLocks } from './lock-watcher.ts';
import type { MempoolReading } from './mempool-reader.ts';
import { createMempoolWatcher, type Looked, type LookOptions } from './mempool-watcher.ts';
import { createSubscription } from './node-pushes.ts';
import { createNodeQueryRotation } from './node-query-rotation.ts';
import { createOwnClock } from './own-clock.ts';
import { alarmsOf, behindReason, isContested, type PassResult, passResult, STANDBY, troubleOf } from './pass-result.ts';
import { createChainRecord } from './record.ts';
import type { Followed } from './reorganisation.ts';
import { createUnconfirmedBlocks } from './unconfirmed-blocks.ts';
import { createUnreadableBlocks } from './unreadable-blocks.ts';
import { createWatchList, type WatchedScripts } from './watch-list.ts';

export type ChainWatcherOptions = {
  /** The scripts of this process, shared by its watchers. */
  readonly scripts: WatchedScripts;
  /** Blocks read in one pass at most (default 200). */
  readonly blocksPerPass?: number;
  /** How much of a mempool is read in one pass. */
  readonly mempoolReading?: MempoolReading;
};

export type PassOptions = {
  /** Nobody waits: a write without news happens only now and then, as a sign of life. */
  readonly quiet?: boolean;
};

export type ChainWatcher = {
  /** One pass. Trouble with the node is recorded and returned in the result; trouble with the database throws. */
  pass(options?: PassOptions): Promise<PassResult>;
  /**
   * The next time at which something of this chain is due: the chain's time is written then, however quiet the passes are; null = nothing
   * is due.
   */
  expect(dueAtMs: number | null): void;
  /**
   * How many milliseconds until the next pass is useful, if no hint comes before.
   * @param chance from 0 to 1: spreads watchers that were hurried together
   */
  restMs(chance?: number): number;
  /** Sets the callback for when a pass is useful at once. */
  onHint(callback: () => void): void;
  /** The newest number of the database when this transaction was first read in the mempool; null when this watcher did not see it there. */
  firstSeen(txid: string): number | null;
  close(): Promise<void>;
};

const BLOCKS_PER_PASS = 200;
/** How often a standby watcher checks whether it must take over. */
const STANDBY_MS = 1_000;
/** How often a node is asked; less often when it announces news by ZMQ and the announcements arrive, or while nobody can pay anything. */
const POLL_MS = 500;
const RESTED_MS = 2_000;
const LEAST_REST_MS = 20;
const SPREAD = 0.1;
/** In a pass longer than this, several nodes are compared again before the next block. */
const COMPARED_MS = 1_000;
type Ready = Extract<NodeCondition, { state: 'ready' }>;

/** @throws when no node is configured for the currency */
export function createChainWatcher(ctx: ChainContext, currency: CurrencyCode, settings: ChainWatcherOptions): ChainWatcher {
  const { port, askAgain } = createUnreadableBlocks(portOf(ctx, currency));
  const { clock } = ctx.ports;
  const lock = ctx.db.sessionLock(`chain-watcher ${currency}`);
  const ownClock = createOwnClock(ctx, currency, beginAnew);
  const watch = createWatchList(ctx, currency, settings.scripts);
  const unconfirmed = createUnconfirmedBlocks(ctx, port, watch);
  /** The cursor as the last pass left it, and up to when it has read; null = another watcher may have changed it since. */
  let held: ChainCursor | null = null;
  /** There are payments for which the node must be asked for more than their place (locks, double-spend proofs). */
  let isOpen = true;
  const lockedInTurn = createNodeQueryRotation();
  const lookAtProofs = createProofLook(ctx, port);
  let triesAgainMs = 0;
  let generation = ctx.db.identity.generation;
  /** The last pass was complete. */
  let isAtRest = false;
  const hints: (() => void)[] = [];
  const hint = () => {
    for (const callback of hints) callback();
  };
  const pushes = createSubscription(port);
  const written = createChainRecord(ctx, currency, pushes.isLive);
  const mempool = createMempoolWatcher(ctx, port, watch, {
    isPushed: pushes.isLive,
    onHit: hint,
    reading: settings.mempoolReading,
  });

  async function read(condition: Ready, pass: Pass): Promise<PassDone> {
    await pushes.open(condition.node ?? null, {
      onHint: () => {
        mempool.lookAtAll();
        hint();
      },
      onTransactions: mempool.take,
    });
    const before = held ?? (await takeCursor(condition, pass));
    held = null;
    const options = {
      cursor: before,
      tip: condition,
      atMs: pass.atMs,
      limit: settings.blocksPerPass ?? BLOCKS_PER_PASS,
      isSure: pass.isSure,
      firstSeen: mempool.firstSeen,
    };
    const followed = await unconfirmed.follow(options);
    const { cursor } = followed;
    const moved = cursor.hash !== before.hash;
    if (moved) mempool.lookAtAll();
    if (!pass.quiet || written.isDue(pass.atMs)) mempool.listNext();
    const isOfTip = !moved && condition.hash === cursor.hash && condition.node === pass.node;
    const listed = isOfTip ? (condition.mempool ?? null) : null;
    const looked = await lookAtMempool(followed, { atMs: pass.atMs, listed });
    const changed = moved || looked.wrote;
    const proofs = followed.atTip && (isOpen || changed) ? await lookAtOpen(cursor) : [];
    held = looked.state === 'complete' ? { ...cursor, caughtUpAtMs: pass.atMs } : cursor;
    const { blocksRead, behind = false, notices = [] } = followed;
    return {
      complete: looked.state === 'complete' ? cursor : null,
      changed,
      result: passResult(condition, {
        height: cursor.height,
        blocksRead,
        more: followed.more || looked.state === 'more',
        behind,
        alarms: [
          ...alarmsOf(unconfirmed.told(condition)),
          ...(behind ? [behindReason(condition, cursor)] : []),
          ...proofs,
          ...mempool.alarms(),
          ...notices,
        ],
      }),
    };
  }

  /** The cursor from the database, claimed from whoever wrote it. */
  async function takeCursor(condition: Ready, { atMs, quiet }: Pass): Promise<ChainCursor> {
    const known = (await readCursor(ctx.db, currency)) ?? (await beginChain(ctx, port, condition, atMs));
    // a chain that is far behind is reported from the first block on, not only after the pass
    if (condition.height - known.height > FAR_BEHIND) await written.condition({ condition, atMs, quiet });
    mempool.lookAtAll();
    return claimCursor(ctx.db, currency, known);
  }

  async function lookAtOpen(cursor: ChainCursor): Promise<string[]> {
    const hasLocks = await lookAtLocks(ctx, port, cursor, lockedInTurn);
    const { waiting, alarms } = await lookAtProofs();
    isOpen = hasLocks || waiting;
    return alarms;
  }

  async function lookAtMempool({ cursor, atTip, behind = false }: Followed, how: LookOptions): Promise<Looked> {
    if (behind) return { state: (await mempool.lookBehind(cursor)) ? 'more' : 'incomplete', wrote: true };
    return atTip ? mempool.look(cursor, how) : { state: 'incomplete', wrote: false };
  }

  /**
   * The node's condition now; a contradiction among several nodes is recorded before anything is read, because every block that is written
   * wakes the judge.
   */
  async function ask(atMs: number, withMempool: boolean): Promise<NodeCondition> {
    const condition = await port.condition({ mempool: withMempool });
    if (isContested(condition)) await written.condition({ condition, atMs, quiet: true });
    return condition;
  }

  async function readOrTrouble(first: NodeCondition, { atMs, quiet, node }: Omit<Pass, 'isSure'>): Promise<Asked & PassDone> {
    let condition = first;
    let askedMs = performance.now();
    async function isSure(): Promise<boolean> {
      if (condition.state !== 'ready') return false;
      if (condition.agreement === undefined || performance.now() - askedMs < COMPARED_MS) return true;
      condition = await ask(atMs, false);
      askedMs = performance.now();
      return condition.state === 'ready';
    }
    const nothing = { complete: null, changed: false };
    if (condition.state !== 'ready') return { ...nothing, condition, result: passResult(condition, {}) };
    try {
      const done = await read(condition, { atMs, quiet, node, isSure });
      return { ...done, condition };
    } catch (error) {
      held = null;
      isOpen = true;
      mempool.lookAtAll(); // a pushed transaction may not have been recorded
      if (error instanceof CursorMoved || error instanceof DatabaseReplaced)
        return { ...nothing, condition, result: passResult(condition, { more: true }) };
      const trouble = troubleOf(error);
      if (trouble === null) throw error;
      return { ...nothing, condition: trouble, result: passResult(trouble, {}) };
    }
  }

  /** All that was derived from a database that was replaced. */
  function forgetIfReplaced(): void {
    if (generation === ctx.db.identity.generation) return;
    generation = ctx.db.identity.generation;
    isOpen = true;
    ownClock.forget();
    beginAnew();
  }

  /** The last state that was read and written may no longer be valid. */
  function beginAnew(): void {
    held = null;
    written.forget();
  }

  async function isElected(quiet: boolean): Promise<boolean> {
    if (await lock.acquire()) return true;
    // when a frozen watcher wakes up, the cursor's epoch keeps what it does out of the books
    await lock.terminateStaleHolder();
    await pushes.close();
    ownClock.forget();
    beginAnew();
    if (quiet) triesAgainMs = performance.now() + STANDBY_MS;
    return false;
  }

  let node: string | undefined;
  return {
    async pass({ quiet = false } = {}) {
      if (quiet && performance.now() < triesAgainMs) return STANDBY;
      if (!(await isElected(quiet))) return STANDBY;
      forgetIfReplaced();
      isAtRest = false;
      // a caller waits for what the node holds now, and nothing announces what a mempool drops
      if (!quiet) {
        askAgain();
        mempool.lookAtAll();
      }
      const atMs = await ownClock.look();
      const first = await ask(atMs, held !== null && mempool.wantsShortList());
      const done = await readOrTrouble(first, { atMs, quiet, node });
      node = done.condition.state === 'ready' ? done.condition.node : undefined;
      // when its session was lost meanwhile, another watcher has taken over: this one's result is outdated
      if (!(await lock.acquire())) return done.result;
      if (generation !== ctx.db.identity.generation) return { ...done.result, more: true };
      const { behind, height } = done.result;
      const looked = {
        condition: unconfirmed.told(done.condition),
        atMs,
        behind: behind ? behindReason(done.condition, { height }) : null,
        quiet: quiet && !done.changed,
      };
      if (done.complete === null) {
        await written.condition(looked);
        return done.result;
      }
      const caughtUp = await written.readToTheEnd(done.complete, looked);
      isAtRest = caughtUp;
      if (!caughtUp) held = null;
      return { ...done.result, caughtUp };
    },
    expect: written.expect,
    restMs(chance = 0) {
      const nowMs = clock.now();
      const everyMs = isAtRest && !isOpen && (pushes.isLive() || written.isUnused(nowMs)) ? RESTED_MS : POLL_MS;
      const dueInMs = written.dueInMs(nowMs) + 1;
      return Math.max(LEAST_REST_MS, Math.min(everyMs * (1 - SPREAD * chance), dueInMs));
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

/** One pass as its parts see it. */
type Pass = {
  readonly atMs: number;
  readonly quiet: boolean;
  /** Which of several nodes was read in the pass before. */
  readonly node: string | undefined;
  readonly isSure: () => Promise<boolean>;
};
type PassDone = {
  /** The cursor, when all that the node knew at the pass's beginning has been recorded. */
  readonly complete: ChainCursor | null;
  /** Something about the chain was written. */
  readonly changed: boolean;
  readonly result: PassResult;
};
type Asked = { readonly condition: NodeCondition };
