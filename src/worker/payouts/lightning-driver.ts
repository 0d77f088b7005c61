// The job that pays over Lightning: has each payout's payment authorized, commits it, has the node asked, and follows what the node says. Any
// number of workers may run it: a payment is worked on under a lease, the node refuses a request that arrives after it, and a crash anywhere
// leaves a state from which the next one goes on. A time-out is never a failure.

import type { PayingNode, PaymentFacts, SendAnswer } from '../../core/lightning/payer.ts';
import { failureText, LACKS_BALANCE } from '../../core/lightning/payment-failures.ts';
import { plus } from '../../core/money.ts';
import type { AskTrust } from '../../core/payouts/intent.ts';
import { refusalKind } from '../../core/payouts/signing-refusals.ts';
import { LEASE_MS } from '../../core/payouts/states.ts';
import type { Context } from '../../flow/context.ts';
import { bookInvoiceHere } from '../../flow/lightning/internal-payouts.ts';
import {
  commitPayment,
  completePayment,
  expirePayment,
  failPayment,
  holdUnknownPayment,
} from '../../flow/lightning/payout-progress.ts';
import { askPayingNode, stopOnRestored } from '../../flow/lightning/restored-node.ts';
import { holdForOperator } from '../../flow/payouts/operator-holds.ts';
import { openBreakers, tripBreaker } from '../../store/ledger/breakers.ts';
import {
  beginSend,
  endPaymentLease,
  LIGHTNING_PAYOUT_JOB,
  type LightningPayment,
  leasePayment,
  nextPaymentDue,
  noteAnswer,
  setPaymentIndex,
} from '../../store/lightning/payment-rows.ts';
import type { Job } from '../loop.ts';
import { type AuthorizedPayments, isPaidKnown } from './lightning-comparison.ts';

/** Asks the signer; throws with a `fault`: `refused` (by a rule, and nothing was asked of the node), anything else is no answer. */
export type LightningPaying = AuthorizedPayments & {
  node(): Promise<PayingNode>;
  authorize(payment: Asking): Promise<unknown>;
  send(payment: Asking): Promise<SendAnswer>;
};
type Asking = { readonly payoutId: string; readonly leaseEpoch: string };

/** What has just become so when a process dies there: in the order of a payout's way. */
export const LIGHTNING_STEPS = ['ln-leased', 'ln-authorized', 'ln-committed', 'ln-sent', 'ln-answered', 'ln-ended'] as const;
export type LightningStep = (typeof LIGHTNING_STEPS)[number];

export type LightningDriverOptions = {
  readonly paying: LightningPaying;
  /** Whose payouts count: for those to transactions here, which the signer does not see. */
  readonly intents: AskTrust;
  /** Names this worker in leases. */
  readonly owner: string;
  /** Called with each step that was reached, before the next: tests stop a process there (main/sandbox/failpoints). */
  readonly reached?: (step: LightningStep) => Promise<void>;
  readonly onTrouble: (what: string) => void;
};

/** How far the node's clock may be behind ours. */
const CLOCKS_DIFFER_MS = 60_000;
/** After the expiry of its invoice a payment that the node was never asked for is given up. */
const NEVER_ASKED_MS = 600_000;
/** A payment without an HTLC on any channel, so long after it was requested and after its invoice expired, hangs for good. */
const HANGS_MS = 600_000;
const RETRY_MS = 15_000;
/** One that our channels could not send is asked for again more and more rarely. */
const LONGEST_RETRY_MS = 600_000;
const AT_ONCE = 8;
/** A wake-up may have been missed: with payments that are open, and without any. */
const QUIET_MS = 15_000;
const REST_MS = 60_000;
const SOONEST_MS = 200;
/** One under way is looked at every second at first, and every ten in the end; one that only an operator can end, every minute. */
const LOOK_MS = 1_000;
const LONGEST_LOOK_MS = 10_000;
const RARE_LOOK_MS = 60_000;

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
  const node = await nodeOf(ctx, options);
  const seen: string[] = [];
  async function lease(): Promise<LightningPayment | null> {
    const nowMs = ctx.ports.clock.now();
    const payment = await leasePayment(ctx.db, { owner: options.owner, nowMs, untilMs: nowMs + LEASE_MS, not: seen });
    if (payment !== null) seen.push(payment.payoutId);
    return payment;
  }
  async function oneAfterTheOther(first: LightningPayment | null): Promise<void> {
    for (let payment = first; payment !== null; payment = await lease()) await drive(ctx, options, node, payment);
  }
  // at rest there is none: eight that ask at once would open as many sessions
  const first = await lease();
  if (first === null) return;
  await Promise.all([
    oneAfterTheOther(first),
    ...Array.from({ length: AT_ONCE - 1 }, async () => oneAfterTheOther(await lease())),
  ]);
}

