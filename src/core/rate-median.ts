// One trustworthy price out of several exchanges' quotes (behaviour §3, "Exchange rates"). Nothing else judges a price: there is no limit on moves
// and no default, and rather no price than one without a quorum.
import type { CurrencyCode } from './currency.ts';
import type { Rate } from './rate.ts';
import type { RateSample } from './rate-feed.ts';

/** A source that counted: its mid price, and the time of it. */
export type UsedSource = { readonly source: string; readonly usd: Rate; readonly atMs: number };
/** A source that did not count; the poller gives `silent` and `unreachable`, the rules below give the other reasons. */
export type LeftOutSource = {
  readonly source: string;
  readonly reason: 'stale' | 'ahead_of_time' | 'spread' | 'deviation' | 'silent' | 'unreachable';
};
export type Judgement = {
  readonly currency: CurrencyCode;
  /** The median of the used sources; null when fewer than two are left. */
  readonly usd: Rate | null;
  readonly used: readonly UsedSource[];
  readonly leftOut: readonly LeftOutSource[];
};

const QUORUM = 2;
export const OLDEST_MS = 60_000;
export const MOST_SPREAD_PERCENT = 1n;
export const MOST_DEVIATION_PERCENT = 3n;

/**
 * Judges one currency. In this order a source is left out: older than 60 s (or as far ahead of our clock), a spread over 1 % of its mid
 * price (a crossed book counts by its absolute spread), then more than 3 % off the median of those still in. A value exactly at a limit is
 * kept. Of two samples of one source only the newer counts. The price is the median of what is left, to the nearest 10⁻⁸ USD, half up.
 * @param samples quotes of one currency, prices in units of 10⁻⁸ USD, all positive
 * @param nowMs the service's clock
 */
export function judgeRate(currency: CurrencyCode, samples: readonly RateSample[], nowMs: number): Judgement {
  const leftOut: LeftOutSource[] = [];
  const live: RateSample[] = [];
  for (const sample of youngestOfEachSource(samples.filter((one) => one.currency === currency))) {
    const reason = ownFault(sample, nowMs);
    if (reason === null) live.push(sample);
    else leftOut.push({ source: sample.source, reason });
  }
  const middle = medianTimesFour(live);
  const used: RateSample[] = [];
  for (const sample of live) {
    if (distance(2n * doubleMid(sample), middle) * 100n > MOST_DEVIATION_PERCENT * middle) {
      leftOut.push({ source: sample.source, reason: 'deviation' });
    } else used.push(sample);
  }
  return {
    currency,
    usd: used.length < QUORUM ? null : nearest(medianTimesFour(used), 4n),
    used: used.map((sample) => ({ source: sample.source, usd: nearest(doubleMid(sample), 2n), atMs: sample.atMs })),
    leftOut,
  };
}

function ownFault(sample: RateSample, nowMs: number): 'stale' | 'ahead_of_time' | 'spread' | null {
  if (nowMs - sample.atMs > OLDEST_MS) return 'stale';
  if (sample.atMs - nowMs > OLDEST_MS) return 'ahead_of_time';
  return distance(sample.ask, sample.bid) * 200n > MOST_SPREAD_PERCENT * doubleMid(sample) ? 'spread' : null;
}

function youngestOfEachSource(samples: readonly RateSample[]): RateSample[] {
  const bySource = new Map<string, RateSample>();
  for (const sample of samples) {
    const known = bySource.get(sample.source);
    if (known === undefined || sample.atMs > known.atMs) bySource.set(sample.source, sample);
  }
  return [...bySource.values()];
}

/** Twice the mid price, so that nothing is rounded before the end. */
function doubleMid(sample: RateSample): bigint {
  return sample.bid + sample.ask;
}

/** Four times the median of the mid prices; the mean of the middle two when their number is even, 0 for none. */
function medianTimesFour(samples: readonly RateSample[]): bigint {
  const mids = samples.map(doubleMid).sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const upper = mids[Math.floor(mids.length / 2)] ?? 0n;
  const lower = mids[Math.floor((mids.length - 1) / 2)] ?? 0n;
  return lower + upper;
}

function distance(a: bigint, b: bigint): bigint {
  return a > b ? a - b : b - a;
}

/** numerator / divisor to the nearest whole, half up. */
function nearest(numerator: bigint, divisor: bigint): bigint {
  return (2n * numerator + divisor) / (2n * divisor);
}
