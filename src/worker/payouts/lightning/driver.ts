// The job that pays over Lightning: leases what is due and takes it a step further (steps.ts). Any number of workers may run it: a payment is
// worked on under a lease, the node refuses a request that arrives after it, and a crash anywhere leaves a state from which the next one goes on.

import { LEASE_MS } from '../../../core/payouts/states.ts';
import type { Context } from '../../../flow/context.ts';
import { bookInvoiceHere } from '../../../flow/lightning/internal-payouts.ts';
import { expireHeld } from '../../../flow/lightning/payout-progress.ts';
import { askPayingNode } from '../../../flow/lightning/restored-node.ts';
import {
  endPaymentLease,
  LIGHTNING_PAYOUT_JOB,
  type LightningPayment,
  leasePayment,
  nextPaymentDue,
} from '../../../store/lightning/payment-rows.ts';
import type { Job } from '../../loop.ts';
import { isPaidKnown } from './comparison.ts';
import { type Next, RETRY_MS } from './hanging.ts';
import { begin, follow, type LightningDriverOptions, type LookedAt } from './steps.ts';

const AT_ONCE = 8;
/** A wake-up may have been missed: with payments that are open, and without any. */
const QUIET_MS = 15_000;
const REST_MS = 60_000;
const SOONEST_MS = 200;

/** The job that authorizes payouts over Lightning, has them paid, and looks up what became of each by its payment hash. */
export function lightningPayoutJob(ctx: Context, options: LightningDriverOptions): Job {
  let restMs = REST_MS;
  return {
    name: LIGHTNING_PAYOUT_JOB,
    everyMs: () => restMs,
    urgent: true,
    async run() {
      await pass(ctx, options);
      const dueAtMs = await nextPaymentDue(ctx.db);
      restMs = dueAtMs === null ? REST_MS : Math.min(QUIET_MS, Math.max(SOONEST_MS, dueAtMs - ctx.ports.clock.now()));
      return false;
    },
  };
}

async function pass(ctx: Context, options: LightningDriverOptions): Promise<void> {
  // what comes later is for the next pass: a single lane would take it all, one after the other, and nothing would be looked at twice meanwhile
  const beganMs = ctx.ports.clock.now();
  // before anything is leased: what is in doubt since the node was restored is read with the lease
  const node = await nodeOf(ctx, options);
  if (node !== null) await expireHeld(ctx);
  const seen: string[] = [];
  async function lease(): Promise<LightningPayment | null> {
    const untilMs = ctx.ports.clock.now() + LEASE_MS;
    const payment = await leasePayment(ctx.db, { owner: options.owner, nowMs: beganMs, untilMs, not: seen });
    if (payment !== null) seen.push(payment.payoutId);
    return payment;
  }
  async function oneAfterTheOther(first: LightningPayment): Promise<void> {
    for (let payment: LightningPayment | null = first; payment !== null; payment = await lease()) {
      try {
        await drive(ctx, options, node, payment);
      } catch (error) {
        // its lease ends by itself, and the others go on
        options.onFault(`payout ${payment.payoutId}`, error);
      }
    }
  }
  // one that finds nothing is the last: eight that ask at once would open as many sessions
  const lanes: Promise<void>[] = [];
  const faults: unknown[] = [];
  // each says at once that somebody waits for it: one that fails while the next is leased would end the process
  const begin = (payment: LightningPayment) =>
    lanes.push(oneAfterTheOther(payment).catch((error: unknown) => void faults.push(error)));
  try {
    for (let payment = await lease(); payment !== null; payment = lanes.length < AT_ONCE ? await lease() : null) begin(payment);
  } finally {
    await Promise.all(lanes);
  }
  if (faults.length > 0) throw faults[0];
}

/** The node, where it can be asked. */
async function nodeOf(ctx: Context, { paying, onTrouble }: LightningDriverOptions): Promise<LookedAt | null> {
  try {
    const node = await askPayingNode(ctx, () => paying.node());
    return (await isPaidKnown(ctx, paying, node, onTrouble)) ? { ...node, taken: 0 } : null;
  } catch (error) {
    const { fault, message } = error as { fault?: string; message: string };
    if (fault === undefined) throw error;
    if ((await nextPaymentDue(ctx.db)) !== null) onTrouble(`payouts over Lightning wait: ${message}`);
    return null;
  }
}

async function drive(
  ctx: Context,
  options: LightningDriverOptions,
  node: LookedAt | null,
  payment: LightningPayment,
): Promise<void> {
  const { againMs, trouble = null } = await next(ctx, options, node, payment);
  if (trouble !== null) options.onTrouble(`payout ${payment.payoutId}: ${trouble}`);
  await endPaymentLease(ctx.db, payment, { dueAtMs: ctx.ports.clock.now() + againMs, trouble });
}

async function next(
  ctx: Context,
  options: LightningDriverOptions,
  node: LookedAt | null,
  payment: LightningPayment,
): Promise<Next> {
  try {
    if (payment.internalTo !== null) return await here(ctx, options, payment);
    if (node === null) return { againMs: RETRY_MS };
    await options.reached?.('ln-leased');
    return payment.state === 'waiting' ? await begin(ctx, options, node, payment) : await follow(ctx, options, node, payment);
  } catch (error) {
    const { fault, message } = error as { fault?: string; message: string };
    if (fault === undefined) throw error;
    return { againMs: RETRY_MS, trouble: message };
  }
}

/** To a transaction of another merchant here. */
async function here(ctx: Context, { intents }: LightningDriverOptions, payment: LightningPayment): Promise<Next> {
  const trouble = await bookInvoiceHere(ctx, payment, intents);
  return trouble === null ? { againMs: RETRY_MS } : { againMs: RETRY_MS, trouble };
}