/** The node, where it can be asked. */
async function nodeOf(ctx: Context, { paying, onTrouble }: LightningDriverOptions): Promise<PayingNode | null> {
  try {
    const node = await askPayingNode(ctx, () => paying.node());
    return (await isPaidKnown(ctx, paying, node, onTrouble)) ? node : null;
  } catch (error) {
    const { fault, message } = error as { fault?: string; message: string };
    if (fault === undefined) throw error;
    if ((await nextPaymentDue(ctx.db)) !== null) onTrouble(`payouts over Lightning wait: ${message}`);
    return null;
  }
}

/** In how many milliseconds a payment is looked at again, and what is in its way. */
type Next = { readonly againMs: number; readonly trouble?: string };
/** `asksAgain`: nothing of it is under way, and it may be asked for once more. */
type Followed = Next & { readonly asksAgain?: true };

async function drive(
  ctx: Context,
  options: LightningDriverOptions,
  node: PayingNode | null,
  payment: LightningPayment,
): Promise<void> {
  const { againMs, trouble = null } = await next(ctx, options, node, payment);
  if (trouble !== null) options.onTrouble(`payout ${payment.payoutId}: ${trouble}`);
  await endPaymentLease(ctx.db, payment, { dueAtMs: ctx.ports.clock.now() + againMs, trouble });
}

