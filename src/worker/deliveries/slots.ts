// How much may be under way at once: in all, to the endpoints of one merchant, to endpoints that are new, slow or away, and to those that were
// away for long, so that however many of those there are, the others have connections.
import { CAREFUL } from './pace.ts';

const MOST = 256;
const MOST_OF_MERCHANT = 64;
const MOST_CAREFUL = 192;
const MOST_AWAY = 96;

export type Slots = {
  /** Takes one; returns what gives it back, or null when there is none. @param limit of the endpoint's pace */
  take(merchantId: bigint, limit: number): (() => void) | null;
};

/** The slots of one worker process, all free. */
export function createSlots(): Slots {
  let all = 0;
  let careful = 0;
  let away = 0;
  const ofMerchant = new Map<bigint, number>();
  return {
    take(merchantId, limit) {
      const isCareful = limit <= CAREFUL;
      const isAway = limit < CAREFUL;
      const merchants = ofMerchant.get(merchantId) ?? 0;
      if (all >= MOST || merchants >= MOST_OF_MERCHANT) return null;
      if ((isCareful && careful >= MOST_CAREFUL) || (isAway && away >= MOST_AWAY)) return null;
      all++;
      if (isCareful) careful++;
      if (isAway) away++;
      ofMerchant.set(merchantId, merchants + 1);
      return () => {
        all--;
        if (isCareful) careful--;
        if (isAway) away--;
        const left = (ofMerchant.get(merchantId) ?? 1) - 1;
        if (left === 0) ofMerchant.delete(merchantId);
        else ofMerchant.set(merchantId, left);
      };
    },
  };
}
