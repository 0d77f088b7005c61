// Which of the deliveries that are at hand begin, as far as there are connections for them.
import type { Webhook } from '../../store/deliveries/webhooks.ts';
import { type Pace, restMs } from './pace.ts';
import type { Pools, Slots } from './slots.ts';

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
 * @param isMore whether something was queued since the last time; else only what was given back can begin something
 * @returns milliseconds until one of the connections that are kept for new endpoints may be taken, where one waits for it; else null
 */
export type Begin<E extends AtHand> = (ready: Map<bigint, E>, nowMs: number, isMore: boolean) => number | null;

/** @param beginNext begins the endpoint's next delivery; `giveBack` gives its connection back */
export function beginner<E extends AtHand>(slots: Slots, beginNext: (endpoint: E, giveBack: () => void) => void): Begin<E> {
  const newer = (one: E, other: E): E => (other.webhook.number > one.webhook.number ? other : one);
  /** Whoever waits for one of these may have none until one is given back. There may be thousands, and quick ones answer all the time. */
  const exhausted = new Set<Pools>();
  /**
   * Merchants have turns, or who has one endpoint would stand behind who has hundreds: the next is one of the merchant that had its turn longest
   * ago, and of its endpoints the one that began longest ago.
   */
  function beginInTurns(waiting: readonly E[], mayBegin: (endpoint: E) => boolean): void {
    for (const [pools, sharing] of Map.groupBy(waiting, ({ pace }) => slots.poolsOf(pace))) {
      const { pace } = sharing[0] as E;
      let areTaken = false;
      const lines = [...Map.groupBy(sharing, ({ webhook }) => webhook.merchantId)].map(([merchantId, line]) => ({
        line,
        turn: slots.lastTurn(merchantId, pace),
      }));
      lines.sort((one, other) => one.turn - other.turn);
      for (const { line } of lines) {
        const endpoint = line.shift();
        if (endpoint === undefined) continue;
        if (!slots.isFree(endpoint.pace)) break;
        const giveBack = slots.take(endpoint.webhook, endpoint.pace);
        if (giveBack !== null) {
          areTaken = true;
          beginNext(endpoint, () => {
            exhausted.delete(pools);
            giveBack();
          });
          if (mayBegin(endpoint)) line.push(endpoint);
        }
        // this loop meets it again: of a merchant that may have no more with its other endpoints
        if (line.length > 0) lines.push({ line, turn: 0 });
      }
      if (pools.areShared && !areTaken) exhausted.add(pools);
    }
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

  return (ready, nowMs, isMore) => {
    if (isMore) exhausted.clear();
    const mayBegin = ({ queue, pace, open }: E): boolean =>
      queue.length > 0 && open.size < pace.limit && restMs(pace, nowMs) === 0;
    const inTurns: E[] = [];
    const untried: E[] = [];
    const isNew = ({ pace, open }: E): boolean => !pace.isTried && open.size === 0;
    for (const [number, endpoint] of ready) {
      if (endpoint.queue.length === 0) ready.delete(number);
      else if (!mayBegin(endpoint)) continue;
      else if (exhausted.has(slots.poolsOf(endpoint.pace))) continue;
      else if (slots.isFree(endpoint.pace)) inTurns.push(endpoint);
      else if (isNew(endpoint)) untried.push(endpoint);
    }
    beginInTurns(inTurns, mayBegin);
    for (const endpoint of inTurns) if (isNew(endpoint)) untried.push(endpoint);
    return beginNew(untried);
  };
}
