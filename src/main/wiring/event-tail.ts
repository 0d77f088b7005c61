// Follows the events that are written, for all streams of this process: one session hears of them, one reading at a time fetches them, and
// at rest nothing is asked. Numbers are committed in another order than they are drawn: the reader waits for a missing number until it is there, or
// nobody is left who may have drawn it.
import { randomBytes } from 'node:crypto';
import { Refusal } from '../../core/refusal.ts';
import type { EventTail, TailListener } from '../../flow/events/stream.ts';
import {
  type EventNumber,
  eventNumbersAfter,
  eventWriters,
  lastEventNumber,
  lastNumberUpTo,
  readEvents,
  registerStreams,
  STREAMS,
  unregisterStreams,
  WAKING_CHANNEL,
} from '../../store/deliveries/event-tail.ts';
import type { Database } from '../../store/postgres/connect.ts';

const READ_AT_ONCE = 1_000;
/** Pauses while a number is missing; a notification ends one early. */
const FIRST_PAUSE_MS = 2;
const LONGEST_PAUSE_MS = 200;
const AFTER_TROUBLE_MS = 500;
/** What was being written when a stream is opened must have ended by then. */
const SETTLED_WITHIN_MS = 10_000;
/** How long the rows of a process that was killed make events notify nobody. */
const KEPT_SECONDS = 600;
const PROLONG_EVERY_MS = 60_000;

type Missing = { readonly upTo: bigint; readonly writers: ReadonlySet<string>; readonly sinceMs: number; isTold: boolean };
type Waiter = { readonly upTo: bigint; readonly resolve: () => void };

