// About which payouts a person is asked because of what was lost at a place, an address or an account, that they go to.
import { minus, sum } from '../money.ts';

type Payout = { readonly merchantId: bigint; readonly amount: bigint };
/** A payout about which a person is asked, or was. */
export type AskedAbout = Payout & { readonly payoutId: string; readonly isPaid: boolean };
type Asked = Omit<AskedAbout, 'payoutId'>;
type Placed = { readonly amount: bigint; readonly place: string };
type Lost = Placed & { readonly asked: readonly AskedAbout[] };

/**
 * A person is asked until it was about as much as was lost: one that is smaller may be a part of it, or have nothing to do with it. Of each merchant
 * by himself, so that none uses another one's question up, but for what was found paid. What asks for exactly as much comes first, and he is asked about
 * one of exactly as much whatever he said of others: that these were not it says nothing of that one. Nor does what he said of smaller ones say
 * anything of a larger one, until he was asked about one of at least as much as is left.
 * @param waiting in the order in which they are asked about
 */
export function lostQuestions<L extends Lost, W extends Payout & Placed>(
  lost: readonly L[],
  waiting: readonly W[],
): readonly (readonly [L, W])[] {
  const at = Map.groupBy(lost, ({ place }) => place);
  const asked = new Map<L, Asked[]>(lost.map((of) => [of, [...of.asked]]));
  const left = new Set(waiting);
  const pairs: [L, W][] = [];
  const ask = (one: W, isOpen: (of: L, counting: readonly Asked[]) => boolean): void => {
    const of = at.get(one.place)?.find((each) => isOpen(each, countingFor(one.merchantId, asked.get(each) ?? [])));
    if (of === undefined) return;
    left.delete(one);
    asked.get(of)?.push({ merchantId: one.merchantId, amount: one.amount, isPaid: false });
    pairs.push([of, one]);
  };
  const isUncovered = (of: L, counting: readonly Asked[]): boolean => together(counting) < of.amount;
  for (const one of waiting) ask(one, (of, counting) => of.amount === one.amount && isUncovered(of, counting));
  for (const one of left) {
    const isSame = ({ amount }: Pick<Payout, 'amount'>): boolean => amount === one.amount;
    ask(
      one,
      (of, counting) => isSame(of) && !counting.some(isSame) && together(counting.filter(({ isPaid }) => isPaid)) < of.amount,
    );
  }
  for (const one of left) ask(one, (of, counting) => isUncovered(of, counting) || isLarger(one, of, counting));
  return pairs;
}

function isLarger({ amount }: Payout, of: Lost, counting: readonly Asked[]): boolean {
  const isLeft = minus(of.amount, together(counting.filter(({ isPaid }) => isPaid)));
  return isLeft > 0n && counting.every((before) => before.isPaid || (before.amount < isLeft && before.amount < amount));
}

const countingFor = (merchantId: bigint, asked: readonly Asked[]): readonly Asked[] =>
  asked.filter((one) => one.isPaid || one.merchantId === merchantId);
const together = (asked: readonly Asked[]): bigint => sum(asked.map(({ amount }) => amount));
