// The port of price sources: what an exchange answers, and how it is asked.
import type { CurrencyCode } from './currency.ts';

/** One price source's answer for one currency. */
export type RateSample = {
  readonly source: string;
  readonly currency: CurrencyCode;
  readonly bid: bigint;
  readonly ask: bigint;
  readonly atMs: number;
};

/**
 * One price source: all its currencies in as few calls as it allows. A currency that it does not quote is left out; throws when it is
 * unreachable.
 */
export type RateFeed = {
  readonly source: string;
  /** The operator sets its prices, so they need no second source: never on a network whose currencies are worth something. */
  readonly isFixed?: true;
  read(): Promise<readonly RateSample[]>;
};
