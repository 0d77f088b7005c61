// How `bursar chain status` shows prices and where they come from.
import { formatRate } from '../../core/rate.ts';
import type { Readiness } from '../../flow/readiness.ts';
import type { RateSourceStatus } from '../../store/transactions/rates.ts';
import { table } from './output.ts';

/** Each price with its time and its sources, for JSON; the form of /get_rates. */
export function pricesValue(rates: Readiness['rates']): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(rates).flatMap(([code, rate]) =>
      rate === undefined
        ? []
        : [[code, { usd: formatRate(rate.usd), at: new Date(rate.atMs).toISOString(), sources: rate.sources }]],
    ),
  );
}

/** A price source for JSON. */
export function sourceValue({ source, state, reason, sinceMs, checkedAtMs }: RateSourceStatus): Record<string, unknown> {
  return { source, state, reason, since: new Date(sinceMs).toISOString(), checked_at: new Date(checkedAtMs).toISOString() };
}

/** Both as lines. */
export function priceLines(rates: Readiness['rates'], sources: readonly RateSourceStatus[], nowMs: number): string[] {
  const prices = Object.entries(rates).flatMap(([code, rate]) =>
    rate === undefined
      ? []
      : [
          [
            code,
            formatRate(rate.usd),
            `${Math.max(0, Math.round((nowMs - rate.atMs) / 1000))} s`,
            rate.sources.map((one) => one.source).join(', '),
          ],
        ],
  );
  const asked = sources.map(({ source, state, reason, sinceMs }) => [
    source,
    state,
    new Date(sinceMs).toISOString(),
    reason ?? '',
  ]);
  return [
    '',
    ...(prices.length === 0 ? ['No currency has a price.'] : table(['price of', 'USD', 'age', 'from'], prices)),
    '',
    ...(asked.length === 0
      ? ['No worker has asked for prices yet.']
      : table(['price source', 'state', 'since', 'reason'], asked)),
  ];
}
