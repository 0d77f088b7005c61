// Asks all price feeds and stores what they come to. Called by the loop every few seconds, and by the sandbox when prices or the clock have moved.
import { CURRENCY_CODES, type CurrencyCode } from '../core/currency.ts';
import type { RateFeed, RateSample } from '../core/ports.ts';
import { type Judgement, judgeRate, type LeftOutSource } from '../core/rate-median.ts';
import type { Context } from '../flow/context.ts';
import { pruneRateHistory, saveRates } from '../store/rates.ts';

/**
 * One reading: every feed at once, each with its own time-out, judged per currency (behaviour §3) and written. A feed that fails is left out of
 * the judgement and hurts nothing else; only trouble with the database throws. May run any number of times at once.
 */
export async function pollRates(ctx: Context): Promise<void> {
  // the price is dated before the question: of two readings that overlap, the one that asked later wins
  const atMs = ctx.ports.clock.now();
  const answers = await Promise.allSettled(ctx.ports.rateFeeds.map((feed) => feed.read()));
  const nowMs = ctx.ports.clock.now();
  const judgements = CURRENCY_CODES.map((currency) => judged(currency, ctx.ports.rateFeeds, answers, nowMs));
  const { newHour } = await saveRates(ctx.db, judgements, atMs);
  if (newHour) await pruneRateHistory(ctx.db, nowMs);
}

function judged(
  currency: CurrencyCode,
  feeds: readonly RateFeed[],
  answers: readonly PromiseSettledResult<readonly RateSample[]>[],
  nowMs: number,
): Judgement {
  const samples: RateSample[] = [];
  const missing: LeftOutSource[] = [];
  for (const [index, answer] of answers.entries()) {
    const source = feeds[index]?.source ?? '';
    const said = answer.status === 'fulfilled' ? answer.value.filter((sample) => sample.currency === currency) : [];
    // a feed speaks for itself only: two prices of one exchange are no quorum
    samples.push(...said.map((sample) => ({ ...sample, source })));
    if (said.length === 0) missing.push({ source, reason: answer.status === 'fulfilled' ? 'silent' : 'unreachable' });
  }
  const [fixed] = samples.filter(({ source }) => feeds.some((feed) => feed.source === source && feed.isFixed));
  if (fixed !== undefined)
    return { currency, usd: fixed.bid, used: [{ source: fixed.source, usd: fixed.bid, atMs: fixed.atMs }], leftOut: [] };
  const judgement = judgeRate(currency, samples, nowMs);
  return { ...judgement, leftOut: [...judgement.leftOut, ...missing] };
}
