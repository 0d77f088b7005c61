// What a watcher writes about its chain besides facts: the nodes' condition, and up to when the chain was read. It writes at once when
// something is new, when a caller waits for it, and when something falls due; otherwise now and then, as a sign of life.
import type { CurrencyCode } from '../../core/currency.ts';
import { GRACE_MS, WINDOW_MS } from '../../core/judge/times.ts';
import type { NodeCondition } from '../../core/ports.ts';
import { type ChainCursor, goOn, setCaughtUp } from '../../store/chain/blocks.ts';
import { recordCondition } from '../../store/chain/node-conditions.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { ChainContext } from './context.ts';

export type Looked = {
  readonly condition: NodeCondition;
  /** When the pass began. */
  readonly atMs: number;
  /** It is ready, but has fewer blocks than were read from it: the reason. */
  readonly behind?: string | null;
  /** Nobody waits for a write that would contain nothing new. */
  readonly quiet: boolean;
};

export type ChainRecord = {
  /** The next time at which something of this chain is due; null when nothing is. */
  expect(dueAtMs: number | null): void;
  /** Milliseconds until the time last given to `expect`; infinite when there is none. */
  dueInMs(nowMs: number): number;
  /** Nothing waits for what a customer may pay at any moment: nothing falls due for longer than a payment window, as `expect` was told. */
  isUnused(nowMs: number): boolean;
  /** Whether something is due at this time that was not when the chain's time was last written. */
  isDue(atMs: number): boolean;
  /** Writes the nodes' condition unless it is stored already. */
  condition(looked: Looked): Promise<void>;
  /**
   * The chain was read to its end.
   * @returns false when the cursor has moved meanwhile: nothing was written
   */
  readToTheEnd(cursor: ChainCursor, looked: Looked): Promise<boolean>;
  /** Another process may have written. */
  forget(): void;
};

/** Three of them fit into the time after which nobody seems to look (store/chain/node-conditions). */
const SIGN_OF_LIFE_MS = 20_000;
/** Whoever waits for a payment has something that falls due within this time. */
const LONGEST_WINDOW_MS = WINDOW_MS + GRACE_MS;

/** @param isPushed whether the announcements of the node that is read arrive; it is written along, and is no news by itself */
export function createChainRecord(ctx: ChainContext, currency: CurrencyCode, isPushed: () => boolean): ChainRecord {
  /** What was written last, and when. */
  let written: { readonly what: string; readonly atMs: number } | null = null;
  /** When the chain's time was last written, after everything else. */
  let rest: { readonly epoch: bigint; readonly caughtUpAtMs: number } | null = null;
  let dueAtMs: number | null = null;
  let isTold = false;

  const isDue = (atMs: number): boolean => dueAtMs !== null && dueAtMs <= atMs && (rest === null || rest.caughtUpAtMs < dueAtMs);
  /** A clock that was set back counts as one that advanced. */
  const isSilent = (atMs: number): boolean => written === null || Math.abs(atMs - written.atMs) >= SIGN_OF_LIFE_MS;

  function record(sql: Sql, { condition, atMs, behind = null }: Looked): Promise<void> {
    return recordCondition(sql, currency, condition, atMs, { behind, pushes: isPushed() });
  }
  async function condition(looked: Looked): Promise<void> {
    const what = whatOf(looked);
    if (looked.quiet && written?.what === what && !isSilent(looked.atMs)) return;
    rest = null;
    await record(ctx.db, looked);
    written = { what, atMs: looked.atMs };
  }

  return {
    expect(nextMs) {
      dueAtMs = nextMs;
      isTold = true;
    },
    isUnused: (nowMs) => isTold && (dueAtMs === null || dueAtMs - nowMs > LONGEST_WINDOW_MS),
    dueInMs: (nowMs) => (dueAtMs === null || dueAtMs <= nowMs ? Number.POSITIVE_INFINITY : dueAtMs - nowMs),
    isDue,
    condition,
    async readToTheEnd(cursor, looked) {
      const { atMs, quiet } = looked;
      const isNews = rest?.epoch !== cursor.epoch || written?.what !== whatOf({ ...looked, behind: null });
      if (!isNews && quiet && !isDue(atMs) && !isSilent(atMs)) return true;
      if (isNews) {
        const done = await ctx.db.transaction(async (sql) => {
          if (!(await setCaughtUp(sql, currency, cursor, atMs))) return false;
          await record(sql, looked);
          return true;
        });
        if (!done) return false;
        written = { what: whatOf(looked), atMs };
      } else {
        const check = ctx.db.identity.look();
        const { done, relation } = await goOn(ctx.db, currency, cursor, atMs, { wakesJudge: isDue(atMs), pushes: isPushed() });
        check({ same: { 'the table of transactions': relation } });
        if (!done) return false;
        written = { what: written?.what ?? '', atMs };
      }
      rest = { epoch: cursor.epoch, caughtUpAtMs: atMs };
      return true;
    },
    forget() {
      written = null;
      rest = null;
    },
  };
}

/** What is stored of a look, to notice a change. */
function whatOf({ condition, behind = null }: Looked): string {
  return JSON.stringify([essence(condition), behind]);
}

/** The part of a condition that is stored. */
function essence(condition: NodeCondition): unknown {
  if (condition.state !== 'ready') return condition;
  const { mempool: _, peers: __, tipTimeMs: ___, prunedBelow: ____, ...written } = condition;
  return written;
}
