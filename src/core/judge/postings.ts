// How each decision is booked: the posting templates of the ledger, one function each, applied to the case at once. Whatever enters a
// merchant's available balance repays an open receivable first. Every entry sums to zero per currency (a property test shows it).
import type { CurrencyCode } from '../currency.ts';
import { atLeastZero, basisPointsDown, least, minus, negated, plus, sum } from '../money.ts';
import { BalancesNeeded, type Case, type Coin, type Line, type Part, type Step } from './case.ts';
import { isBooked } from './coins.ts';

const account = {
  chain: (currency: CurrencyCode) => `asset:chain:${currency}`,
  available: (it: Case, currency: CurrencyCode) => `merchant:${it.transaction.merchantId}:available:${currency}`,
  receivable: (it: Case, currency: CurrencyCode) => `asset:receivable:merchant:${it.transaction.merchantId}:${currency}`,
  suspense: (it: Case, currency: CurrencyCode) => `suspense:${it.transaction.id}:${currency}`,
  refundPayable: (it: Case, currency: CurrencyCode) => `refund_payable:${it.transaction.id}:${currency}`,
  feeIncome: (currency: CurrencyCode) => `income:fee:${currency}`,
};

function balanceOf(it: Case, currency: CurrencyCode): { available: bigint; receivable: bigint } {
  if (it.balances === null) throw new BalancesNeeded();
  let balance = it.balances.get(currency);
  if (balance === undefined) {
    balance = { available: 0n, receivable: 0n };
    it.balances.set(currency, balance);
  }
  return balance;
}

/** Lines that let `amount` enter available: the receivable is repaid first. */
function enter(it: Case, currency: CurrencyCode, amount: bigint): Line[] {
  if (amount === 0n) return [];
  const balance = balanceOf(it, currency);
  const repaid = least(balance.receivable, amount);
  balance.receivable = minus(balance.receivable, repaid);
  balance.available = plus(balance.available, minus(amount, repaid));
  return [
    { account: account.receivable(it, currency), amount: negated(repaid) },
    { account: account.available(it, currency), amount: negated(minus(amount, repaid)) },
  ];
}

function post(it: Case, entry: { key: string; kind: string; lines: readonly Line[]; parts?: readonly Part[] }): void {
  const lines = entry.lines.filter((line) => line.amount !== 0n);
  it.steps.push({ kind: 'post', entry: { key: entry.key, kind: entry.kind, lines, parts: entry.parts ?? [] } });
}

/**
 * Posts what a verdict does with the coins of one payment. What it does of this kind with other payments in the same currency right before is
 * one entry with it: anybody can pay in thousands of outputs. The entry has the key of its first part, which no other payment can have.
 */
function postPart(
  it: Case,
  { kind, currency, lines, part }: { kind: string; currency: CurrencyCode; lines: readonly Line[]; part: Part },
): void {
  const at = openEntry(it, kind, account.chain(currency));
  if (at === null) {
    post(it, { key: part.key, kind, lines: lines.filter((line) => line.amount !== 0n), parts: [part] });
    return;
  }
  const { entry } = it.steps[at] as Extract<Step, { kind: 'post' }>;
  (entry.parts as Part[]).push(part);
  it.steps[at] = { kind: 'post', entry: { ...entry, lines: added(entry.lines, lines) } };
}

/** The place of the last entry of this kind and chain that nothing but a change of status and entries of this kind follow; null = none. */
function openEntry({ steps }: Case, kind: string, chain: string): number | null {
  for (let at = steps.length - 1; at >= 0; at--) {
    const step = steps[at] as Step;
    if (step.kind === 'announce' || (step.kind === 'post' && step.entry.kind !== kind)) return null;
    if (step.kind === 'post' && step.entry.lines.some((line) => line.account === chain)) return at;
  }
  return null;
}

function added(to: readonly Line[], lines: readonly Line[]): readonly Line[] {
  const amounts = new Map(to.map((line) => [line.account, line.amount]));
  for (const { account: code, amount } of lines) amounts.set(code, plus(amounts.get(code) ?? 0n, amount));
  return [...amounts].flatMap(([code, amount]) => (amount === 0n ? [] : [{ account: code, amount }]));
}

/** `dep:btc:<txid>:<vout>`, and `#2`, `#3` … for a coin that was lost and is back. */
function depositKey(coin: Coin): string {
  const base = `dep:${coin.currency.toLowerCase()}:${coin.txid}:${coin.vout}`;
  return coin.generation === 0 ? base : `${base}#${coin.generation + 1}`;
}

/** The fee of one part of a credit: of the whole it is rounded down once, not in each part. `before` = the parts that were taken already. */
function feeOf(it: Case, part: bigint, before: bigint): bigint {
  return minus(basisPointsDown(plus(before, part), it.feeBps), basisPointsDown(before, it.feeBps));
}

/**
 * Books a coin for the first time: `credit` of it to the merchant (less the service's fee), the rest to suspense.
 * @param before what other coins of the same credit brought already
 */
export function bookDeposit(it: Case, coin: Coin, credit: bigint, before = 0n): void {
  if (isBooked(coin)) throw new Error(`coin ${coin.txid}:${coin.vout} is booked already`);
  const fee = feeOf(it, credit, before);
  postDeposit(it, coin, { toMerchant: minus(credit, fee), fee });
  coin.inAvailable = credit;
}

