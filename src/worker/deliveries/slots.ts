// How much may be under way at once. Endpoints that answer share a pool with those that keep a connection as long as they do, so that no slow one
// stands before a quick one; in each pool something stays free for whoever comes next. Those that have not answered, or were away for long, have
// a pool, and new ones another.
import { MOST_WEBHOOKS } from '../../core/webhooks.ts';
import { CAREFUL, type Pace } from './pace.ts';

/**
 * How long endpoints of a pool keep a connection at most, how many connections it has, and which part of what is free a merchant may have (one of
 * so many). Quick ones may begin to hang, those of many merchants within a few seconds: after twenty of them the next one still finds some, and an
 * endpoint its first, whatever the others of its merchant hold.
 */
const POOLS: readonly { readonly keepsMs: number; readonly most: number; readonly parts: number }[] = [
  { keepsMs: 250, most: 352, parts: 4 },
  { keepsMs: 1_000, most: 96, parts: 1 },
  { keepsMs: 4_000, most: 64, parts: 1 },
  { keepsMs: Number.POSITIVE_INFINITY, most: 64, parts: 1 },
];
const MOST_OF_MERCHANT = 64;
const MOST_SILENT = 120;
/** Of those. */
const MOST_AWAY = 96;
/** Kept for endpoints that nothing is known of, however many of the others hang. */
const MOST_NEW = 48;
/**
 * Half of those may be taken at once. The others are taken one after the other, evenly over the 15 s that one may take that never answers: then
 * one of them ends as often, and whoever comes next does not wait until all of them have ended at the same time.
 */
const NEW_AT_ONCE = 24;
const NEW_EVERY_MS = 15_000 / (MOST_NEW - NEW_AT_ONCE);

/** Which pool is an endpoint's. */
type Kind = Pick<Pace, 'limit' | 'hasAnswered' | 'keepsMs'>;
/** An endpoint and its merchant. */
type Who = { readonly number: bigint; readonly merchantId: bigint };

export type Slots = {
  /** Takes one; returns what gives it back, or null when there is none for this endpoint. */
  take(who: Who, pace: Kind): (() => void) | null;
  /** Whether the pool of this kind has one left. */
  isFree(pace: Kind): boolean;
  poolsOf(pace: Kind): Pools;
  /** How many of them this endpoint may have open as things are now: at least one, and its pace may allow fewer. */
  shareOf(who: Who, pace: Kind): number;
  /** When the merchant took its last one of this kind, as a place among all that were taken; 0 = never. */
  lastTurn(merchantId: bigint, pace: Kind): number;
  /** The same, of those that are kept for endpoints that nothing is known of. @param nowMs of a steady clock */
  takeForNew(merchantId: bigint, nowMs: number): (() => void) | null;
  /** Milliseconds until one of those may be taken again; infinite = when one is given back. */
  forNewInMs(nowMs: number): number;
  /** Whether the merchant has fewer than a merchant may (but for the first of an endpoint that answers). */
  hasRoom(merchantId: bigint): boolean;
};

