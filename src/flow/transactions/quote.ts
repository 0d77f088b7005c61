// Prices a transaction: which currency, at which rate, how much, and whether it may be asked for at all. Asks no node and no exchange: the
// worker keeps their latest state in the database. The current prices, for /get_rates, are the same rows.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { balanceOf, CURRENCIES, CURRENCY_CODES, type CurrencyCode, type PaymentMethod } from '../../core/currency.ts';
import { formatMinor } from '../../core/money.ts';
import { cryptoForUsdUp, type Rate } from '../../core/rate.ts';
import { Refusal } from '../../core/refusal.ts';
import { type QuoteFacts, UNWATCHED, USABLE_NODE_STATES } from '../../store/transactions/quote-facts.ts';
import { type LatestRate, latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';

export const MIN_USD_MINOR = 50n;
export const MAX_USD_MINOR = 10_000_000n;
export const LIGHTNING_MIN_USD_MINOR = 1n;
export const LIGHTNING_MAX_USD_MINOR = 500_000n;
/** Cents. */
type Bounds = { readonly min: bigint; readonly max: bigint };
const ON_CHAIN: Bounds = { min: MIN_USD_MINOR, max: MAX_USD_MINOR };
const OVER_LIGHTNING: Bounds = { min: LIGHTNING_MIN_USD_MINOR, max: LIGHTNING_MAX_USD_MINOR };
const OLDEST_RATE_MS = 5 * 60_000;
const CLOCK_SLACK_MS = 60_000;

export type Quote<C extends PaymentMethod = CurrencyCode> = {
  readonly currency: C;
  readonly rate: Rate;
  readonly amountDue: bigint;
};

/**
 * A quote from the prices that were read last. They may be outdated: `insert` detects that, and then {@link quoteNow} is used. A refusal is
 * always checked against current prices.
 * @param usdMinor cents
 * @throws Refusal currency_unavailable, amount_below_minimum, amount_above_maximum, rate_unavailable
 */
export async function quote(ctx: Context, method: CurrencyCode, usdMinor: bigint): Promise<Quote> {
  return priced(ctx, watched(ctx, method), usdMinor);
}

/** A quote from the current prices. Refused as {@link quote} does. */
export async function quoteNow(ctx: Context, method: CurrencyCode, usdMinor: bigint): Promise<Quote> {
  return pricedNow(ctx, watched(ctx, method), usdMinor);
}

/** As {@link quote} for Lightning. @throws Refusal lightning_unavailable instead of currency_unavailable */
export function quoteLightning(ctx: Context, usdMinor: bigint): Promise<Quote<typeof LIGHTNING.code>> {
  return priced(ctx, LIGHTNING.code, usdMinor);
}

/** As {@link quoteNow} for Lightning. */
export function quoteLightningNow(ctx: Context, usdMinor: bigint): Promise<Quote<typeof LIGHTNING.code>> {
  return pricedNow(ctx, LIGHTNING.code, usdMinor);
}

async function priced<C extends PaymentMethod>(ctx: Context, currency: C, usdMinor: bigint): Promise<Quote<C>> {
  const remembered = ctx.batches.rememberedFacts();
  const found = remembered === null ? null : quoteBy(remembered, ctx.ports.clock.now(), currency, usdMinor);
  return found === null || found instanceof Refusal ? pricedNow(ctx, currency, usdMinor) : found;
}

async function pricedNow<C extends PaymentMethod>(ctx: Context, currency: C, usdMinor: bigint): Promise<Quote<C>> {
  const found = quoteBy(await ctx.batches.quoteFacts(), ctx.ports.clock.now(), currency, usdMinor);
  if (found instanceof Refusal) throw found;
  return found;
}

function quoteBy<C extends PaymentMethod>(facts: QuoteFacts, nowMs: number, currency: C, usdMinor: bigint): Quote<C> | Refusal {
  const isLightning = currency === LIGHTNING.code;
  const state = facts.nodes.get(currency);
  if (state === undefined || !USABLE_NODE_STATES.includes(state)) {
    const reason =
      state === UNWATCHED ? `nobody watches its ${isLightning ? 'node' : 'chain'}` : `its node is ${state ?? 'not connected'}`;
    const code = isLightning ? 'lightning_unavailable' : 'currency_unavailable';
    return new Refusal(code, { message: `${isLightning ? LIGHTNING.name : currency} is not available right now: ${reason}.` });
  }
  const outOfBounds = outOfBoundsRefusal(usdMinor, isLightning ? OVER_LIGHTNING : ON_CHAIN);
  if (outOfBounds !== null) return outOfBounds;
  const rate = facts.rates.get(balanceOf(currency));
  if (rate === undefined || !isFresh(rate.atMs, nowMs)) return new Refusal('rate_unavailable');
  const amountDue = cryptoForUsdUp(usdMinor, currency, rate.usd);
  return dustRefusal(currency, amountDue) ?? { currency, rate: rate.usd, amountDue };
}

/** The currency of a payment method that has a node here: no worker watches a chain without one, whatever was recorded about it before. */
function watched({ currencies }: Context, method: CurrencyCode): CurrencyCode {
  if (!isWatched(method) || !currencies.includes(method))
    throw new Refusal('currency_unavailable', { message: `${method} is not available on this server.` });
  return method;
}

/** A price dated in the future is from before our clock was set back: its age is unknown. */
function isFresh(atMs: number, nowMs: number): boolean {
  return nowMs - atMs <= OLDEST_RATE_MS && atMs - nowMs <= CLOCK_SLACK_MS;
}

/** The limits of an amount that hold whatever the rate is. */
function outOfBoundsRefusal(usdMinor: bigint, { min, max }: Bounds): Refusal | null {
  if (usdMinor < min)
    return new Refusal('amount_below_minimum', {
      param: 'amount',
      message: `The smallest amount is ${formatMinor(min, 2)} USD.`,
    });
  if (usdMinor > max)
    return new Refusal('amount_above_maximum', { param: 'amount', message: `The largest amount is ${formatMinor(max, 2)} USD.` });
  return null;
}

function dustRefusal(currency: PaymentMethod, amountDue: bigint): Refusal | null {
  const { dustMinor, decimals } = CURRENCIES[currency];
  if (amountDue >= dustMinor) return null;
  return new Refusal('amount_below_minimum', {
    param: 'amount',
    message: `This is less than the smallest output that the ${CURRENCIES[currency].name} network carries, ${formatMinor(dustMinor, decimals)} ${currency}.`,
  });
}

function isWatched(code: CurrencyCode): code is CurrencyCode {
  return (CURRENCY_CODES as readonly string[]).includes(code);
}

/** The price of every currency that has one at most 5 min old, in the order of a balances answer; the others are left out. */
export async function getRates(ctx: Context): Promise<Partial<Record<CurrencyCode, LatestRate>>> {
  const rates = await latestRates(ctx.db, ctx.ports.seals, CURRENCY_CODES, ctx.ports.clock.now());
  return Object.fromEntries(CURRENCY_CODES.flatMap((code) => (rates.has(code) ? [[code, rates.get(code)]] : [])));
}
