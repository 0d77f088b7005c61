// R: how deep a coin must lie for what is done with it, by what it is worth itself or together with others, and whether it does. No decision is
// made here.
import {
  confirmationsToReach,
  finalDepth,
  type Required,
  reaches,
  requiredConfirmations,
  requiredOfTiers,
} from '../confirmations.ts';
import type { CurrencyCode } from '../currency.ts';
import { greatest } from '../money.ts';
import { type Rate, usdForPartsUp, type Valued } from '../rate.ts';
import type { Case, Coin } from './case.ts';
import { chainOf, confirmationsOf, isLive, isRight, lateMinor } from './coins.ts';

function hasReached(it: Case, coin: Coin, required: Required): boolean {
  return (
    isLive(coin) &&
    reaches(coin.currency, { confirmations: confirmationsOf(it, coin), coinbase: coin.coinbase, lock: coin.lock }, required)
  );
}

/** R of the transaction: by its own USD amount. */
export function requiredOfTransaction(it: Case): Required {
  return requiredConfirmations(it.transaction.currency, it.transaction.usdMinor);
}
/**
 * The rate at which a coin's own USD value is told: the quote, for a late one that of its arrival where that is more, for another coin always
 * that of its arrival. Null = not known.
 */
function ownRate(it: Case, coin: Coin): Rate | null {
  if (!isRight(it, coin)) return coin.arrivalRate;
  const { rate } = it.transaction;
  return coin.arrivalRate !== null && lateMinor(coin) > 0n ? greatest(rate, coin.arrivalRate) : rate;
}
/** What these coins of one currency (or a part of each) are worth together, in cents; null when it is not known of one of them. */
function worthOf(it: Case, coins: readonly Coin[], part: (coin: Coin) => bigint): bigint | null {
  const [first] = coins;
  if (first === undefined) return 0n;
  const parts: Valued[] = [];
  for (const coin of coins) {
    const rate = ownRate(it, coin);
    if (rate === null) return null;
    parts.push({ minor: part(coin), rate });
  }
  return usdForPartsUp(parts, first.currency);
}
/** R of an amount of this coin by its own USD value. */
export function requiredOfAmount(it: Case, coin: Coin, amount: bigint): Required {
  return requiredConfirmations(
    coin.currency,
    worthOf(it, [coin], () => amount),
  );
}
/**
 * Whether everything in suspense is there and deep enough to be credited together: whatever a reorganisation of some depth could take back of
 * it has less than the R of what that is worth. So ten payments need what one of their sum needs, and a little one beside a large one only
 * its own.
 */
export function suspenseReached(it: Case): boolean {
  const groups = Map.groupBy(
    it.coins.filter((coin) => coin.inSuspense > 0n),
    (coin) => coin.currency,
  );
  return [...groups].every(([currency, coins]) => {
    let rest: readonly Coin[] = coins;
    while (rest.length > 0) {
      const required = requiredConfirmations(
        currency,
        worthOf(it, rest, (coin) => coin.inSuspense),
      );
      const shallow = rest.filter((coin) => !hasReached(it, coin, required));
      if (shallow.length === rest.length) return false;
      rest = shallow;
    }
    return true;
  });
}
/**
 * Of these coins those that may be booked now: on a chain over which our nodes contradict each other none, when together they are worth
 * more than the limit (or nobody knows what they are worth).
 */
export function undisputed(it: Case, coins: readonly Coin[]): readonly Coin[] {
  const held = new Set([...new Set(coins.map((coin) => coin.currency))].filter((currency) => isHeld(it, coins, currency)));
  return held.size === 0 ? coins : coins.filter((coin) => !held.has(coin.currency));
}
function isHeld(it: Case, coins: readonly Coin[], currency: CurrencyCode): boolean {
  const limit = it.chains.get(currency)?.contestedAboveMinor;
  if (limit === undefined) return false;
  const worth = worthOf(
    it,
    coins.filter((coin) => coin.currency === currency),
    (coin) => coin.amount,
  );
  return worth === null || worth > limit;
}
export function reachesTransaction(it: Case, coin: Coin): boolean {
  return hasReached(it, coin, requiredOfTransaction(it));
}
function reachesOwn(it: Case, coin: Coin): boolean {
  return hasReached(it, coin, requiredOfAmount(it, coin, coin.amount));
}
/**
 * Whether a coin that is not part of the price can be booked: at the R of its own value. One that was lost and is back restores what its
 * loss took, so it needs the R of that, and in the transaction's currency the R of the price.
 */
export function reachesSuspense(it: Case, coin: Coin): boolean {
  if (coin.owed === 0n) return reachesOwn(it, coin);
  return hasReached(it, coin, requiredOfAmount(it, coin, coin.owed)) && (!isRight(it, coin) || reachesTransaction(it, coin));
}
export function isFinal(it: Case, coin: Coin): boolean {
  return hasReached(it, coin, finalDepth(coin.currency));
}

/** The next height of its chain at which a threshold of this coin is reached; null when there is none ahead. */
export function nextHeight(it: Case, coin: Coin): number | null {
  if (coin.state === 'gone') {
    const chain = chainOf(it, coin);
    return coin.lastHeight !== null && chain.tipHeight < coin.lastHeight ? coin.lastHeight : null;
  }
  if (coin.height === null) return null;
  const confirmations = confirmationsOf(it, coin);
  const wanted = [requiredOfAmount(it, coin, coin.amount), finalDepth(coin.currency)];
  if (isRight(it, coin)) wanted.push(requiredOfTransaction(it));
  if (coin.owed > 0n) wanted.push(requiredOfAmount(it, coin, coin.owed));
  if (coin.inSuspense > 0n && it.transaction.status === 'review') wanted.push(...requiredOfTiers(coin.currency));
  const depths = wanted.map((required) =>
    confirmationsToReach(coin.currency, { confirmations, coinbase: coin.coinbase, lock: coin.lock }, required),
  );
  const ahead = depths.filter((depth) => depth > confirmations);
  return ahead.length === 0 ? null : coin.height + Math.min(...ahead) - 1;
}
