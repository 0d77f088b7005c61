// How many deliveries one endpoint gets at a time, and when it rests: learned from its last answers, so that one that is slow or away holds
// few connections and delays nobody. Kept in memory while something waits for it; whoever meets it then learns it of the attempts that are kept.
import { FAILED_HERE, type OutboundResult } from '../../core/outbound.ts';
import { isAway } from '../../core/webhooks.ts';

/** For an endpoint that nothing is known of, and for one that answers slowly. */
export const CAREFUL = 2;
const MOST = 32;
/** An answer within this time is quick. */
const QUICK_MS = 1_000;
/** An endpoint that was away this many times in a row rests. */
const AWAY_BEFORE_REST = 5;
const FIRST_REST_MS = 5_000;
const LONGEST_REST_MS = 60_000;

export type Pace = {
  /** Deliveries at a time, from 1. */
  readonly limit: number;
  /** On the service's clock; after it one delivery is tried, and the others follow when it arrives. */
  readonly restsUntilMs: number;
  readonly timesAway: number;
  /** False = nothing is known of it. */
  readonly isTried: boolean;
  /** Whether it was there at one of the attempts that are remembered. */
  readonly hasAnswered: boolean;
  /** How long it keeps a connection: what its last attempt took, or half of what this was before, if that is more. Once it has answered. */
  readonly keepsMs: number;
};

export const NEW_PACE: Pace = {
  limit: CAREFUL,
  restsUntilMs: Number.NEGATIVE_INFINITY,
  timesAway: 0,
  isTried: false,
  hasAnswered: false,
  keepsMs: 0,
};

/**
 * The pace after an attempt: twice as many at a time after a quick answer, few after a slow one, and a rest that doubles (5 s to 60 s)
 * after five failures in a row that say that the endpoint is away. What failed here says nothing of it; where that is because turns did not come,
 * there are too many at a time.
 */
export function paceAfter(pace: Pace, result: OutboundResult, nowMs: number): Pace {
  const { tookMs } = result;
  const failedHere = result.kind === 'failed' && result.failure === FAILED_HERE;
  if (failedHere && result.waitedMs === undefined) return pace;
  // whoever answers again is judged by that answer alone
  const keepsMs = pace.hasAnswered ? Math.max(tookMs, pace.keepsMs / 2) : tookMs;
  // more at a time would wait for their turns as well
  if (failedHere) return { ...pace, limit: Math.min(pace.limit, CAREFUL), keepsMs };
  if (!isAway(result)) {
    const limit = tookMs <= QUICK_MS ? Math.min(MOST, Math.max(CAREFUL, pace.limit * 2)) : CAREFUL;
    return { limit, restsUntilMs: Number.NEGATIVE_INFINITY, timesAway: 0, isTried: true, hasAnswered: true, keepsMs };
  }
  // it began before the rest, as up to 32 at a time do, and says nothing new
  if (restMs(pace, nowMs) > 0) return { ...pace, keepsMs };
  const timesAway = pace.timesAway + 1;
  if (timesAway < AWAY_BEFORE_REST) return { ...pace, limit: CAREFUL, timesAway, isTried: true, keepsMs };
  const restsMs = Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** Math.min(timesAway - AWAY_BEFORE_REST, 10));
  return { limit: 1, restsUntilMs: nowMs + restsMs, timesAway, isTried: true, hasAnswered: false, keepsMs };
}

/** How many of its last attempts say what an endpoint is like: as many as make it rest. */
export const LEARNED_OF = AWAY_BEFORE_REST;

export type PastAttempt = {
  readonly atMs: number;
  readonly tookMs: number;
  /** Null = there was no answer. */
  readonly status: number | null;
};

/** The pace of an endpoint after these attempts, the oldest first; {@link NEW_PACE} after none. */
export function paceOf(attempts: readonly PastAttempt[]): Pace {
  return attempts.reduce((pace, { atMs, tookMs, status }) => {
    const known: OutboundResult =
      status === null
        ? { kind: 'failed', failure: 'connection_failed', reason: '', tookMs }
        : { kind: 'answered', status, body: new Uint8Array(), isCut: false, tookMs };
    return paceAfter(pace, known, atMs + tookMs);
  }, NEW_PACE);
}

/** How long it still rests; 0 = not at all. A clock that was set back prolongs no rest. */
export function restMs({ restsUntilMs }: Pace, nowMs: number): number {
  const left = restsUntilMs - nowMs;
  return left > 0 && left <= LONGEST_REST_MS ? left : 0;
}

/**
 * How many of what waits are taken at a time: twice what a quick endpoint gets at once, one for others. There may be thousands of those, and
 * each that is taken is read, and held in memory until its turn: whoever is quick would wait meanwhile.
 * @param share how many connections it may have
 */
export function takenAtOnce({ limit }: Pace, share: number): number {
  return limit > CAREFUL ? 2 * Math.min(limit, share) : 1;
}
