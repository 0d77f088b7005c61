// How many streams of events are open at once: of this process, and of one merchant in it. When all places are taken, whoever has fewer than another
// gets one of those of the merchant who has most: a few merchants who open all that they may keep nobody else out.
import { Refusal } from '../core/refusal.ts';

export type PlaceLimits = { readonly ofAll: number; readonly ofMerchant: number };
export const STREAM_LIMITS: PlaceLimits = { ofAll: 1_000, ofMerchant: 100 };
const RETRY_AFTER_SECONDS = 5;

/**
 * Places for streams.
 * @param endOneOf ends an open stream of this merchant and gives its place back at once; false where none of his is open yet
 * @returns takes a place, and returns what gives it back and is called once. Refused: rate_limited when this merchant has too many; overloaded when all are taken
 *   and nobody would have as many left as this merchant gets
 */
export function createPlaces(
  { ofAll, ofMerchant }: PlaceLimits,
  endOneOf: (merchantId: bigint) => boolean,
): (merchantId: bigint) => () => void {
  const places = new Map<bigint, number>();
  let all = 0;

  function give(merchantId: bigint): void {
    all -= 1;
    const left = (places.get(merchantId) ?? 1) - 1;
    if (left === 0) places.delete(merchantId);
    else places.set(merchantId, left);
  }

  /** Of whoever has at least as many as this merchant when one of his has ended. */
  function endOneFor(mine: number): boolean {
    const [first] = [...places].toSorted(([, one], [, other]) => other - one);
    return first !== undefined && first[1] > mine + 1 && endOneOf(first[0]);
  }

  return (merchantId) => {
    const mine = places.get(merchantId) ?? 0;
    if (mine >= ofMerchant) {
      const message = `At most ${ofMerchant} event streams of a merchant are open at once.`;
      throw new Refusal('rate_limited', { message, retryAfterSeconds: RETRY_AFTER_SECONDS });
    }
    if (all >= ofAll && !endOneFor(mine)) throw new Refusal('overloaded');
    all += 1;
    places.set(merchantId, mine + 1);
    return () => give(merchantId);
  };
}
