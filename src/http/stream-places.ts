// How many streams are open at once: of this process, and of one merchant or address in it. When all places are taken, whoever has fewer than another
// gets one of those of who has most: a few who open all that they may keep nobody else out.
import { Refusal } from '../core/refusal.ts';

export type PlaceLimits = { readonly ofAll: number; readonly ofOne: number };
export const STREAM_LIMITS: PlaceLimits = { ofAll: 1_000, ofOne: 100 };
const RETRY_AFTER_SECONDS = 5;

/**
 * Places for streams of merchants, or of addresses.
 * @param names what too many of one are called
 * @param endOneOf ends an open stream of this one and gives its place back at once; false where none of his is open yet
 * @returns takes a place, and returns what gives it back and is called once. Refused: rate_limited when this one has too many; overloaded when all are taken
 *   and nobody would have as many left as this one gets
 */
export function createPlaces<Holder>(
  { ofAll, ofOne }: PlaceLimits,
  names: string,
  endOneOf: (holder: Holder) => boolean,
): (holder: Holder) => () => void {
  const places = new Map<Holder, number>();
  let all = 0;

  function give(holder: Holder): void {
    all -= 1;
    const left = (places.get(holder) ?? 1) - 1;
    if (left === 0) places.delete(holder);
    else places.set(holder, left);
  }

  /** Of whoever has at least as many as this one when one of his has ended. */
  function endOneFor(mine: number): boolean {
    const [first] = [...places].toSorted(([, one], [, other]) => other - one);
    return first !== undefined && first[1] > mine + 1 && endOneOf(first[0]);
  }

  return (holder) => {
    const mine = places.get(holder) ?? 0;
    if (mine >= ofOne) {
      const message = `At most ${ofOne} ${names} are open at once.`;
      throw new Refusal('rate_limited', { message, retryAfterSeconds: RETRY_AFTER_SECONDS });
    }
    if (all >= ofAll && !endOneFor(mine)) throw new Refusal('overloaded');
    all += 1;
    places.set(holder, mine + 1);
    return () => give(holder);
  };
}
