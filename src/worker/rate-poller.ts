// Asks all price feeds and stores the resulting prices.
import { CURRENCY_CODES, type CurrencyCode } from '../core/currency.ts';
import type { RateFeed, RateSample } from '../core/rate-feed.ts';
import { type Judgement, judgeRate, type LeftOutSource } from '../core/rate-median.ts';
import type { Context } from '../flow/context.ts';
import { pruneRateHistory, type RateSource, recordRateSources, saveRates } from '../store/transactions/rates.ts';

type Answer = { readonly feed: RateFeed; readonly samples: readonly RateSample[]; readonly status: RateSource };

const MOST_REASON = 300;

/**
 * One reading: every feed at once, each with its own time-out, judged per currency (behaviour §3) and written. A feed that fails is left
 * out of the judgement and affects nothing else; only trouble with the database throws. Concurrent calls are allowed.
 * @returns why a currency that has a node has no price now, in one line; empty when each has one
 */
export async function pollRates(ctx: Context): Promise<string> {
  // the price is dated before the request: of two readings that overlap, the one that asked later wins
  const atMs = ctx.ports.clock.now();
  const answers = await Promise.all(ctx.ports.rateFeeds.map(ask));
  const nowMs = ctx.ports.clock.now();
  const judgements = CURRENCY_CODES.map((currency) => judged(currency, answers, nowMs));
  const { newHour } = await saveRates(ctx.db, ctx.ports.seals, judgements, atMs);
  await recordRateSources(
    ctx.db,
    answers.map(({ status }) => status),
    atMs,
  );
  if (newHour) await pruneRateHistory(ctx.db, nowMs);
  return trouble(judgements, answers, [...ctx.ports.chains.keys()]);
}

async function ask(feed: RateFeed): Promise<Answer> {
  const { source } = feed;
  try {
    // each sample gets its feed's own name: two prices of one exchange are no quorum
    const samples = (await feed.read()).map((sample) => ({ ...sample, source }));
    return { feed, samples, status: { source, state: samples.length === 0 ? 'silent' : 'answers', reason: null } };
  } catch (error) {
    return { feed, samples: [], status: { source, state: 'unreachable', reason: readable((error as Error).message) } };
  }
}

/** A text that may hold what a source has sent: PostgreSQL takes no NUL, and people read it as one line. */
function readable(text: string): string {
  return text
    .slice(0, MOST_REASON)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .trim();
}

function judged(currency: CurrencyCode, answers: readonly Answer[], nowMs: number): Judgement {
  const answered = answers.map((answer) => ({ ...answer, samples: answer.samples.filter((one) => one.currency === currency) }));
  const fixed = answered.find(({ feed }) => feed.isFixed)?.samples[0];
  if (fixed !== undefined) {
    const { source, bid: usd, atMs } = fixed;
    return { currency, usd, used: [{ source, usd, atMs }], leftOut: [] };
  }
  const samples = answered.flatMap((one) => one.samples);
  const missing = answered
    .filter((one) => one.samples.length === 0)
    .map(
      ({ status }): LeftOutSource => ({
        source: status.source,
        reason: status.state === 'unreachable' ? 'unreachable' : 'silent',
      }),
    );
  const judgement = judgeRate(currency, samples, nowMs);
  return { ...judgement, leftOut: [...judgement.leftOut, ...missing] };
}

function trouble(judgements: readonly Judgement[], answers: readonly Answer[], wanted: readonly CurrencyCode[]): string {
  const without = judgements.filter(({ currency, usd }) => usd === null && wanted.includes(currency));
  const [first] = without;
  if (first === undefined) return '';
  const reachable = answers.filter(({ status }) => status.state !== 'unreachable');
  if (reachable.length === 0) {
    const reasons = answers.map(({ status }) => `${status.source}: ${status.reason}`);
    return `no price source can be reached (${reasons.join('; ')})`;
  }
  const codes = without.map(({ currency }) => currency).join(', ');
  const reasons = first.leftOut.map(({ source, reason }) => `${source}: ${reason}`);
  return `no price for ${codes}: fewer than two sources count (of ${first.currency} ${reasons.join(', ') || 'none has any'})`;
}