/** @param onTrouble receives what failed; it is tried again */
export function openEventTail(db: Database, onTrouble: (error: unknown) => void): EventTail & { close(): Promise<void> } {
  const self = randomBytes(9).toString('base64url');
  const followed = new Map<bigint, number>();
  /** Whose events notify, or will. */
  const registered = new Map<bigint, Promise<unknown>>();
  const waiters = new Set<Waiter>();
  let listener: TailListener = { told: () => undefined, restarted: () => undefined };
  let settled: bigint | null = null;
  /** The last event up to there: another one stands in its place when the database was put back and has written more since. */
  let lastSettled: EventNumber | null = null;
  /** Numbers up to here were drawn. */
  let drawn = 0n;
  /** Who may still commit a number up to `upTo`. */
  let missing: Missing | null = null;
  let isWoken = false;
  let isSuspect = false;
  let endPause: () => void = () => undefined;
  let reading: Promise<void> | null = null;
  let registering: Promise<unknown> = Promise.resolve();
  let stopListening: Promise<() => Promise<void>> | null = null;
  let prolonging: NodeJS.Timeout | null = null;

  /** One registration at a time, so that the last word counts. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = registering.then(work);
    registering = mine.catch(() => undefined);
    return mine;
  }
  const register = () => inTurn(() => registerStreams(db, self, [...followed.keys()], KEPT_SECONDS));

  function wake(): void {
    isWoken = true;
    endPause();
    reading ??= readOn().finally(() => {
      reading = null;
      if (isWoken && followed.size > 0) wake();
    });
  }
  /** Notifications may have been missed, and it may be another database now. */
  function suspect(): void {
    isSuspect = true;
    wake();
  }
  function pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async function readOn(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (followed.size > 0) {
      isWoken = false;
      try {
        if (isSuspect) await lookAgain();
        if (followed.size === 0) return;
        const isMissing = settled === null ? await waitForFirst() : await readFrom(settled);
        if (isMissing) {
          tellOfWait();
          await pause(pauseMs);
          pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
        } else if (!isWoken) return;
        else pauseMs = FIRST_PAUSE_MS;
      } catch (error) {
        onTrouble(error);
        await pause(AFTER_TROUBLE_MS);
      }
    }
  }

  /** Once for each number that is missing for long. */
  function tellOfWait(): void {
    if (missing === null || missing.isTold || performance.now() - missing.sinceMs < SETTLED_WITHIN_MS) return;
    missing.isTold = true;
    onTrouble(new Error('a database transaction that writes events does not end: no stream tells what was written since'));
  }

  async function lookAgain(): Promise<void> {
    isSuspect = false;
    try {
      await register();
      const last = await lastEventNumber(db);
      const known = settled === null ? null : await lastNumberUpTo(db, settled);
      if (settled !== null && (last < settled || known?.mark !== lastSettled?.mark)) {
        settled = null;
        missing = null;
        listener.restarted();
      }
      drawn = last;
    } catch (error) {
      isSuspect = true;
      throw error;
    }
  }

  /** Whether somebody is left who may commit a number up to this one. */
  async function isOpen(upTo: bigint): Promise<boolean> {
    const now = await eventWriters(db);
    const before = missing;
    const writers = before === null ? now : now.filter((one) => before.writers.has(one));
    const fresh = { upTo, sinceMs: performance.now(), isTold: false };
    missing = { ...(before ?? fresh), writers: new Set(writers) };
    return writers.length > 0;
  }

  /** Nobody followed anything before: begins where everything is settled. Returns whether that must be waited for. */
  async function waitForFirst(): Promise<boolean> {
    if (await isOpen(drawn)) return true;
    const upTo = missing?.upTo ?? drawn;
    lastSettled = await lastNumberUpTo(db, upTo);
    await tell(upTo, []);
    return settled !== null && settled < drawn;
  }

  /** Tells what is there without a gap; returns whether something is missing. */
  async function readFrom(from: bigint): Promise<boolean> {
    const found = await eventNumbersAfter(db, from, READ_AT_ONCE);
    const gap = found.findIndex(({ id }, at) => id !== from + BigInt(at) + 1n);
    const whole = gap === -1 ? found : found.slice(0, gap);
    const last = whole.at(-1);
    if (last !== undefined) {
      await tell(last.id, whole);
      isWoken = true;
      return false;
    }
    const highest = found.at(-1)?.id ?? 0n;
    const upTo = highest > drawn ? highest : drawn;
    if (upTo <= from) return false;
    if (await isOpen(upTo)) return true;
    // all who could have drawn these have ended: what is not there now will never be
    const bound = missing?.upTo ?? upTo;
    const all = (await eventNumbersAfter(db, from, READ_AT_ONCE)).filter(({ id }) => id <= bound);
    await tell(all.length < READ_AT_ONCE ? bound : (all.at(-1)?.id ?? bound), all);
    isWoken = true;
    return false;
  }

  async function tell(upTo: bigint, numbers: readonly EventNumber[]): Promise<void> {
    const wanted = numbers.filter(({ merchantId }) => followed.has(merchantId)).map(({ id }) => id);
    const events = wanted.length === 0 ? [] : await readEvents(db, wanted);
    // the last one has left meanwhile: whoever comes begins anew
    if (followed.size === 0) return;
    settled = upTo;
    lastSettled = numbers.at(-1) ?? lastSettled;
    if (missing !== null && missing.upTo <= upTo) missing = null;
    listener.told(upTo, events);
    for (const waiter of waiters) if (waiter.upTo <= upTo) waiter.resolve();
  }

  async function settledTo(upTo: bigint): Promise<void> {
    if (settled !== null && settled >= upTo) return;
    let waiter: Waiter | null = null;
    let timer: NodeJS.Timeout | null = null;
    try {
      await new Promise<void>((resolve, reject) => {
        waiter = { upTo, resolve };
        waiters.add(waiter);
        timer = setTimeout(() => reject(new Refusal('overloaded')), SETTLED_WITHIN_MS);
      });
    } finally {
      if (waiter !== null) waiters.delete(waiter);
      if (timer !== null) clearTimeout(timer);
    }
  }

  function leave(merchantId: bigint): void {
    const count = (followed.get(merchantId) ?? 0) - 1;
    if (count > 0) {
      followed.set(merchantId, count);
      return;
    }
    followed.delete(merchantId);
    registered.delete(merchantId);
    inTurn(async () => {
      if (!followed.has(merchantId)) await unregisterStreams(db, self, [merchantId]);
    }).catch(onTrouble);
    if (followed.size === 0) rest();
  }

  /** Nobody is followed any more: nothing is heard, and nothing prolonged. */
  function rest(): void {
    settled = null;
    lastSettled = null;
    missing = null;
    if (prolonging !== null) clearInterval(prolonging);
    prolonging = null;
    void stopListening?.then((stop) => stop()).catch(onTrouble);
    stopListening = null;
    endPause();
  }

  async function begin(merchantId: bigint): Promise<void> {
    if (stopListening === null) {
      stopListening = db.listen([WAKING_CHANNEL], (_channel, woken) => woken.split(',').includes(STREAMS) && wake(), suspect);
      // and a look: the rows may have been missing meanwhile, as when the database's clock was set forward, and what answers may be another
      // database than the one that notifies
      prolonging = setInterval(suspect, PROLONG_EVERY_MS).unref();
    }
    await stopListening;
    const mine = registered.get(merchantId) ?? inTurn(() => registerStreams(db, self, [merchantId], KEPT_SECONDS));
    registered.set(merchantId, mine);
    try {
      await mine;
    } catch (error) {
      if (registered.get(merchantId) === mine) registered.delete(merchantId);
      throw error;
    }
  }

  return {
    listen: (one) => {
      listener = one;
    },
    settled: () => settled,
    async join(merchantId) {
      const count = followed.get(merchantId) ?? 0;
      followed.set(merchantId, count + 1);
      try {
        await begin(merchantId);
        const last = await lastEventNumber(db);
        if (last > drawn) drawn = last;
        wake();
        await settledTo(last);
        return last;
      } catch (error) {
        leave(merchantId);
        throw error;
      }
    },
    leave,
    async close() {
      const left = [...followed.keys()];
      followed.clear();
      registered.clear();
      rest();
      await reading;
      await registering;
      if (left.length > 0) await unregisterStreams(db, self, left).catch(onTrouble);
    },
  };
}
