// How much may be under way at once: in all, to the endpoints of one merchant, to endpoints that are new, slow or away, to those that have not
// answered, to those that were away for long, and to new ones alone, so that however many of those there are, the others have connections.
import { CAREFUL, type Pace } from './pace.ts';

/** Beside those that are kept for new endpoints. */
const MOST = 208;
const MOST_OF_MERCHANT = 64;
const MOST_CAREFUL = 144;
/** Of those: the others are for endpoints that are slow, or failed once and are there again, however many have never answered. */
const MOST_SILENT = 120;
const MOST_AWAY = 96;
/** Kept for endpoints that nothing is known of, however many of the others hang. */
const MOST_NEW = 48;
/**
 * Half of those may be taken at once. The others are taken one after the other, evenly over the 15 s that one may take that never answers: then
 * one of them ends as often, and whoever comes next does not wait until all of them have ended at the same time.
 */
const NEW_AT_ONCE = 24;
const NEW_EVERY_MS = 15_000 / (MOST_NEW - NEW_AT_ONCE);

/** Which bounds hold for an endpoint. */
type Kind = Pick<Pace, 'limit' | 'hasAnswered'>;

export type Slots = {
  /** Takes one; returns what gives it back, or null when there is none. */
  take(merchantId: bigint, pace: Kind): (() => void) | null;
  /** Whether there is one of this kind, for a merchant that has room. */
  isFree(pace: Kind): boolean;
  /** When the merchant took its last one of this kind, as a place among all that were taken; 0 = never. */
  lastTurn(merchantId: bigint, pace: Kind): number;
  /** The same, of those that are kept for endpoints that nothing is known of. @param nowMs of a steady clock */
  takeForNew(merchantId: bigint, nowMs: number): (() => void) | null;
  /** Milliseconds until one of those may be taken again; infinite = when one is given back. */
  forNewInMs(nowMs: number): number;
  /** Whether the merchant has fewer than a merchant may. */
  hasRoom(merchantId: bigint): boolean;
};

type Bound = {
  open: number;
  readonly most: number;
  /** Of those for whom it is the narrowest: when each merchant took one last. */
  readonly lastTurns: Map<bigint, number>;
};
const bound = (most: number): Bound => ({ open: 0, most, lastTurns: new Map() });

/** The slots of one worker process, all free. */
export function createSlots(): Slots {
  const [all, careful, silent, away] = [bound(MOST), bound(MOST_CAREFUL), bound(MOST_SILENT), bound(MOST_AWAY)];
  const [ofQuick, ofSlow, ofSilent, ofAway] = [[all], [all, careful], [all, careful, silent], [all, careful, silent, away]];
  let taken = 0;
  let forNew = 0;
  let lastForNewMs = Number.NEGATIVE_INFINITY;
  const ofMerchant = new Map<bigint, number>();
  function boundsOf({ limit, hasAnswered }: Kind): readonly Bound[] {
    if (limit > CAREFUL) return ofQuick;
    if (limit < CAREFUL) return ofAway;
    return hasAnswered ? ofSlow : ofSilent;
  }

  function isFree(pace: Kind): boolean {
    for (const { open, most } of boundsOf(pace)) if (open >= most) return false;
    return true;
  }
  const openOf = (merchantId: bigint): number => ofMerchant.get(merchantId) ?? 0;
  const hasRoom = (merchantId: bigint): boolean => openOf(merchantId) < MOST_OF_MERCHANT;

  function takeOf(merchantId: bigint, giveBack: () => void): (() => void) | null {
    if (!hasRoom(merchantId)) return null;
    ofMerchant.set(merchantId, openOf(merchantId) + 1);
    return () => {
      const left = openOf(merchantId) - 1;
      if (left === 0) ofMerchant.delete(merchantId);
      else ofMerchant.set(merchantId, left);
      giveBack();
    };
  }

  function forNewInMs(nowMs: number): number {
    if (forNew < NEW_AT_ONCE) return 0;
    return forNew < MOST_NEW ? Math.max(0, lastForNewMs + NEW_EVERY_MS - nowMs) : Number.POSITIVE_INFINITY;
  }

  return {
    take(merchantId, pace) {
      if (!isFree(pace)) return null;
      const bounds = boundsOf(pace);
      const giveBack = takeOf(merchantId, () => {
        for (const one of bounds) one.open--;
      });
      if (giveBack === null) return null;
      for (const one of bounds) one.open++;
      taken++;
      bounds.at(-1)?.lastTurns.set(merchantId, taken);
      return giveBack;
    },
    isFree,
    lastTurn: (merchantId, pace) => boundsOf(pace).at(-1)?.lastTurns.get(merchantId) ?? 0,
    takeForNew(merchantId, nowMs) {
      if (forNewInMs(nowMs) > 0) return null;
      const giveBack = takeOf(merchantId, () => {
        forNew--;
      });
      if (giveBack === null) return null;
      forNew++;
      lastForNewMs = nowMs;
      return giveBack;
    },
    forNewInMs,
    hasRoom,
  };
}
