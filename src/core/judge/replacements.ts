// What a fee replacement takes over from the payments that it replaces: how much of it is on time, and what their loss took from the
// merchant. Worked out once for each replacing transaction, in a time that grows with the number of payments only: everybody can send
// one that has thousands of outputs to us, and replace it as often as he pays the fee. Used by notice.ts only.
import { atLeastZero, basisPointsDown, greatest, least, minus, plus, sum } from '../money.ts';
import type { Case, Coin } from './case.ts';
import { isBooked, isOnTime, isRight, tolerance } from './coins.ts';

export type Replacements = {
  /** Notes whether this coin is on time or late, once and for ever: as one that replaces others it is on time up to what they were. */
  classify(coin: Coin): void;
  /** Gives a coin that replaces booked ones what their loss took. */
  inheritLoss(coin: Coin): void;
};

/** The payments that one transaction replaces. */
type Replaced = {
  readonly coins: Coin[];
  /** What of them was on time; null until it is asked for. */
  onTime: bigint | null;
  /** What of that the outputs of the replacement have taken. */
  taken: bigint;
  /** Those that were booked and lost; null until somebody inherits from them. */
  lost: Lost | null;
};
/** `owed`: what their loss took and nobody has inherited yet. `emptied`: so many of them, from the first, have nothing left. */
type Lost = { readonly coins: readonly Coin[]; owed: bigint; emptied: number };

/** The replacements among the payments of a case. What they note and what they owe changes only through what is returned. */
export function replacementsIn(it: Case): Replacements {
  const replaced = byReplacement(it.coins);
  /** What the merchant has or has lost of all coins in the transaction's currency. */
  let merchants: bigint | null = null;

  function inherited(group: Replaced): bigint {
    group.onTime ??= onTimeOf(it, group.coins);
    return atLeastZero(minus(group.onTime, group.taken));
  }

  return {
    classify(coin) {
      const group = replaced.get(keyOf(coin, coin.txid));
      if (it.transaction.word === 'cancelled') coin.onTimeMinor = 0n;
      else if (isOnTime(it.transaction, coin)) coin.onTimeMinor = coin.amount;
      else coin.onTimeMinor = group === undefined ? 0n : least(coin.amount, inherited(group));
      if (group !== undefined) group.taken = plus(group.taken, coin.onTimeMinor);
      coin.classified = true;
    },
    inheritLoss(coin) {
      const group = replaced.get(keyOf(coin, coin.txid));
      if (group === undefined || isBooked(coin)) return;
      group.lost ??= lostOf(group.coins, coin);
      if (group.lost.owed === 0n) return;
      merchants ??= sum(it.coins.filter((one) => isRight(it, one)).map(merchantsPart));
      takeLoss(it, coin, group.lost);
      if (coin.owed === 0n || !isRight(it, coin)) return;
      // all of it where that is no more than the price and its tolerance (rules 5, 17)
      const elsewhere = minus(merchants, merchantsPart(coin));
      if (plus(elsewhere, coin.amount) > plus(it.transaction.need, tolerance(it.transaction))) return;
      coin.owedFee = basisPointsDown(coin.amount, it.feeBps);
      coin.owed = minus(coin.amount, coin.owedFee);
      merchants = plus(elsewhere, merchantsPart(coin));
    },
  };
}

function keyOf(coin: Coin, txid: string): string {
  return `${coin.currency} ${txid}`;
}

/** The replaced payments by the transaction that replaces them. */
function byReplacement(coins: readonly Coin[]): ReadonlyMap<string, Replaced> {
  const groups = new Map<string, Replaced>();
  for (const coin of coins) {
    if (coin.conflictTxid === null) continue;
    const key = keyOf(coin, coin.conflictTxid);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { coins: [coin], onTime: null, taken: 0n, lost: null });
    else group.coins.push(coin);
  }
  if (groups.size === 0) return groups;
  for (const coin of coins) {
    const group = coin.classified ? groups.get(keyOf(coin, coin.txid)) : undefined;
    if (group !== undefined) group.taken = plus(group.taken, coin.onTimeMinor);
  }
  return groups;
}

