// The job that delivers events to merchants' endpoints. One worker at a time does it (a session lock), so nothing is written when a delivery
// is taken; a crash repeats what was under way, and loses nothing, because a row waits until its result is committed. It is woken by whoever
// commits an event, by each answer, and when the next attempt is due, and looks at an interval while many events are written.
import { eventId } from '../../core/events.ts';
import { FORMER_SECRET_MS, LONGEST_PAUSES_MS, type WebhookSender } from '../../core/webhooks.ts';
import type { Context } from '../../flow/context.ts';
import {
  type Attempt,
  DELIVERIES_JOB,
  type Delivery,
  dueDeliveries,
  forgetDeliveries,
  lastOutcomes,
  recallDeliveries,
  waitingWebhooks,
  writeAttempts,
} from '../../store/deliveries/deliveries.ts';
import { readWebhooks, recallSecrets } from '../../store/deliveries/webhooks.ts';
import type { Job } from '../loop.ts';
import { attempt } from './attempt.ts';
import { beginner } from './beginning.ts';
import { type Endpoint, metNow, wantedFor } from './endpoint.ts';
import { LEARNED_OF, paceAfter, paceOf, restMs, takenAtOnce } from './pace.ts';
import { createPolling } from './polling.ts';
import { createSlots } from './slots.ts';
import { createTurns } from './turns.ts';

const FORGET_AT_ONCE = 1_000;
/** How long a run writes results before it looks at the others: a look for a few of them costs more than writing them. */
const WRITTEN_WITHIN_MS = 50;
/** A statement has a limit, and all that waits may have to be changed. */
const RECALL_AT_ONCE = 5_000;
/** Another worker delivers: it may end at any time. */
const STANDBY_MS = 5_000;
/** A clock that was set forward, or a machine that slept, makes due what waits earlier than a timer says, and whatever was not told must be found. */
const LONGEST_PAUSE_MS = 60_000;
/** An endpoint whose secret cannot be opened is tried again after this. */
const UNREADABLE_MS = 60_000;
/** A smaller difference is no setting: the clocks are read one after the other, and are corrected a little all the time. */
const LEAST_SETTING_MS = 2_000;
/** With very many endpoints a look takes long, so answers cause the next one only after this many times its duration. */
const LOOK_SHARE = 4;

export type Deliveries = {
  readonly job: Job;
  /** Begins nothing more; resolves when what is under way has ended, or `giveUp` aborts, and results are written. */
  finish(giveUp: AbortSignal): Promise<void>;
};

