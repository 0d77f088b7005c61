// The prices of the judge's tests: the present one, and that of a moment.
import type { CurrencyCode } from '../../src/core/currency.ts';
import type { Rate } from '../../src/core/rate.ts';

/** No currency has a price before it is set; null = none is known from then on. */
export function newPrices() {
  const history: { readonly code: CurrencyCode; readonly atMs: number; readonly rate: Rate | null }[] = [];
  return {
    set(code: CurrencyCode, atMs: number, rate: Rate | null): void {
      history.push({ code, atMs, rate });
    },
    now: (code: CurrencyCode): Rate | null => history.findLast((price) => price.code === code)?.rate ?? null,
    /** The last one before, where there was none then the first one after. */
    at(code: CurrencyCode, atMs: number): Rate | null {
      const own = history.filter((price) => price.code === code);
      const before = own.findLast((price) => price.atMs <= atMs)?.rate ?? null;
      return before ?? own.find((price) => price.atMs > atMs && price.rate !== null)?.rate ?? null;
    },
  };
}