/**
 * What of these payments was on time. Transactions that spend the same outpoint are a row of replacements, one payment: of such a row only
 * the largest counts. Those that share none are several payments.
 */
function onTimeOf(it: Case, replaced: readonly Coin[]): bigint {
  const amounts = new Map<string, bigint>();
  const spends = new Map<string, readonly string[]>();
  for (const coin of replaced) {
    // what was replaced before it was ever judged was on time or late all the same
    const onTime = coin.classified ? coin.onTimeMinor : isOnTime(it.transaction, coin) ? coin.amount : 0n;
    amounts.set(coin.txid, plus(amounts.get(coin.txid) ?? 0n, onTime));
    spends.set(coin.txid, coin.spends);
  }
  const most = new Map<string, bigint>();
  const row = rowsOf(spends);
  for (const [txid, amount] of amounts) most.set(row(txid), greatest(most.get(row(txid)) ?? 0n, amount));
  return sum(most.values());
}

/** The row of each transaction, named by one of its transactions (union-find over the outpoints that they spend). */
function rowsOf(spends: ReadonlyMap<string, readonly string[]>): (txid: string) => string {
  const above = new Map<string, string>();
  function rowOf(txid: string): string {
    let root = txid;
    for (let next = above.get(root); next !== undefined; next = above.get(root)) root = next;
    for (let next = txid; next !== root; ) {
      const step = above.get(next) ?? root;
      above.set(next, root);
      next = step;
    }
    return root;
  }
  const spender = new Map<string, string>();
  for (const [txid, outpoints] of spends) {
    for (const outpoint of outpoints) {
      const root = rowOf(spender.get(outpoint) ?? txid);
      if (root !== rowOf(txid)) above.set(rowOf(txid), root);
      spender.set(outpoint, txid);
    }
  }
  return rowOf;
}

/** What of a coin is the merchant's, or was taken from the merchant by its loss. */
function merchantsPart(coin: Coin): bigint {
  return plus(plus(coin.inAvailable, coin.owed), coin.owedFee);
}

/** Those that are booked no more; of what nothing is owed for (a waiting reimbursement had it whole) the loss goes over to the first heir. */
function lostOf(replaced: readonly Coin[], heir: Coin): Lost {
  const coins = replaced.filter((coin) => !isBooked(coin));
  const owed = sum(coins.map((coin) => coin.owed));
  if (owed > 0n) for (const coin of coins) if (coin.owed === 0n) passOn(coin, heir);
  return { coins, owed, emptied: 0 };
}

/**
 * A payment that takes the place of booked ones is one event with them: what their loss took comes back with it, up to its amount. Each is
 * emptied before the next, so that all outputs of a replacement together come by each of them once.
 */
function takeLoss(it: Case, heir: Coin, lost: Lost): void {
  for (; lost.emptied < lost.coins.length; lost.emptied++) {
    const coin = lost.coins[lost.emptied] as Coin;
    const room = minus(minus(heir.amount, heir.owed), heir.owedFee);
    const taken = least(plus(coin.owed, coin.owedFee), room);
    const owed = least(coin.owed, minus(taken, least(coin.owedFee, basisPointsDown(taken, it.feeBps))));
    const fee = minus(taken, owed);
    heir.owed = plus(heir.owed, owed);
    heir.owedFee = plus(heir.owedFee, fee);
    coin.owed = minus(coin.owed, owed);
    coin.owedFee = minus(coin.owedFee, fee);
    lost.owed = minus(lost.owed, owed);
    if (coin.owed === 0n) passOn(coin, heir);
    if (coin.owed > 0n || coin.owedFee > 0n) return;
  }
}

/** Nothing is owed for a coin any more: what takes its place is what was lost. */
function passOn(from: Coin, to: Coin): void {
  to.wasLost ||= from.wasLost;
  from.wasLost = false;
}