/** @param report receives, once, what keeps an endpoint from being delivered to */
export function createDeliveries(
  ctx: Context,
  send: WebhookSender,
  report: (endpoint: string, error: unknown) => void,
): Deliveries {
  const { clock } = ctx.ports;
  const endpoints = new Map<bigint, Endpoint>();
  /** Those of them that have something queued, whoever began last at the end. There may be thousands that have nothing, and each answer looks at these. */
  const ready = new Map<bigint, Endpoint>();
  const slots = createSlots();
  const beginReady = beginner<Endpoint>(slots, beginNext);
  const takes = ({ webhook, pace }: Endpoint): number => takenAtOnce(pace, slots.shareOf(webhook, pace));
  const underWay = new Set<Promise<void>>();
  const stopping = new AbortController();
  let isFinishing = false;
  let results: Attempt[] = [];
  let due: readonly bigint[] = [];
  /** Until something is due, and until the next of the connections that are kept for new endpoints may be taken, where one of those waits for it. */
  let [pauseMs, newMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let looked = { atMs: Number.NEGATIVE_INFINITY, tookMs: 0 };
  /** The service's time less the machine's, when it was compared last. */
  let aheadMs = Number.POSITIVE_INFINITY;
  const turns = createTurns(takes);
  /** More endpoints have their turn before the next look; more waits for one that is gone than was deleted in its turn. */
  let [areLeft, isLeft, mustLook] = [false, false, false];
  /** How many databases there were before this one. */
  let replaced = 0;
  let wakeJob: () => void = () => undefined;
  const lock = ctx.db.sessionLock(DELIVERIES_JOB, () => {
    // another worker may deliver these now
    for (const endpoint of endpoints.values()) endpoint.queue = [];
    polling.lost();
    wakeJob();
  });
  const polling = createPolling(ctx.db);

  // numbers of events may be those of others there: what was done with them is forgotten, and done again
  ctx.db.identity.onChanged((evidence) => {
    if (evidence === null) return;
    replaced += 1;
    results = [];
    endpoints.clear();
    ready.clear();
    wakeJob();
  });

  /** Writes what there is, and what comes meanwhile, but not for long: there may be no end of it, and others wait to be looked at. */
  async function writeResults(withinMs: number): Promise<void> {
    for (const began = performance.now(); results.length > 0 && performance.now() - began < withinMs; ) {
      const taken = results;
      const before = replaced;
      results = [];
      try {
        await writeAttempts(ctx.db, taken);
      } catch (error) {
        if (before === replaced) results = [...taken, ...results];
        throw error;
      }
      for (const { webhook, eventId } of taken) endpoints.get(webhook)?.open.delete(eventId);
    }
  }

  /** Dates are those of the service's clock: once it is set back, before this worker began too, attempts and secrets would wait for long. */
  async function checkClock(): Promise<void> {
    const nowAheadMs = clock.now() - (clock.steady ?? performance.now.bind(performance))();
    if (nowAheadMs < aheadMs - LEAST_SETTING_MS) {
      const recall = { nowMs: clock.now(), longestMs: LONGEST_PAUSES_MS, limit: RECALL_AT_ONCE };
      while ((await recallDeliveries(ctx.db, recall)) === RECALL_AT_ONCE);
      await recallSecrets(ctx.db, clock.now() + FORMER_SECRET_MS);
    }
    aheadMs = nowAheadMs;
  }

  /** Finds the endpoints for which something waits, and when the next of it is due. */
  async function look(): Promise<void> {
    const began = performance.now();
    turns.begin();
    await checkClock();
    const waiting = await waitingWebhooks(ctx.db);
    const nowMs = clock.now();
    due = waiting.filter(({ dueAtMs }) => dueAtMs <= nowMs).map(({ webhook }) => webhook);
    const later = waiting.filter(({ dueAtMs }) => dueAtMs > nowMs).map(({ dueAtMs }) => dueAtMs - nowMs);
    pauseMs = Math.min(Number.POSITIVE_INFINITY, ...later);
    const known = new Set(waiting.map(({ webhook }) => webhook));
    for (const [number, { open }] of endpoints) if (open.size === 0 && !known.has(number)) forget(number);
    looked = { atMs: performance.now(), tookMs: performance.now() - began };
  }

  function forget(number: bigint): void {
    endpoints.delete(number);
    ready.delete(number);
  }

  /** Reads these endpoints as they are now. What waits for those that are gone is deleted; returns whether some of it is left. */
  async function refresh(numbers: readonly bigint[]): Promise<boolean> {
    const rows = new Map((await readWebhooks(ctx.db, numbers)).map((webhook) => [webhook.number, webhook]));
    const unknown = numbers.filter((number) => !endpoints.has(number));
    // or each one that is away would count as new, and the others would wait among them, after every start and every rest
    const past = unknown.length === 0 ? new Map() : await lastOutcomes(ctx.db, unknown, LEARNED_OF);
    let isMore = false;
    for (const number of numbers) {
      const webhook = rows.get(number);
      const known = endpoints.get(number);
      if (webhook?.enabled === true) {
        if (known === undefined) endpoints.set(number, metNow(webhook, paceOf(past.get(number) ?? [])));
        else known.webhook = webhook;
        continue;
      }
      if (known !== undefined) known.queue = [];
      if (known === undefined || known.open.size === 0) forget(number);
      isMore = (await forgetDeliveries(ctx.db, number, FORGET_AT_ONCE)) === FORGET_AT_ONCE || isMore;
    }
    return isMore;
  }

  async function fill(numbers: readonly bigint[]): Promise<void> {
    const wanted = numbers.flatMap((number) => {
      const endpoint = endpoints.get(number);
      return endpoint === undefined ? [] : [wantedFor(endpoint, takes(endpoint))];
    });
    if (wanted.length === 0) return;
    for (const one of await dueDeliveries(ctx.db, wanted, clock.now())) {
      const endpoint = endpoints.get(one.webhook);
      endpoint?.queue.push(one);
      if (endpoint !== undefined) ready.set(one.webhook, endpoint);
    }
  }

  function begin(isMore: boolean): void {
    if (isFinishing) return;
    newMs = beginReady(ready, clock.now(), isMore) ?? newMs;
  }

  function beginNext(endpoint: Endpoint, giveBack: () => void): void {
    const { number } = endpoint.webhook;
    ready.delete(number);
    ready.set(number, endpoint);
    const delivery = endpoint.queue.shift() as Delivery;
    endpoint.open.add(delivery.event.id);
    const mine = deliver(endpoint, delivery).finally(() => {
      giveBack();
      underWay.delete(mine);
      begin(false);
      wakeJob();
    });
    underWay.add(mine);
  }

  async function deliver(endpoint: Endpoint, delivery: Delivery): Promise<void> {
    const { webhook, open } = endpoint;
    const before = replaced;
    try {
      const { result, trouble, made } = await attempt(ctx, send, { webhook, delivery, signal: stopping.signal });
      if (before !== replaced) return;
      if (result === null) {
        tellOnce(endpoint, `event ${eventId(delivery.event)} for webhook ${webhook.id}`, trouble);
      } else {
        // what was given up may have arrived: it is repeated
        if (stopping.signal.aborted && result.kind === 'failed') return;
        endpoint.pace = paceAfter(endpoint.pace, result, clock.now());
        endpoint.trouble = '';
        // what rests holds nothing in memory
        if (restMs(endpoint.pace, clock.now()) > 0) endpoint.queue = [];
      }
      results.push(made);
    } catch (error) {
      open.delete(delivery.event.id);
      endpoint.queue = [];
      endpoint.pace = { ...endpoint.pace, restsUntilMs: clock.now() + UNREADABLE_MS };
      tellOnce(endpoint, `webhook ${webhook.id}`, error);
    }
  }

  function tellOnce(endpoint: Endpoint, whose: string, error: unknown): void {
    const trouble = `${whose}: ${String(error)}`;
    if (trouble !== endpoint.trouble) report(whose, error);
    endpoint.trouble = trouble;
  }

  async function run(hurried: boolean): Promise<boolean> {
    await writeResults(WRITTEN_WITHIN_MS);
    if (!(await lock.acquire())) {
      await lock.terminateStaleHolder();
      pauseMs = STANDBY_MS;
      return false;
    }
    mustLook = (await polling.update(hurried)) || hurried || mustLook;
    const isDue = performance.now() - looked.atMs >= LOOK_SHARE * looked.tookMs;
    if (mustLook || isLeft || (!areLeft && (isDue || underWay.size === 0))) await look();
    mustLook = false;
    [areLeft, isLeft] = [false, false];
    newMs = Number.POSITIVE_INFINITY;
    if (due.length === 0) return false;
    const turn = turns.choose(due, endpoints, clock.now());
    pauseMs = Math.min(pauseMs, turn.restMs);
    // one that was removed or changed since is not sent to as it was
    const queued = hurried ? [...ready.keys()] : [];
    isLeft = await refresh([...new Set([...turn.chosen, ...queued])]);
    await fill(turn.chosen);
    begin(true);
    areLeft = turn.areLeft;
    // nothing wakes this job while all that it has begun hang: who stands behind them must not wait for that
    return isLeft || areLeft;
  }

  return {
    job: {
      name: DELIVERIES_JOB,
      everyMs: () => Math.min(polling.pauseMs(), pauseMs, newMs, LONGEST_PAUSE_MS),
      urgent: true,
      run(hurried = false, wake = () => undefined) {
        wakeJob = () => wake(DELIVERIES_JOB);
        return run(hurried);
      },
    },
    async finish(giveUp) {
      isFinishing = true;
      giveUp.addEventListener('abort', () => stopping.abort());
      await Promise.all(underWay);
      await writeResults(Number.POSITIVE_INFINITY);
      await polling.end();
      await lock.release();
    },
  };
}
