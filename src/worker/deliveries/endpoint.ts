// An endpoint as this worker knows it while something waits for it, and what is taken of that.
import type { Delivery, Wanted } from '../../store/deliveries/deliveries.ts';
import type { Webhook } from '../../store/deliveries/webhooks.ts';
import type { Pace } from './pace.ts';

export type Endpoint = {
  webhook: Webhook;
  pace: Pace;
  /** Taken, and not begun. */
  queue: Delivery[];
  /** Events that are under way, or whose result is not written yet. */
  readonly open: Set<bigint>;
  /** Whether what has failed before came first when something was taken last. */
  isAgainsTurn: boolean;
  trouble: string;
};

/** One that was just met: nothing of it is under way. */
export const metNow = (webhook: Webhook, pace: Pace): Endpoint => ({
  webhook,
  pace,
  queue: [],
  open: new Set(),
  isAgainsTurn: false,
  trouble: '',
});

/** What is taken for it next: half of it may be what has failed before, and where that is one at a time every other one. */
export function wantedFor(endpoint: Endpoint, count: number): Wanted {
  endpoint.isAgainsTurn = !endpoint.isAgainsTurn;
  return {
    webhook: endpoint.webhook.number,
    count,
    again: count === 1 ? Number(endpoint.isAgainsTurn) : Math.floor(count / 2),
    without: [...endpoint.open, ...endpoint.queue.map(({ event }) => event.id)],
  };
}
