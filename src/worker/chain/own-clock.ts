// Distinguishes time that passed from a clock that was set. What a transaction waits for is dated on our own clock, and that clock may be
// set back (it was fast), and forward again (it was not): neither may bring a payer's window nearer, nor make a payment look gone for
// longer. A watcher checks the clock before each pass, and shifts the dates of what waits on its chain.
import type { PaymentMethod } from '../../core/currency.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import { moveWaitingTimes } from '../../store/chain/clock-settings.ts';
import type { ChainContext } from './context.ts';

export type OwnClock = {
  /** The time now; once it resolves, the dates of what waits are on the same clock. */
  look(): Promise<number>;
  /** Another process watches the chain now, and checks its own clock. */
  forget(): void;
};

/** A smaller difference is no setting: the clocks are read one after the other, and are corrected a little all the time. */
const LEAST_MS = 2_000;

type Look = { readonly nowMs: number; readonly steadyMs: number };
type Setting = { readonly byMs: number; readonly sinceMs: number | null };

/**
 * The clock of one chain's watcher; to be used only while this process watches the chain.
 * @param onSet called when dates were shifted: remembered times of the chain are outdated
 */
export function createOwnClock(ctx: ChainContext, currency: PaymentMethod, onSet: () => void = () => undefined): OwnClock {
  const { clock } = ctx.ports;
  let last: Look | null = null;
  /** How far it was set back and not forward again. A larger jump forward cannot be distinguished from time that passed unobserved. */
  let backMs = 0;

  function seen(before: Look, now: Look): Setting {
    const passedMs = now.steadyMs - before.steadyMs;
    const aheadMs = Math.min(now.nowMs - before.nowMs - passedMs, backMs);
    const byMs = Math.abs(aheadMs) < LEAST_MS ? 0 : aheadMs;
    backMs -= byMs;
    return { byMs, sinceMs: now.nowMs - passedMs };
  }

  /** Nobody has checked before: a chain whose last complete reading is dated in the future was read before the clock was set back. */
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
        await ctx.db.transaction((sql) => moveWaitingTimes(sql, currency, { byMs, nowMs, sinceMs }));
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
