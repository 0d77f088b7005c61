// The most that may leave, by the signer's own journal and its own clock: whoever takes over an API process gets no more than this.
import type { CurrencyCode, Network } from '../core/currency.ts';
import { formatAmount, greatest, minus, plus, sum } from '../core/money.ts';
import { SigningRefused } from './refused.ts';
import type { Leaving as Left, SignatureIndex } from './signature-index.ts';

/** In minor units, network fees included: of one payout, of all in any hour, and of all in any 24 hours. Null = no limit. */
export type Limit = { readonly payout: bigint | null; readonly hour: bigint | null; readonly day: bigint | null };
export type SignerLimits = Readonly<Partial<Record<CurrencyCode, Limit>>>;

const HOUR_MS = 3_600_000;
/** The longest time for which something counts. */
export const DAY_MS = 24 * HOUR_MS;

export type Leaving = {
  readonly network: Network;
  readonly currency: CurrencyCode;
  readonly batchId: string;
  /** What each payout takes: its amount and its share of the fee. */
  readonly payouts: readonly { readonly id: string; readonly amount: bigint }[];
  /** The system's clock. */
  readonly nowMs: number;
  /** A clock that nobody sets. */
  readonly steadyMs: number;
};

type Clocks = Pick<Leaving, 'nowMs' | 'steadyMs'>;

/** When it was first looked at, on the steady clock, and its age then. */
type Seen = { readonly ageMs: number; readonly steadyMs: number };
const firstSeen = new WeakMap<Left, Seen>();

/**
 * How long ago something left: as its date says when it is first looked at, and from then on by the clock that nobody sets. A clock that jumps ahead
 * makes nothing older. What one that was set back leaves in the future has left before now, and nobody knows when: it counts as of the moment in
 * which that is seen, and not until its date comes, which may take years.
 */
function ageMs(one: Left, { nowMs, steadyMs }: Clocks): number {
  const seen = firstSeen.get(one) ?? { ageMs: Math.max(0, nowMs - one.atMs), steadyMs };
  firstSeen.set(one, seen);
  return seen.ageMs + steadyMs - seen.steadyMs;
}

/** Has something written down with the time of now, and looks at it while the clock is still the one that has dated it. */
export async function dated<T>(
  clocks: SetAndSteady,
  index: Pick<SignatureIndex, 'leaving'>,
  write: (nowMs: number) => Promise<T>,
): Promise<T> {
  const time = timeOf(clocks);
  const written = await write(time.nowMs);
  const left = index.leaving();
  for (let at = left.length - 1; at >= 0 && !firstSeen.has(left[at] as Left); at--) ageMs(left[at] as Left, time);
  return written;
}

/** The system's clock, and one that nobody sets; absent: that of this process. */
export type SetAndSteady = { readonly now: () => number; readonly steady?: () => number };

/** Looks at what a journal has as it is opened: its dates count by the clock of then, and by no later setting of it. */
export function noteAges(clocks: SetAndSteady, left: readonly Left[]): void {
  const time = timeOf(clocks);
  for (const one of left) ageMs(one, time);
}

/** What both clocks say now. */
export function timeOf(clocks: SetAndSteady): Clocks {
  return { nowMs: clocks.now(), steadyMs: clocks.steady?.() ?? performance.now() };
}

/**
 * @param index of the journal that is asked
 * @param besides what left and is not in that
 * @throws SigningRefused
 */
export function checkLimits(
  limits: SignerLimits,
  leaving: Leaving,
  index: Pick<SignatureIndex, 'leavingOf' | 'leaving'>,
  besides: readonly Left[] = [],
): void {
  const { network, currency, batchId, payouts } = leaving;
  const limit = limits[currency];
  if (limit === undefined) {
    if (network !== 'mainnet') return;
    throw new SigningRefused(
      'limit',
      `BURSAR_SIGNER_LIMITS names no limits for ${currency}: on mainnet nothing is signed without`,
    );
  }
  const inWords = (amount: bigint): string => `${formatAmount(amount, currency)} ${currency}`;
  for (const { id, amount } of payouts) {
    if (limit.payout !== null && amount > limit.payout)
      throw new SigningRefused(
        'limit',
        `payout ${id} takes ${inWords(amount)}, and the limit of one is ${inWords(limit.payout)}`,
      );
  }
  const whole = sum(payouts.map(({ amount }) => amount));
  // a replacement takes only what it takes more than the dearest before it
  const more = greatest(0n, minus(whole, index.leavingOf(batchId, currency)));
  const left = [...index.leaving(), ...besides].filter((one) => one.currency === currency);
  for (const [name, most, spanMs] of [
    ['an hour', limit.hour, HOUR_MS],
    ['a day', limit.day, DAY_MS],
  ] as const) {
    if (most === null) continue;
    const counted = left.filter((one) => ageMs(one, leaving) < spanMs);
    const all = plus(more, sum(counted.map((one) => one.amount)));
    if (all > most)
      throw new SigningRefused('limit', `with this ${inWords(all)} would leave in ${name}, and the limit is ${inWords(most)}`);
  }
}

/**
 * Tries what limits have refused once more, when some of what counted turns out not to have left.
 * @param giveBack looks for that, and says whether there was any
 */
export async function withinLimits<T>(work: () => Promise<T>, giveBack: () => Promise<boolean>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SigningRefused && error.rule === 'limit') || !(await giveBack())) throw error;
    return work();
  }
}
