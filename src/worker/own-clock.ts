// Tells time that passed from a clock that was set. What a transaction waits for is dated on our own clock, and that clock may be set back (it
// was fast), and forward again (it was not): neither brings a payer's window nearer, nor makes a payment look gone for longer. A watcher
// looks at it before each pass, and sets what waits on its chain along. Used by chain-watcher.ts.
import type { UtxoCode } from '../core/currency.ts';
import { readCursor } from '../store/chain/blocks.ts';
import { setAlong } from '../store/chain/set-along.ts';
import type { ChainContext } from './chain-context.ts';

export type OwnClock = {
  /** The time now; what waits for times of the chain is on the same clock when it is answered. */
  look(): Promise<number>;
  /** Another process watches the chain, and looks at its own clock. */
  forget(): void;
};

/** Less than this is no setting: clocks are read one after the other, and corrected a little all the time. */
const LEAST_MS = 2_000;

type Look = { readonly nowMs: number; readonly steadyMs: number };
type Setting = { readonly byMs: number; readonly sinceMs: number | null };

/**
 * The own clock of one chain's watcher; to be looked at only while this process watches the chain.
 * @param onSet told when what waits was set along: what is remembered of its times is old
 */
export function createOwnClock(ctx: ChainContext, currency: UtxoCode, onSet: () => void = () => undefined): OwnClock {
  const { clock } = ctx.ports;
  let last: Look | null = null;
  /** How far it was set back and not forward again. Further forward it is not known from time that passed while nobody looked. */
  let backMs = 0;

  function seen(before: Look, now: Look): Setting {
    const passedMs = now.steadyMs - before.steadyMs;
    const aheadMs = Math.min(now.nowMs - before.nowMs - passedMs, backMs);
    const byMs = Math.abs(aheadMs) < LEAST_MS ? 0 : aheadMs;
    backMs -= byMs;
    return { byMs, sinceMs: now.nowMs - passedMs };
  }

  /** Nobody has looked before: a chain that was read to its end in time to come was read before the clock was set back. */
  async function unseen(nowMs: number): Promise<Setting> {
    const readMs = (await readCursor(ctx.db, currency))?.caughtUpAtMs ?? nowMs;
    return { byMs: readMs - nowMs < LEAST_MS ? 0 : nowMs - readMs, sinceMs: null };
  }

  return {
    async look() {
      const nowMs = clock.now();
      const now = clock.steady === undefined ? null : { nowMs, steadyMs: clock.steady() };
      const isSeen = last !== null && now !== null && now.steadyMs >= last.steadyMs;
      const { byMs, sinceMs } = isSeen ? seen(last as Look, now as Look) : await unseen(nowMs);
      if (byMs !== 0) {
        await ctx.db.transaction((sql) => setAlong(sql, currency, { byMs, nowMs, sinceMs }));
        onSet();
      }
      last = now;
      return nowMs;
    },
    forget() {
      last = null;
      backMs = 0;
    },
  };
}
