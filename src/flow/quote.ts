// Prices a payment: which currency, at which rate, how much, and whether that may be asked for at all. Reads no node and no exchange: the
// worker keeps their last word in the database.
import { CURRENCIES, type CurrencyCode, type PaymentMethod, type UtxoCode, WATCHED_CODES } from '../core/currency.ts';
import { formatMinor } from '../core/money.ts';
import { cryptoForUsdUp, type Rate } from '../core/rate.ts';
import { Refusal } from '../core/refusal.ts';
import type { Context } from './context.ts';

const MIN_USD_MINOR = 50n;
const MAX_USD_MINOR = 10_000_000n;
const OLDEST_RATE_MS = 5 * 60_000;
const CLOCK_SLACK_MS = 60_000;
/** A node that is only busy answers again in a moment; the others cannot tell of a payment. */
const USABLE_NODE_STATES: ReadonlySet<string> = new Set(['ready', 'busy']);

export type Quote = {
  readonly currency: UtxoCode;
  readonly rate: Rate;
  readonly rateAtMs: number;
  /** JSON text of the sources, stored with the transaction. */
  readonly rateSources: string;
  readonly need: bigint;
};

/**
 * @param usdMinor cents
 * @throws Refusal lightning_unavailable, currency_unavailable, amount_below_minimum, amount_above_maximum, rate_unavailable
 */
export async function quote(ctx: Context, method: PaymentMethod, usdMinor: bigint): Promise<Quote> {
  if (method === 'BTC-LN') throw new Refusal('lightning_unavailable');
  if (!isWatched(method)) throw new Refusal('currency_unavailable', { message: `${method} is not available on this server.` });
  const facts = await ctx.desk.dayFacts();
  const state = facts.nodes.get(method);
  if (state === undefined || !USABLE_NODE_STATES.has(state)) {
    throw new Refusal('currency_unavailable', {
      message: `${method} is not available right now: its node is ${state ?? 'not connected'}.`,
    });
  }
  refuseOutOfBounds(usdMinor, MIN_USD_MINOR, MAX_USD_MINOR);
  const rate = facts.rates.get(method);
  if (rate === undefined || !isFresh(rate.atMs, ctx.ports.clock.now())) throw new Refusal('rate_unavailable');
  const need = cryptoForUsdUp(usdMinor, method, rate.usd);
  refuseDust(method, need);
  return { currency: method, rate: rate.usd, rateAtMs: rate.atMs, rateSources: rate.sources, need };
}

/** A price of a time to come is from before our clock was set back: nobody knows how old it is. */
function isFresh(atMs: number, nowMs: number): boolean {
  return nowMs - atMs <= OLDEST_RATE_MS && atMs - nowMs <= CLOCK_SLACK_MS;
}

/** The bounds of an amount that hold whatever the rate is. */
function refuseOutOfBounds(usdMinor: bigint, min: bigint, max: bigint): void {
  if (usdMinor < min)
    throw new Refusal('amount_below_minimum', { param: 'amount', message: `The smallest amount is ${formatMinor(min, 2)} USD.` });
  if (usdMinor > max)
    throw new Refusal('amount_above_maximum', { param: 'amount', message: `The largest amount is ${formatMinor(max, 2)} USD.` });
}

function refuseDust(currency: CurrencyCode, need: bigint): void {
  const { dustMinor, decimals } = CURRENCIES[currency];
  if (need >= dustMinor) return;
  throw new Refusal('amount_below_minimum', {
    param: 'amount',
    message: `This is less than the smallest output that the ${CURRENCIES[currency].name} network carries, ${formatMinor(dustMinor, decimals)} ${currency}.`,
  });
}

function isWatched(code: CurrencyCode): code is UtxoCode {
  return (WATCHED_CODES as readonly string[]).includes(code);
}
