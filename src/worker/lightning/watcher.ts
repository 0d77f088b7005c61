// Reads our Lightning node: records what it says is paid, as it says so and again after every gap, and closes the invoices whose window has
// ended. The time up to which everything is read moves on only when no such invoice can be paid any more, so nothing times out that was.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { InvoiceFacts, LightningCondition, LightningPort } from '../../core/lightning/port.ts';
import type { Context } from '../../flow/context.ts';
import { closeInvoices, dropReservation, dueInvoices, nextInvoiceDue, openHashes } from '../../store/lightning/invoices.ts';
import { beginLightning, recordLightning, setLightningRead } from '../../store/lightning/node-reading.ts';
import { readFromFirst, readSettleIndex, recordSettled } from '../../store/lightning/settlements.ts';
import { createOwnClock } from '../chain/own-clock.ts';
import { type PassResult, STANDBY, troubleOf } from '../chain/pass-result.ts';
import { createReadSchedule } from './read-schedule.ts';

export type LightningWatcher = {
  /** Reads once. @param options.quiet nobody waits for the result */
  pass(options?: { readonly quiet?: boolean }): Promise<PassResult>;
  /** Calls back when something was paid or the subscription broke: there is something to do at once. */
  onHint(hint: () => void): void;
  /** The next time at which a transaction over Lightning is due: the time up to which is read is written then; null = nothing is due. */
  expect(dueAtMs: number | null): void;
  /** How many milliseconds until the next pass is useful, if no hint comes before. @param chance from 0 to 1: spreads several workers */
  restMs(chance?: number): number;
  close(): Promise<void>;
};

/** How often the node is asked how it is. */
const CONDITION_EVERY_MS = 5_000;
/** A subscription says nothing while nothing is paid: it is made anew, and what is open compared, this often. */
const RESUME_EVERY_MS = 300_000;
/** Whoever reserved an invoice and has not written its transaction by then has given up. */
const RESERVED_MS = 120_000;
const DUE_AT_ONCE = 100;
const ASKED_AT_ONCE = 8;
/** With more open invoices than this a caller's look does not compare them all. */
const MOST_COMPARED = 1_000;

type Ready = Extract<LightningCondition, { state: 'ready' }>;
type Subscription = { readonly identity: string; readonly sinceMs: number; isBroken: boolean; close(): void };

/**
 * Watches the node's invoices: what it announces is recorded at once, what is unknown is looked up. One worker of all does so at a time (a
 * lock of the database).
 */
