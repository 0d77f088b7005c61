// The jobs about our Lightning node: its watcher, the last look-up of rule 8, and the comparison of its own list of invoices with the books.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { InvoiceFacts, LightningPort } from '../../core/lightning/port.ts';
import { roundingEntry } from '../../core/lightning/postings.ts';
import type { Context } from '../../flow/context.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import {
  addLightningReceipts,
  ourInvoices,
  readCompared,
  setCompared,
  unbookedFractions,
} from '../../store/lightning/comparison.ts';
import { recordSettled, wantedInvoices } from '../../store/lightning/settlements.ts';
import { readLastComparison } from '../../store/lightning/unknown-invoices.ts';
import { finishLookup } from '../../store/transactions/due.ts';
import { Alarm, createAlarm, type Report } from '../alarm.ts';
import { troubleOf } from '../chain/pass-result.ts';
import type { Job } from '../loop.ts';
import { compareHoldings } from './holdings.ts';
import { finishCancels } from './interrupted-cancels.ts';
import type { SentPayments } from './sent-comparison.ts';
import { type Gap, gapSince, keepUnknown, lookAtUnknown } from './unknown-invoices.ts';
import type { LightningWatcher } from './watcher.ts';

export type Lightning = {
  readonly port: LightningPort;
  readonly watcher: LightningWatcher;
  /** The node's own list of payments; absent where nothing is paid from it. */
  readonly sent?: SentPayments | null;
};

const RECONCILE = `reconcile ${LIGHTNING.code}`;
const LOOKED_UP_AT_ONCE = 100;
const PAGES_AT_ONCE = 20;

/** @param scheduled makes a job that runs each minute of the service's clock, once for all workers */
export function lightningJobs(
  ctx: Context,
  lightning: Lightning,
  report: Report,
  scheduled: (name: string, work: () => Promise<boolean>) => Job,
): readonly Job[] {
  return [
    watchJob(lightning, report),
    lookUpJob(ctx, lightning, report),
    scheduled(RECONCILE, createInvoiceComparison(ctx, lightning, report)),
  ];
}

function watchJob({ watcher }: Lightning, report: Report): Job {
  const name = `chain ${LIGHTNING.code}`;
  const alarm = createAlarm(name, report);
  return {
    name,
    everyMs: (chance) => watcher.restMs(chance),
    urgent: true,
    isFirst: true,
    run: async (hurried = false) => {
      const { state, reason, alarms, more } = await watcher.pass({ quiet: !hurried });
      alarm(reason === null ? '' : `the node is ${state}: ${reason}`);
      for (const one of alarms) report(name, new Alarm(one));
      return more;
    },
  };
}

/** Rule 8: asks the node once more for the invoice of each transaction that wants it. */
export function lookUpJob(ctx: Context, { port }: Lightning, report: Report): Job {
  const name = `look-up ${LIGHTNING.code}`;
  const alarm = createAlarm(name, report);
  return {
    name,
    everyMs: null,
    urgent: true,
    run: async (_hurried, wake = () => undefined) => {
      const beganMs = ctx.ports.clock.now();
      const wanted = await wantedInvoices(ctx.db, LOOKED_UP_AT_ONCE);
      if (wanted.length === 0) return false;
      try {
        const found = await Promise.all(wanted.map(({ paymentHash }) => port.invoice(paymentHash)));
        const settled = found.filter((one): one is InvoiceFacts => one?.state === 'settled');
        await recordSettled(ctx.db, null, settled, beganMs);
      } catch (error) {
        const trouble = troubleOf(error);
        if (trouble === null) throw error;
        alarm(trouble.reason);
        return false;
      }
      alarm('');
      await finishLookup(
        ctx.db,
        wanted.map(({ transactionId }) => transactionId),
        beganMs,
      );
      wake('judge');
      return wanted.length === LOOKED_UP_AT_ONCE;
    },
  };
}

