// The numbers and the table of statuses of behaviour §3, written a second time for the simulation's model: nothing here is taken from the
// product, so that a mistake there is not repeated here.

export const CODES = ['BTC', 'LTC', 'BCH', 'DASH', 'DOGE'] as const;
export type Code = (typeof CODES)[number];
/** What a payment on a chain may be in: the five, and the two of Ethereum's chain. */
export type ChainCode = Code | 'ETH' | 'USDT';

export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
export const WINDOW = 15 * MINUTE;

type Depths = readonly [under100: number, under1000: number, under10000: number, above: number, final: number];
/** Base units of one. */
export const unitOf = (currency: ChainCode): bigint => 10n ** (currency === 'ETH' ? 18n : currency === 'USDT' ? 6n : 8n);

const DEPTHS: Record<ChainCode, Depths> = {
  BTC: [1, 2, 3, 6, 6],
  LTC: [2, 3, 6, 12, 12],
  BCH: [1, 3, 6, 10, 10],
  DASH: [2, 2, 6, 12, 12],
  DOGE: [6, 10, 20, 60, 60],
  // never by depth from 10,000 dollars, and final only where the node says finalized
  ETH: [6, 12, 32, Number.POSITIVE_INFINITY, 65],
  USDT: [6, 12, 32, Number.POSITIVE_INFINITY, 65],
};
/** Which lock of our own node does instead, by the same steps. */
const DASH_LOCKS = ['instantsend', 'instantsend', 'chainlock', 'chainlock', 'chainlock'] as const;
const MATURITY: Record<ChainCode, number> = { BTC: 100, LTC: 100, BCH: 100, DASH: 100, DOGE: 240, ETH: 0, USDT: 0 };

export type Seen = { readonly confirmations: number; readonly instant: boolean; readonly chain: boolean };

const stepOf = (cents: bigint): number => (cents < 100_00n ? 0 : cents < 1_000_00n ? 1 : cents < 10_000_00n ? 2 : 3);
export const finalDepthOf = (currency: ChainCode): number => DEPTHS[currency][4];
const isEthereum = (currency: ChainCode): boolean => currency === 'ETH' || currency === 'USDT';
/** Rule 19: by depth, by Dash's ChainLock, on Ethereum's chain by what the node calls finalized and nothing else. */
export const isFinalBy = (currency: ChainCode, { confirmations, chain }: Pick<Seen, 'confirmations' | 'chain'>): boolean =>
  chain || (!isEthereum(currency) && confirmations >= finalDepthOf(currency));
export const maturityOf = (currency: ChainCode): number => MATURITY[currency];

/** Whether a payment worth so many cents may be booked when our node showed this of it. */
export function deepEnough(currency: ChainCode, cents: bigint, seen: Seen, coinbase: boolean): boolean {
  const step = stepOf(cents);
  if (coinbase) return seen.confirmations >= Math.max(MATURITY[currency], DEPTHS[currency][step] as number);
  if (seen.confirmations >= (DEPTHS[currency][step] as number)) return true;
  if (isEthereum(currency)) return seen.chain;
  if (currency !== 'DASH') return false;
  return DASH_LOCKS[step] === 'instantsend' ? seen.instant || seen.chain : seen.chain;
}

/** Every arrow: rule, from, to. Rules 3, 21 and 23, and 16 from pending, leave the status. */
const ARROWS: readonly string[] = [
  '2 started pending',
  '2 review pending', // rule 18, last sentence
  '4 pending confirmed',
  '5 confirmed succeeded',
  '6 pending declined',
  '7 started timedout',
  '8 timedout timedout_checked',
  '9 started review',
  '9 timedout review',
  '9 timedout_checked review',
  '9 cancelled review',
  '10 timedout pending',
  '10 timedout_checked pending',
  '11 review confirmed',
  '12 review confirmed',
  '12 declined confirmed',
  '13 review reimbursed',
  '13 declined reimbursed',
  '13 succeeded reimbursed',
  '13 settled reimbursed',
  '14 review declined',
  '15 pending started',
  '15 pending timedout',
  '16 confirmed pending',
  '17 succeeded review',
  '17 settled review',
  '17 review confirmed',
  '18 started review',
  '18 timedout review',
  '18 timedout_checked review',
  '18 cancelled review',
  '18 declined review',
  '19 succeeded settled',
  '20 started cancelled',
  '20 pending cancelled',
  '22 declined review',
  '24 pending review',
];
const KNOWN = new Set(ARROWS);
export const isArrow = (rule: number, from: string, to: string): boolean => KNOWN.has(`${rule} ${from} ${to}`);

/** Where a transaction may be when everything has been quiet for days. */
export const AT_REST: ReadonlySet<string> = new Set([
  'settled',
  'timedout_checked',
  'cancelled',
  'declined',
  'review',
  'reimbursed',
]);

/** Cents for base units of a currency (8 decimals) at a price in cents for one currency, rounded up. */
export const centsUp = (minor: bigint, price: bigint): bigint => (minor * price + 10n ** 8n - 1n) / 10n ** 8n;