export function createLightningWatcher(ctx: Context, port: LightningPort): LightningWatcher {
  const lock = ctx.db.sessionLock(`chain-watcher ${LIGHTNING.code}`);
  const { clock } = ctx.ports;
  let hint = (): void => undefined;
  let subscription: Subscription | null = null;
  let condition: { readonly said: LightningCondition; readonly atMs: number } | null = null;
  /** Announced and not recorded yet. */
  let queue: InvoiceFacts[] = [];
  let recording: Promise<void> = Promise.resolve();
  let alarms: string[] = [];
  const schedule = createReadSchedule();
  let generation = ctx.db.identity.generation;
  const ownClock = createOwnClock(ctx, LIGHTNING.code, () => schedule.forget());

  function record(): Promise<void> {
    recording = recording
      .catch(() => undefined)
      .then(async () => {
        const taken = queue;
        if (taken.length === 0) return;
        queue = [];
        try {
          await recordSettled(ctx.db, subscription?.identity ?? null, taken, clock.now());
        } catch (error) {
          // the next subscription begins after what was recorded
          if (subscription !== null) subscription.isBroken = true;
          throw error;
        }
      });
    return recording;
  }

  function unsubscribe(): void {
    subscription?.close();
    subscription = null;
    queue = [];
  }

  async function subscribe({ identity }: Ready): Promise<void> {
    unsubscribe();
    await beginLightning(ctx.db, clock.now());
    const after = (await readSettleIndex(ctx.db, identity)) ?? 0n;
    const made: Subscription = { identity, sinceMs: performance.now(), isBroken: false, close: () => undefined };
    const opened = port.subscribe(after, {
      onSettled(invoice) {
        if (subscription !== made) return;
        queue.push(invoice);
        record().catch(() => hint());
      },
      onEnd() {
        made.isBroken = true;
        if (subscription === made) hint();
      },
    });
    subscription = Object.assign(made, { close: opened.close });
    await compareOpen(after);
  }

  /** Looks up what we hold as open and the node does not. @param after the settlements up to here are recorded, as far as we know */
  async function compareOpen(after: bigint | null): Promise<void> {
    const ours = await openHashes(ctx.db, after === null ? MOST_COMPARED : 1_000_000);
    if (ours.length === 0) return;
    const open = new Set<string>();
    for (let from = 0n; ; ) {
      const page = await port.invoices(from, { openOnly: true });
      for (const one of page) open.add(one.paymentHash);
      const last = page.at(-1)?.addIndex ?? 0n;
      if (last <= from) break;
      from = last;
    }
    const settled: InvoiceFacts[] = [];
    await each(
      ours.filter((hash) => !open.has(hash)),
      async (hash) => {
        const facts = await port.invoice(hash);
        if (facts?.state === 'settled') settled.push(facts);
      },
    );
    await recordSettled(ctx.db, null, settled, clock.now());
    if (after === null || subscription === null || !settled.some(({ settleIndex }) => settleIndex <= after)) return;
    // what it settled now has a number that it had given before: it has forgotten what came after, and would announce nothing
    alarms.push('the node counts its settlements anew: it was restored from an older state');
    await readFromFirst(ctx.db, subscription.identity);
    subscription.isBroken = true;
  }

  /** Cancels what must not be paid any more. @returns whether there is none left */
  async function closeDue(nowMs: number): Promise<boolean> {
    const due = await dueInvoices(ctx.db, { nowMs, reservedBeforeMs: nowMs - RESERVED_MS, limit: DUE_AT_ONCE });
    if (due.length === 0) {
      schedule.looked(nowMs, await nextInvoiceDue(ctx.db, RESERVED_MS));
      return true;
    }
    const closed: string[] = [];
    const settled: InvoiceFacts[] = [];
    await each(due, async ({ paymentHash, transactionId }) => {
      // whoever comes back for a reservation meanwhile is given another one, and not an invoice that nobody can pay
      if (transactionId === null && !(await dropReservation(ctx.db, paymentHash))) return;
      const said = await port.cancelInvoice(paymentHash);
      const facts = said === 'settled' ? await port.invoice(paymentHash) : null;
      if (facts?.state === 'settled') settled.push(facts);
      else if (said !== 'settled') closed.push(paymentHash);
      if (said === 'unknown' && transactionId !== null) alarms.push(`the node does not know the invoice of ${transactionId}`);
    });
    await recordSettled(ctx.db, null, settled, nowMs);
    await closeInvoices(ctx.db, closed);
    return due.length < DUE_AT_ONCE && closed.length + settled.length === due.length;
  }

  async function askCondition(quiet: boolean): Promise<LightningCondition> {
    const nowMs = performance.now();
    const isKept = quiet && subscription?.isBroken !== true;
    if (isKept && condition?.said.state === 'ready' && nowMs - condition.atMs < CONDITION_EVERY_MS) return condition.said;
    const atMs = clock.now();
    const said = await port.condition();
    condition = { said, atMs: nowMs };
    if (!quiet || schedule.isNews(said, atMs)) await recordCondition(said, atMs);
    return said;
  }

  async function recordCondition(said: LightningCondition, atMs: number): Promise<void> {
    await recordLightning(ctx.db, said, atMs);
    schedule.recorded(said, atMs);
  }

  async function read(said: Ready, quiet: boolean): Promise<boolean> {
    const nowMs = clock.now();
    const isOld = subscription !== null && performance.now() - subscription.sinceMs > RESUME_EVERY_MS;
    if (subscription === null || subscription.isBroken || isOld || subscription.identity !== said.identity) await subscribe(said);
    else if (!quiet) await compareOpen(null);
    await record();
    const isDone = (quiet && !schedule.mayBeDue(nowMs)) || (await closeDue(nowMs));
    if (isDone && (!quiet || schedule.mustWrite(nowMs))) {
      await setLightningRead(ctx.db, nowMs);
      schedule.wrote(nowMs);
    }
    return isDone;
  }

  /** All that was derived from a database that was replaced, or that another worker may have changed. */
  function beginAnew(): void {
    unsubscribe();
    condition = null;
    schedule.forget();
  }

  return {
    async pass({ quiet = false } = {}) {
      if (!(await lock.acquire())) {
        await lock.terminateStaleHolder();
        beginAnew();
        ownClock.forget();
        return STANDBY;
      }
      if (generation !== ctx.db.identity.generation) beginAnew();
      generation = ctx.db.identity.generation;
      alarms = [];
      await ownClock.look();
      const said = await askCondition(quiet);
      if (said.state !== 'ready') {
        unsubscribe();
        schedule.stopped();
        return resultOf(said.state, said.reason, { caughtUp: false, more: false });
      }
      try {
        const caughtUp = await read(said, quiet);
        return { ...resultOf('ready', null, { caughtUp, more: !caughtUp }), alarms };
      } catch (error) {
        const trouble = troubleOf(error);
        if (trouble === null) throw error;
        beginAnew();
        await recordCondition(trouble, clock.now());
        return resultOf(trouble.state, trouble.reason, { caughtUp: false, more: false });
      }
    },
    onHint(callback) {
      hint = callback;
    },
    expect: schedule.expect,
    restMs: (chance = 0) => schedule.restMs(clock.now(), chance),
    async close() {
      unsubscribe();
      await recording.catch(() => undefined);
      await lock.release();
      port.close();
    },
  };
}

function resultOf(state: PassResult['state'], reason: string | null, part: Pick<PassResult, 'caughtUp' | 'more'>): PassResult {
  return { ...STANDBY, role: 'watching', state, reason, ...part };
}

/** Does something with each, a few at a time. */
async function each<T>(list: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  const waiting = [...list];
  const next = async (): Promise<void> => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, next));
}