/**
 * Compares the node's own list of invoices with what was recorded, from the first one that may still change: a payment that nobody has told
 * us of is recorded now, and what the node lists as settled is kept for the audit. Books the fractions of satoshis that payers gave too much.
 * @returns what reads on where it ended, some pages at a time, and says whether there is more to read at once
 */
export function createInvoiceComparison(ctx: Context, { port, sent = null }: Lightning, report: Report): () => Promise<boolean> {
  let reading: {
    readonly identity: string;
    readonly beganMs: number;
    readonly gap: Gap | null;
    /** The database that it is compared with. */
    readonly within: string;
    readonly generation: number;
    at: bigint;
    from: bigint;
    isFinal: boolean;
  } | null = null;

  const alarm = createAlarm(RECONCILE, report);
  /** What the macaroon does not permit to read is told; invoices are compared without it. */
  async function holdings(node: Parameters<typeof compareHoldings>[2]): Promise<void> {
    try {
      await compareHoldings(ctx, { port, sent }, node);
      alarm('');
    } catch (error) {
      const trouble = troubleOf(error);
      if (trouble === null) throw error;
      alarm(`what the node has is not compared: ${trouble.reason}`);
    }
  }

  async function begin(identity: string): Promise<NonNullable<typeof reading>> {
    const beganMs = ctx.ports.clock.now();
    const { generation } = ctx.db.identity;
    let at = await readCompared(ctx.db, identity);
    // nothing from the last compared one on: it has forgotten that one, and gives its number to another
    if (at > 0n && (await port.invoices(at - 1n, { openOnly: false })).length === 0) {
      report(RECONCILE, new Alarm('the node lists fewer invoices than before: it was restored from an older state'));
      at = 0n;
    }
    const last = await readLastComparison(ctx.db, identity);
    return { identity, beganMs, gap: gapSince(last, beganMs), within: last.within, generation, at, from: at, isFinal: true };
  }

  async function compare(page: readonly InvoiceFacts[], now: NonNullable<typeof reading>): Promise<void> {
    const ours = await ourInvoices(
      ctx.db,
      page.map(({ paymentHash }) => paymentHash),
    );
    const settled = page.filter(({ paymentHash, state }) => state === 'settled' && ours.has(paymentHash));
    await recordSettled(ctx.db, null, settled, ctx.ports.clock.now());
    await addLightningReceipts(ctx.db, settled);
    await keepUnknown(
      ctx,
      now.identity,
      now.gap,
      page.filter(({ paymentHash }) => !ours.has(paymentHash)),
    );
    for (const { paymentHash, state, addIndex } of page) {
      // others' invoices may stay open for a year, and are none of our business
      now.isFinal &&= !ours.has(paymentHash) || state === 'settled' || state === 'cancelled';
      if (now.isFinal) now.at = addIndex;
      now.from = addIndex;
    }
  }

  return async () => {
    const condition = await port.condition();
    if (condition.state !== 'ready') return false;
    // what was compared with a database that has been replaced since is compared again
    if (reading?.identity !== condition.identity || reading.generation !== ctx.db.identity.generation)
      reading = await begin(condition.identity);
    for (let pages = 0; pages < PAGES_AT_ONCE; pages++) {
      const page = await port.invoices(reading.from, { openOnly: false });
      await compare(page, reading);
      if (page.length > 0) continue;
      const { identity, at, beganMs, within, generation } = reading;
      reading = null;
      if (generation !== ctx.db.identity.generation) return true;
      await setCompared(ctx.db, identity, { index: at, within, atMs: beganMs });
      await bookFractions(ctx);
      await finishCancels(ctx, port);
      await lookAtUnknown(ctx, port, identity);
      await holdings(condition);
      return false;
    }
    return true;
  };
}

async function bookFractions(ctx: Context): Promise<void> {
  const { all, unbooked } = await unbookedFractions(ctx.db);
  if (unbooked <= 0n) return;
  await postEntries(ctx.db, [{ entry: roundingEntry(all, unbooked), transactionId: null, atMs: ctx.ports.clock.now() }]);
}