async function next(
  ctx: Context,
  options: LightningDriverOptions,
  node: PayingNode | null,
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

async function begin(ctx: Context, options: LightningDriverOptions, node: PayingNode, payment: LightningPayment): Promise<Next> {
  if (ctx.ports.clock.now() >= payment.expiresAtMs) {
    await expirePayment(ctx, payment);
    return { againMs: RETRY_MS };
  }
  if ((await openBreakers(ctx.db)).length > 0) return { againMs: RETRY_MS };
  if (!canSend(node, payment)) return { againMs: RETRY_MS, trouble: lack(node) };
  try {
    await options.paying.authorize(asking(payment));
  } catch (error) {
    return refusedBefore(ctx, payment, error as { fault?: string; message: string });
  }
  await options.reached?.('ln-authorized');
  if ((await commitPayment(ctx, payment, node.identity)) !== 'committed') return { againMs: RETRY_MS };
  await options.reached?.('ln-committed');
  return send(ctx, options, node, payment);
}

const canSend = (node: PayingNode, { amount, feeMax }: LightningPayment): boolean =>
  BigInt(node.spendable) >= plus(amount, feeMax);
const lack = (node: PayingNode): string => `our channels can send ${node.spendable} satoshis now`;

const asking = ({ payoutId, leaseEpoch }: LightningPayment): Asking => ({ payoutId, leaseEpoch: leaseEpoch.toString() });

/** The signer has refused before anything was committed: the payout waits for an operator, or somebody has written into the database. */
async function refusedBefore(
  ctx: Context,
  { payoutId }: LightningPayment,
  error: { readonly fault?: string; readonly message: string },
): Promise<Next> {
  if (error.fault !== 'refused') throw error;
  const why = error.message;
  const kind = refusalKind(why);
  if (kind === 'payout') await ctx.db.transaction((sql) => holdForOperator(ctx, sql, { payoutId, why }));
  if (kind === 'wrong') {
    const findings = [`the signer refuses ${payoutId}: ${why}`];
    await tripBreaker(ctx.db, { name: 'payouts', by: ['signer'], findings, atMs: ctx.ports.clock.now() });
  }
  return { againMs: RETRY_MS, trouble: why };
}

/** Asks the node to pay what is committed; the same payment hash as before, which it pays only once. */
async function send(ctx: Context, options: LightningDriverOptions, node: PayingNode, leased: LightningPayment): Promise<Next> {
  const payment = { ...leased, node: leased.node ?? node.identity };
  if (!(await beginSend(ctx.db, payment))) return { againMs: 0 };
  const answer = await asked(options, payment);
  await options.reached?.('ln-sent');
  // what was unanswered before still is
  if (answer.state !== 'unanswered') await noteAnswer(ctx.db, payment);
  if (answer.state === 'taken') return followed(ctx, options, payment, { payment: answer.payment, isPending: true });
  if (answer.state === 'known') return follow(ctx, options, node, payment);
  return { againMs: answer.state === 'refused' ? RETRY_MS : LOOK_MS, trouble: answer.reason };
}

async function asked({ paying }: LightningDriverOptions, payment: LightningPayment): Promise<SendAnswer> {
  try {
    return await paying.send(asking(payment));
  } catch (error) {
    const { fault, message } = error as { fault?: string; message: string };
    // these two are said before anything is asked of the node
    if (fault === 'refused' || fault === 'node') return { state: 'refused', reason: message };
    if (fault === undefined) throw error;
    return { state: 'unanswered', reason: message };
  }
}

async function follow(ctx: Context, options: LightningDriverOptions, node: PayingNode, payment: LightningPayment): Promise<Next> {
  const tracked = await options.paying.track(payment.paymentHash);
  const { payment: said, isPending } = tracked;
  if (said !== null) {
    const next = await followed(ctx, options, payment, { payment: said, isPending });
    return next.asksAgain === true && canSend(node, payment) ? send(ctx, options, node, payment) : next;
  }
  if (payment.isDoubted) return { againMs: RARE_LOOK_MS };
  if (payment.paymentIndex !== null) {
    const seen = { identity: payment.node as string, paymentIndex: payment.paymentIndex - 1n };
    await stopOnRestored(ctx, seen, `it has forgotten ${payment.paymentHash}`);
    return { againMs: RARE_LOOK_MS };
  }
  const nowMs = ctx.ports.clock.now();
  if (nowMs < payment.expiresAtMs) return send(ctx, options, node, payment);
  if (nowMs < payment.expiresAtMs + NEVER_ASKED_MS || mayStillArrive(payment, nowMs)) return { againMs: RARE_LOOK_MS };
  await failPayment(ctx, payment, 'the invoice expired, and the Lightning node was never asked to pay it');
  return { againMs: RETRY_MS };
}

const mayStillArrive = ({ unansweredUntilMs }: LightningPayment, nowMs: number): boolean =>
  unansweredUntilMs !== null && nowMs <= unansweredUntilMs + CLOCKS_DIFFER_MS;

/** The node has the payment, and says how it is. */
async function followed(
  ctx: Context,
  options: LightningDriverOptions,
  payment: LightningPayment,
  { payment: said, isPending }: { readonly payment: PaymentFacts; readonly isPending: boolean },
): Promise<Followed> {
  if (payment.paymentIndex === null)
    await setPaymentIndex(ctx.db, payment.payoutId, payment.node as string, BigInt(said.paymentIndex));
  await options.reached?.('ln-answered');
  if (said.status === 'succeeded') {
    await completePayment(ctx, payment, said);
    await options.reached?.('ln-ended');
    return { againMs: RETRY_MS };
  }
  const nowMs = ctx.ports.clock.now();
  if (said.status === 'in_flight') return inFlight(ctx, payment, isPending, nowMs);
  if (payment.isDoubted) return { againMs: RARE_LOOK_MS };
  // the word of a request's own answer, or of a time when another request may still arrive, is not the last
  const tracked = await options.paying.track(payment.paymentHash);
  const again = tracked.payment;
  if (again?.status !== 'failed' || again.isPartOpen || tracked.isPending) return { againMs: LOOK_MS };
  const { unansweredUntilMs } = payment;
  if (unansweredUntilMs !== null && mayStillArrive(payment, nowMs))
    return { againMs: unansweredUntilMs + CLOCKS_DIFFER_MS - nowMs + LOOK_MS };
  // what our channels lack today they may have tomorrow: it waits as one does that was never asked for
  if (again.failure === LACKS_BALANCE && nowMs < payment.expiresAtMs) {
    const againMs = Math.min(LONGEST_RETRY_MS, Math.max(RETRY_MS, (nowMs - payment.createdAtMs) / 10));
    return { againMs, asksAgain: true, trouble: 'our channels could not send it' };
  }
  await failPayment(ctx, payment, failureText(again.failure));
  await options.reached?.('ln-ended');
  return { againMs: RETRY_MS };
}

async function inFlight(ctx: Context, payment: LightningPayment, isPending: boolean, nowMs: number): Promise<Next> {
  const ageMs = Math.max(0, nowMs - payment.createdAtMs);
  const againMs = Math.min(LONGEST_LOOK_MS, Math.max(LOOK_MS, ageMs / 30));
  if (isPending || nowMs < payment.expiresAtMs || ageMs < HANGS_MS) return { againMs };
  await holdUnknownPayment(ctx, payment);
  const trouble =
    'the Lightning node calls it under way, and no channel holds an HTLC of it: it hangs for good; close the channel of its attempt, or decide (bursar payout resolve)';
  return { againMs: RARE_LOOK_MS, trouble };
}
