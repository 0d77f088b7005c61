// About which payouts a person is asked because of what was lost at a place, an address or an account, that they go to.
import { sum } from '../money.ts';

type Payout = { readonly merchantId: bigint; readonly amount: bigint };
/** A payout about which a person is asked, or was. */
export type AskedAbout = Payout & { readonly payoutId: string; readonly isPaid: boolean };
type Placed = { readonly amount: bigint; readonly place: string };
type Lost = Placed & { readonly asked: readonly AskedAbout[] };

/**
 * A person is asked until it was about as much as was lost: one that is smaller may be a part of it, or have nothing to do with it. Of each merchant
 * by himself, so that none uses another one's question up, but for what was found paid. What asks for exactly as much comes first.
 * @param waiting in the order in which they are asked about
 */
export function lostQuestions<L extends Lost, W extends Payout & Placed>(
  lost: readonly L[],
  waiting: readonly W[],
): readonly (readonly [L, W])[] {
  const at = Map.groupBy(lost, ({ place }) => place);
  const asked = new Map<L, Pick<AskedAbout, 'merchantId' | 'amount' | 'isPaid'>[]>(lost.map((of) => [of, [...of.asked]]));
  const left = new Set(waiting);
  const pairs: [L, W][] = [];
  const ask = (one: W, isRight: (of: L) => boolean): void => {
    const of = at.get(one.place)?.find((each) => isRight(each) && uncovered(each.amount, asked.get(each) ?? [], one.merchantId));
    if (of === undefined) return;
    left.delete(one);
    asked.get(of)?.push({ merchantId: one.merchantId, amount: one.amount, isPaid: false });
    pairs.push([of, one]);
  };
  for (const one of waiting) ask(one, ({ amount }) => amount === one.amount);
  for (const one of left) ask(one, () => true);
  return pairs;
}

function uncovered(lost: bigint, asked: readonly Omit<AskedAbout, 'payoutId'>[], merchantId: bigint): boolean {
  const counting = asked.filter((one) => one.isPaid || one.merchantId === merchantId);
  return sum(counting.map(({ amount }) => amount)) < lost;
}
