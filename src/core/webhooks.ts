// Webhooks (behaviour §8): when a delivery is repeated, and the port that sends one.
import { isOneOf, type OutboundResult, type Statuses } from './outbound.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** After each failed attempt, how long until the next one; the first attempt is made at once. */
export const RETRY_AFTER_MS: readonly number[] = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];
/** A pause is up to this much longer, by chance, so that what failed together does not come back together. */
const JITTER = 0.1;

/** A receiver that asks for a longer pause (`Retry-After`) gets it, up to this. */
const LONGEST_ASKED_MS = 24 * HOUR_MS;

/**
 * When to try again.
 * @param failures how many attempts have failed, this one included
 * @param chance from 0 to 1
 * @param askedMs the pause that the receiver asks for; a shorter one than the schedule's changes nothing
 * @returns milliseconds since 1970; null = that was the last attempt
 */
export function nextAttempt(failures: number, nowMs: number, chance: number, askedMs = 0): number | null {
  const pause = RETRY_AFTER_MS[failures - 1];
  if (pause === undefined) return null;
  return nowMs + Math.max(Math.round(pause * (1 + JITTER * chance)), Math.min(askedMs, LONGEST_ASKED_MS));
}

/** After each failed attempt, the longest pause that {@link nextAttempt} gives where nobody asks for a longer one; milliseconds. */
export const LONGEST_PAUSES_MS: readonly number[] = RETRY_AFTER_MS.map((pause) => Math.round(pause * (1 + JITTER)));

/** A receiver that answers this wants nothing more, ever. */
export const GONE = 410;
const FULL_OR_AWAY: ReadonlySet<number> = new Set([429, 502, 503, 504]);

const TAKEN: Statuses = { first: 200, last: 299 };

/** Whether the receiver has taken the event: any 2xx. */
export const isDelivered = (result: OutboundResult): boolean => result.kind === 'answered' && isOneOf([TAKEN], result.status);

/** What decides a delivery, whatever becomes of the answer's body. */
export const SAYS_ALL: readonly Statuses[] = [TAKEN, { first: GONE, last: GONE }];

/** Whether the receiver is away or has too much to do; any other refusal concerns this one event. */
export const isAway = (result: OutboundResult): boolean => result.kind === 'failed' || FULL_OR_AWAY.has(result.status);

/** How long a secret signs along after it was replaced. */
export const FORMER_SECRET_MS = 24 * HOUR_MS;
/** How long an attempt to deliver an event is kept. */
export const ATTEMPTS_KEPT_MS = 30 * 24 * HOUR_MS;
/** A merchant's most endpoints. */
export const MOST_WEBHOOKS = 16;
export const SECRET_BYTES = 32;

export type WebhookRequest = {
  /** The endpoint's identifier: no other one's calls share its connections. */
  readonly webhook: string;
  /** Null = the operator's own. */
  readonly merchantId: bigint | null;
  readonly url: string;
  /** The event's identifier: the same with every attempt. */
  readonly id: string;
  readonly body: string;
  /** `whsec_…`: all of them sign. */
  readonly secrets: readonly string[];
  readonly signal: AbortSignal;
};

/** Sends a webhook, signed as Standard Webhooks 1.0.0 says. It never throws. */
export type WebhookSender = (request: WebhookRequest) => Promise<OutboundResult>;