/** The slots of one worker process, all free. */
export function createSlots(): Slots {
  const [silent, away] = [createPool(MOST_SILENT, 1), createPool(MOST_AWAY, 1)];
  const ofSilent: Pools = { pools: [silent], areShared: false };
  const ofAway: Pools = { pools: [silent, away], areShared: false };
  const answering = POOLS.map(({ keepsMs, most, parts }) => ({
    keepsMs,
    pools: { pools: [createPool(most, parts)], areShared: true },
  }));
  const [ofMerchant, ofEndpoint] = [createCount(), createCount()];
  let taken = 0;
  let forNew = 0;
  let lastForNewMs = Number.NEGATIVE_INFINITY;
  function poolsOf({ limit, hasAnswered, keepsMs }: Kind): Pools {
    if (limit < CAREFUL) return ofAway;
    if (!hasAnswered) return ofSilent;
    // the last one has no bound
    return (answering.find((one) => keepsMs <= one.keepsMs) as (typeof answering)[number]).pools;
  }
  const isFree = (pace: Kind): boolean => poolsOf(pace).pools.every((pool) => pool.free() > 0);
  const hasRoom = (merchantId: bigint): boolean => ofMerchant.of(merchantId) < MOST_OF_MERCHANT;

  /** Whether an endpoint that answers may have one more of a pool. */
  function mayShare(pool: Pool, who: Who): boolean {
    const mine = ofEndpoint.of(who.number);
    if (mine === 0 && pool.keepsFirst()) return true;
    return pool.openOf(who) < pool.shareOf(who) && (mine === 0 || mine < MOST_OF_MERCHANT - ofMerchant.of(who.merchantId));
  }

  function takeOf(merchantId: bigint, giveBack: () => void): () => void {
    ofMerchant.add(merchantId, 1);
    return () => {
      ofMerchant.add(merchantId, -1);
      giveBack();
    };
  }

  function forNewInMs(nowMs: number): number {
    if (forNew < NEW_AT_ONCE) return 0;
    return forNew < MOST_NEW ? Math.max(0, lastForNewMs + NEW_EVERY_MS - nowMs) : Number.POSITIVE_INFINITY;
  }

  return {
    take(who, pace) {
      const { pools, areShared } = poolsOf(pace);
      if (!pools.every((pool) => pool.free() > 0 && (!areShared || mayShare(pool, who)))) return null;
      const isFirst = ofEndpoint.of(who.number) === 0 && pools.every((pool) => pool.keepsFirst());
      if (ofMerchant.of(who.merchantId) >= MOST_OF_MERCHANT + (isFirst ? MOST_WEBHOOKS : 0)) return null;
      const giveBack = takeOf(who.merchantId, () => {
        ofEndpoint.add(who.number, -1);
        for (const pool of pools) pool.add(who, -1);
      });
      ofEndpoint.add(who.number, 1);
      for (const pool of pools) pool.add(who, 1);
      taken++;
      pools.at(-1)?.lastTurns.set(who.merchantId, taken);
      return giveBack;
    },
    isFree,
    poolsOf,
    shareOf(who, pace) {
      const { pools, areShared } = poolsOf(pace);
      return areShared ? Math.max(1, ...pools.map((pool) => pool.shareOf(who))) : Number.POSITIVE_INFINITY;
    },
    lastTurn: (merchantId, pace) => poolsOf(pace).pools.at(-1)?.lastTurns.get(merchantId) ?? 0,
    takeForNew(merchantId, nowMs) {
      if (forNewInMs(nowMs) > 0 || !hasRoom(merchantId)) return null;
      const giveBack = takeOf(merchantId, () => {
        forNew--;
      });
      forNew++;
      lastForNewMs = nowMs;
      return giveBack;
    },
    forNewInMs,
    hasRoom,
  };
}

/** An endpoint takes one of each of these. */
export type Pools = {
  readonly pools: readonly Pool[];
  /** Whether each takes only as many as leaves some to the next. */
  readonly areShared: boolean;
};
type Pool = ReturnType<typeof createPool>;

function createPool(most: number, parts: number) {
  const [ofMerchant, ofEndpoint] = [createCount(), createCount()];
  let open = 0;
  const free = (): number => most - open;
  return {
    /** When each merchant took its last one. */
    lastTurns: new Map<bigint, number>(),
    free,
    /** Whether an endpoint's first is had by whoever asks for it: not of the last part, which merchants share. */
    keepsFirst: (): boolean => parts > 1 && free() > most / (2 * parts),
    openOf: ({ number }: Who): number => ofEndpoint.of(number),
    /** A merchant may have one part of what is free, and an endpoint as many as its merchant still may: so the next one finds some, whoever it is. */
    shareOf: ({ merchantId }: Who): number => Math.ceil(free() / parts) - ofMerchant.of(merchantId),
    add({ number, merchantId }: Who, change: number): void {
      open += change;
      ofMerchant.add(merchantId, change);
      ofEndpoint.add(number, change);
    },
  };
}

/** Counts by number; those at 0 take no memory. */
function createCount() {
  const counts = new Map<bigint, number>();
  const of = (number: bigint): number => counts.get(number) ?? 0;
  return {
    of,
    add(number: bigint, change: number): void {
      const now = of(number) + change;
      if (now === 0) counts.delete(number);
      else counts.set(number, now);
    },
  };
}
