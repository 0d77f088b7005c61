// Which of the deliveries that are at hand begin, as far as there are connections for them.
import type { Webhook } from '../../store/deliveries/webhooks.ts';
import { CAREFUL, type Pace, restMs } from './pace.ts';
import type { Slots } from './slots.ts';

/** An endpoint with deliveries that may begin. */
export type AtHand = {
  readonly webhook: Pick<Webhook, 'number' | 'merchantId'>;
  readonly pace: Pace;
  readonly queue: readonly unknown[];
  readonly open: ReadonlySet<unknown>;
};

/**
 * Begins what may begin.
 * @param ready those with something queued, whoever began last at the end; those that have nothing are taken out
 * @returns milliseconds until one of the connections that are kept for new endpoints may be taken, where one waits for it; else null
 */
export type Begin<E extends AtHand> = (ready: Map<bigint, E>, nowMs: number) => number | null;

/** @param beginNext begins the endpoint's next delivery; `giveBack` gives its connection back */
export function beginner<E extends AtHand>(slots: Slots, beginNext: (endpoint: E, giveBack: () => void) => void): Begin<E> {
  const newer = (one: E, other: E): E => (other.webhook.number > one.webhook.number ? other : one);
  function take(endpoint: E): boolean {
    const giveBack = slots.take(endpoint.webhook.merchantId, endpoint.pace);
    if (giveBack !== null) beginNext(endpoint, giveBack);
    return giveBack !== null;
  }

  /**
   * Few connections are for these, and many of them may hang: merchants have turns, or who has one endpoint would stand behind who has hundreds.
   * The next is the first of those whose merchant had its turn longest ago.
   */
  function beginInTurns(waiting: readonly E[], mayBegin: (endpoint: E) => boolean): void {
    const full = new Set<bigint>();
    function nextOne(): E | null {
      let [next, turn]: [E | null, number] = [null, Number.POSITIVE_INFINITY];
      for (const one of waiting) {
        const { merchantId } = one.webhook;
        if (!slots.isFree(one.pace) || !mayBegin(one) || full.has(merchantId)) continue;
        const last = slots.lastTurn(merchantId, one.pace);
        if (last < turn) [next, turn] = [one, last];
        if (turn === 0) break;
      }
      return next;
    }
    for (let next = nextOne(); next !== null; next = nextOne()) if (!take(next)) full.add(next.webhook.merchantId);
  }

  /** Of those that are new, never tried and without a connection the newest; where the merchants of all have too many, an answer wakes the job. */
  function beginNew(untried: readonly E[]): number | null {
    if (untried.length === 0) return null;
    const inMs = slots.forNewInMs(performance.now());
    if (inMs > 0) return inMs;
    const able = untried.filter(({ webhook }) => slots.hasRoom(webhook.merchantId));
    if (able.length === 0) return null;
    const newest = able.reduce(newer);
    const giveBack = slots.takeForNew(newest.webhook.merchantId, performance.now());
    if (giveBack !== null) beginNext(newest, giveBack);
    return slots.forNewInMs(performance.now());
  }

  return (ready, nowMs) => {
    const mayBegin = ({ queue, pace, open }: E): boolean =>
      queue.length > 0 && open.size < pace.limit && restMs(pace, nowMs) === 0;
    const quick: E[] = [];
    const inTurns: E[] = [];
    const untried: E[] = [];
    const isNew = ({ pace, open }: E): boolean => !pace.isTried && open.size === 0;
    for (const [number, endpoint] of ready) {
      const { queue, pace } = endpoint;
      if (queue.length === 0) ready.delete(number);
      else if (!mayBegin(endpoint)) continue;
      else if (pace.limit > CAREFUL) quick.push(endpoint);
      else if (slots.isFree(pace)) inTurns.push(endpoint);
      else if (isNew(endpoint)) untried.push(endpoint);
    }
    beginInTurns(inTurns, mayBegin);
    for (const endpoint of inTurns) if (isNew(endpoint)) untried.push(endpoint);
    // whoever has begun goes to the end, where this loop meets it again
    for (const endpoint of quick) if (take(endpoint) && mayBegin(endpoint)) quick.push(endpoint);
    return beginNew(untried);
  };
}