/** Books a coin that is not (or no more) part of the price to suspense; what its earlier loss took from the merchant is restored first. */
export function bookToSuspense(it: Case, coin: Coin): void {
  if (isBooked(coin)) throw new Error(`coin ${coin.txid}:${coin.vout} is booked already`);
  const restored = least(coin.owed, coin.amount);
  const fee = least(coin.owedFee, minus(coin.amount, restored));
  postDeposit(it, coin, { toMerchant: restored, fee });
  // of what was restored, the part that had been sent back or promised before the loss is no longer the merchant's to give
  coin.inAvailable = minus(coin.credited, least(coin.credited, plus(coin.sentBack, coin.inRefund)));
}

/** The entry of a coin that is booked, and what it leaves with the coin: what goes neither to the merchant nor to the fee is suspended. */
function postDeposit(it: Case, coin: Coin, { toMerchant, fee }: { readonly toMerchant: bigint; readonly fee: bigint }): void {
  const credited = plus(toMerchant, fee);
  const suspended = minus(coin.amount, credited);
  const key = depositKey(coin);
  postPart(it, {
    kind: 'deposit',
    currency: coin.currency,
    lines: [
      { account: account.chain(coin.currency), amount: coin.amount },
      ...enter(it, coin.currency, toMerchant),
      { account: account.feeIncome(coin.currency), amount: negated(fee) },
      { account: account.suspense(it, coin.currency), amount: negated(suspended) },
    ],
    part: { key, amount: coin.amount, reversesKey: null },
  });
  Object.assign(coin, { credited, fee, suspended, inSuspense: suspended, depositEntryKey: key, judgedBlockHash: coin.blockHash });
  Object.assign(coin, { wasLost: false, owed: 0n, owedFee: 0n });
}

/** Moves what these coins have in suspense to the merchant's available balance (rules 11, 12, excess). */
export function acceptSuspense(it: Case, coins: readonly Coin[]): void {
  for (const currency of new Set(coins.map((coin) => coin.currency))) {
    const moved = coins.filter((coin) => coin.currency === currency && coin.inSuspense > 0n);
    const total = sum(moved.map((coin) => coin.inSuspense));
    if (total === 0n) continue;
    let before = 0n;
    const fees = moved.map((coin) => {
      const fee = feeOf(it, coin.inSuspense, before);
      before = plus(before, coin.inSuspense);
      return fee;
    });
    post(it, {
      key: `rev:${it.transaction.id}:accept:${it.transaction.sequence}:${currency.toLowerCase()}`,
      kind: 'accepted',
      lines: [
        { account: account.suspense(it, currency), amount: total },
        ...enter(it, currency, minus(total, sum(fees))),
        { account: account.feeIncome(currency), amount: negated(sum(fees)) },
      ],
    });
    moved.forEach((coin, index) => {
      coin.fee = plus(coin.fee, fees[index] ?? 0n);
      coin.credited = plus(coin.credited, coin.inSuspense);
      coin.inAvailable = plus(coin.inAvailable, coin.inSuspense);
      coin.inSuspense = 0n;
    });
  }
}

/**
 * Takes back a lost coin: each unit from where it lies now (suspense, a reimbursement that was not sent, the fee, the merchant's available);
 * only the rest, and what was already sent back, becomes the receivable.
 */
export function reverseDeposit(it: Case, coin: Coin): void {
  const wasCounted = coin.inAvailable > 0n || coin.inRefund > 0n;
  const wanted = minus(plus(coin.inAvailable, coin.sentBack), coin.fee);
  const lines: Line[] = [{ account: account.chain(coin.currency), amount: negated(coin.amount) }];
  // a waiting reimbursement has taken the coin whole, fee included: then the fee goes back to whom it was taken from
  if (wanted < 0n) lines.push(...enter(it, coin.currency, negated(wanted)));
  if (wanted > 0n) {
    const balance = balanceOf(it, coin.currency);
    const taken = least(balance.available, wanted);
    balance.available = minus(balance.available, taken);
    balance.receivable = plus(balance.receivable, minus(wanted, taken));
    lines.push({ account: account.available(it, coin.currency), amount: taken });
    lines.push({ account: account.receivable(it, coin.currency), amount: minus(wanted, taken) });
  }
  lines.push({ account: account.feeIncome(coin.currency), amount: coin.fee });
  lines.push({ account: account.suspense(it, coin.currency), amount: coin.inSuspense });
  lines.push({ account: account.refundPayable(it, coin.currency), amount: coin.inRefund });
  const key = `reorg:${coin.currency.toLowerCase()}:${coin.txid}:${coin.vout}:${coin.generation + 1}`;
  const part = { key, amount: negated(coin.amount), reversesKey: coin.depositEntryKey };
  postPart(it, { kind: 'deposit_lost', currency: coin.currency, lines, part });
  Object.assign(coin, {
    owed: atLeastZero(wanted),
    owedFee: wanted < 0n ? 0n : coin.fee,
    wasLost: wasCounted,
    generation: coin.generation + 1,
    depositEntryKey: null,
  });
  Object.assign(coin, {
    credited: 0n,
    suspended: 0n,
    fee: 0n,
    inAvailable: 0n,
    inSuspense: 0n,
    inRefund: 0n,
    judgedBlockHash: null,
  });
}
