// What is done with one payment over Lightning while its lease lasts: it is authorized by the signer, committed, the node is asked, and what the node
// says is followed. A time-out is never a failure.

import type { PayingNode, PaymentFacts, SendAnswer, TrackedPayment } from '../../../core/lightning/payer.ts';
import { mayStillArrive } from '../../../core/lightning/payer.ts';
import { failureText, LACKS_BALANCE } from '../../../core/lightning/payment-failures.ts';
import { MOST_UNDER_WAY, takesTooManySlots, takesTooMuch } from '../../../core/lightning/under-way.ts';
import { plus } from '../../../core/money.ts';
import type { AskTrust } from '../../../core/payouts/intent.ts';
import { refusalKind, refusedFor, refusedRule } from '../../../core/payouts/signing-refusals.ts';
import type { Context } from '../../../flow/context.ts';
import {
  commitPayment,
  expirePayment,
  failPayment,
  holdCrowded,
  refusePayment,
} from '../../../flow/lightning/payout-progress.ts';
import { type Asked, askPayingNode, stopOnRestored } from '../../../flow/lightning/restored-node.ts';
import { NOTHING_KNOWN, restorePayment } from '../../../flow/lightning/restored-payments.ts';
import { holdForOperator } from '../../../flow/payouts/waiting-for-operator.ts';
import { tripBreaker } from '../../../store/ledger/breakers.ts';
import { doubtPayment, isInDoubt } from '../../../store/lightning/paying-node.ts';
import { beginSend, type LightningPayment, noteAnswer, setPaymentIndex } from '../../../store/lightning/payment-rows.ts';
import type { Telling } from '../driver-options.ts';
import type { AuthorizedPayments } from './comparison.ts';
import type { Next } from './hanging.ts';
import {
  asItIsNow,
  bookPaid,
  forgottenByNode,
  forgottenPerhaps,
  heldUnlisted,
  inFlight,
  isForgotten,
  isListedElsewhere,
  LOOK_MS,
  notInJournal,
  ofAnotherNode,
  RARE_LOOK_MS,
  RETRY_MS,
  unlessWritten,
  whileUnanswered,
} from './hanging.ts';

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

export type LightningDriverOptions = Telling & {
  readonly paying: LightningPaying;
  /** Whose payouts count: for those to transactions here, which the signer does not see. */
  readonly intents: AskTrust;
  /** Names this worker in leases. */
  readonly owner: string;
  /** Called with each step that was reached, before the next: tests stop a process there (main/sandbox/failpoints). */
  readonly reached?: (step: LightningStep) => Promise<void>;
};

/** One that our channels could not send is asked for again more and more rarely. */
const LONGEST_RETRY_MS = 600_000;

/** The node when a look began, and how many of its slots payments have taken since. */
export type LookedAt = Asked & { taken: number };
/** `asksAgain`: nothing of it is under way, and it may be asked for once more. */
type Followed = Next & { readonly asksAgain?: true };

/**
 * Takes one that nobody was asked to pay as far as it may go: expired, held, refused for good, or authorized, committed and asked for.
 * @returns when it is looked at again, and what is in its way
 */
export async function begin(
  ctx: Context,
  options: LightningDriverOptions,
  node: LookedAt,
  payment: LightningPayment,
): Promise<Next> {
  const { others, amount, feeMax, listedBy } = payment;
  const isLost = await isListedElsewhere(options.paying, node, payment);
  if (isLost || ctx.ports.clock.now() >= payment.expiresAtMs) {
    if (isLost) await doubtPayment(ctx.db, payment.payoutId);
    if (payment.sends === 0 && listedBy === null) await expirePayment(ctx, payment);
    // the signer had it made, or a node has paid it, before the database was put back: it ends as one that was sent there
    else await restorePayment(ctx, payment, { node: listedBy ?? node.identity, tracked: NOTHING_KNOWN, isForgotten: true });
    return { againMs: RETRY_MS };
  }
  if (others.isStopped) return { againMs: RETRY_MS };
  if (others.count >= MOST_UNDER_WAY) {
    await holdCrowded(ctx, payment);
    return { againMs: RETRY_MS };
  }
  const freeSlots = node.freeSlots - node.taken;
  const ofAll = { underWay: others.satoshis, spendable: BigInt(node.spendable) };
  if (takesTooMuch(plus(amount, feeMax), ofAll) || takesTooManySlots(others.count, freeSlots))
    return { againMs: RETRY_MS, trouble: TOO_MUCH };
  if (!canSend(node, payment)) return { againMs: RETRY_MS, trouble: lack(node) };
  // at once: others of this look must not count the same slot as free
  node.taken += 1;
  const before = await authorizeAndCommit(ctx, options, { ...node, freeSlots }, payment).catch((error: unknown) => {
    node.taken -= 1;
    throw error;
  });
  if (before !== null) {
    node.taken -= 1;
    return before;
  }
  await options.reached?.('ln-committed');
  // nobody here knows of a request, and the signer may have let one be made
  const begun = { ...payment, node: node.identity, askedAtMs: ctx.ports.clock.now(), nodeStartedAtMs: node.startedAtMs };
  const now = await asItIsNow(ctx, options.paying, node, begun);
  return (await forgottenPerhaps(ctx, options.paying, begun, now)) ?? sendBegun(ctx, options, now, begun);
}

/** From here on the node may be asked for it: null; else why not, and when it is looked at again. */
async function authorizeAndCommit(
  ctx: Context,
  options: LightningDriverOptions,
  node: Asked,
  payment: LightningPayment,
): Promise<Next | null> {
  try {
    await options.paying.authorize(asking(payment));
  } catch (error) {
    return refusedBefore(ctx, payment, error as { fault?: string; message: string });
  }
  await options.reached?.('ln-authorized');
  const how = await commitPayment(ctx, payment, node);
  return how === 'committed' ? null : { againMs: RETRY_MS, ...(how === 'too_much' ? { trouble: TOO_MUCH } : {}) };
}

const TOO_MUCH = 'its merchant has too much of our channels on its way';
const canSend = (node: PayingNode, { amount, feeMax }: LightningPayment): boolean =>
  BigInt(node.spendable) >= plus(amount, feeMax);
const lack = (node: PayingNode): string => `our channels can send ${node.spendable} satoshis now`;

const asking = ({ payoutId, leaseEpoch }: LightningPayment): Asking => ({ payoutId, leaseEpoch: leaseEpoch.toString() });

/** The signer has refused before anything was committed: nobody can ever pay it, it waits for an operator, or somebody has written into the database. */
async function refusedBefore(
  ctx: Context,
  payment: LightningPayment,
  error: { readonly fault?: string; readonly message: string },
): Promise<Next> {
  if (error.fault !== 'refused') throw error;
  const { payoutId } = payment;
  const why = error.message;
  const kind = refusalKind(why);
  if (kind === 'never') {
    await refusePayment(ctx, payment, refusedFor(why));
    return { againMs: RETRY_MS };
  }
  if (kind === 'payout') await ctx.db.transaction((sql) => holdForOperator(ctx, sql, { payoutId, why }));
  if (kind === 'wrong') {
    const findings = [`the signer refuses ${payoutId}: ${why}`];
    await tripBreaker(ctx.db, { name: 'payouts', by: ['signer'], findings, atMs: ctx.ports.clock.now() });
  }
  return { againMs: RETRY_MS, trouble: why };
}

/** Asks the node once more to pay what is committed; the same payment hash as before, which it pays only once. */
async function send(ctx: Context, options: LightningDriverOptions, looked: Asked, payment: LightningPayment): Promise<Next> {
  const node = await asItIsNow(ctx, options.paying, looked, payment);
  if (node.identity !== payment.node) return ofAnotherNode(ctx, payment, node);
  const forgotten = await forgottenPerhaps(ctx, options.paying, payment, node);
  if (forgotten !== null) return forgotten;
  const at = { nodeStartedAtMs: node.startedAtMs, atMs: ctx.ports.clock.now() };
  if (!(await beginSend(ctx.db, payment, at))) return { againMs: 0 };
  return sendBegun(ctx, options, node, { ...payment, nodeStartedAtMs: at.nodeStartedAtMs, askedAtMs: at.atMs });
}

/** Makes a request of which the database knows that it may arrive. */
async function sendBegun(ctx: Context, options: LightningDriverOptions, node: Asked, payment: LightningPayment): Promise<Next> {
  const answer = await asked(options, payment);
  await options.reached?.('ln-sent');
  if (answer.state === 'known') return follow(ctx, options, node, payment);
  // what was unanswered before still is; that it is paid is written below, and ends that too
  if (answer.state === 'taken') {
    const paymentIndex = BigInt(answer.payment.paymentIndex);
    if (answer.payment.status !== 'succeeded') await noteAnswer(ctx.db, payment, paymentIndex);
    return followed(ctx, options, { ...payment, paymentIndex }, { payment: answer.payment, isPending: true });
  }
  if (answer.state !== 'unanswered') await noteAnswer(ctx.db, payment, null);
  if (answer.state === 'never') return failNever(ctx, options, payment, answer.reason);
  if (answer.state === 'refused' && refusedRule(answer.reason) === 'journal') return notInJournal(ctx, payment, answer.reason);
  return { againMs: answer.state === 'refused' ? RETRY_MS : LOOK_MS, trouble: answer.reason };
}

/** The node will refuse every request to pay this invoice. That it has none of before, and can get none any more, is looked at first. */
async function failNever(
  ctx: Context,
  options: LightningDriverOptions,
  payment: LightningPayment,
  reason: string,
): Promise<Next> {
  const { payment: said, isPending, saidAtMs } = await options.paying.track(payment.paymentHash);
  const isOpen = said !== null || isPending || payment.paymentIndex !== null || payment.isDoubted;
  if (isOpen || mayStillArrive(payment, ctx.ports.clock.now(), saidAtMs)) return { againMs: RETRY_MS, trouble: reason };
  return failed(ctx, options, payment, `the Lightning node cannot pay the invoice: ${reason}`);
}

async function asked({ paying }: LightningDriverOptions, payment: LightningPayment): Promise<SendAnswer> {
  try {
    return await paying.send(asking(payment));
  } catch (error) {
    const { fault, message } = error as { fault?: string; message: string };
    if (fault === 'refused' && refusalKind(message) === 'never') return { state: 'never', reason: refusedFor(message) };
    // these two are said before anything is asked of the node
    if (fault === 'refused' || fault === 'node') return { state: 'refused', reason: message };
    if (fault === undefined) throw error;
    return { state: 'unanswered', reason: message };
  }
}

/**
 * Looks what has become of one that the node may have been asked for, and asks again where it has none of it. Only the node's word ends it.
 * @returns when it is looked at again, and what is in its way
 */
export async function follow(
  ctx: Context,
  options: LightningDriverOptions,
  node: Asked,
  payment: LightningPayment,
): Promise<Next> {
  const tracked = await options.paying.track(payment.paymentHash);
  const { payment: said, isPending } = tracked;
  if (said?.status !== 'succeeded' && node.identity !== payment.node) return ofAnotherNode(ctx, payment, node);
  if (isForgotten(payment, said)) return forgottenByNode(ctx, payment);
  if (said !== null) {
    const next = await followed(ctx, options, payment, { ...tracked, payment: said });
    return next.asksAgain === true && canSend(node, payment) ? send(ctx, options, node, payment) : next;
  }
  if (payment.paymentIndex !== null) {
    const seen = { identity: payment.node as string, paymentIndex: payment.paymentIndex - 1n };
    await stopOnRestored(ctx, seen, `it has forgotten ${payment.paymentHash}`);
    return { againMs: RARE_LOOK_MS };
  }
  // asked once more: it may have been taken between the two answers
  if (isPending && (await options.paying.track(payment.paymentHash)).payment === null) {
    await askPayingNode(ctx, () => options.paying.node());
    return heldUnlisted(ctx, payment);
  }
  const nowMs = ctx.ports.clock.now();
  if (nowMs < payment.expiresAtMs) return send(ctx, options, node, payment);
  const waits = whileUnanswered(payment, nowMs, tracked.saidAtMs);
  if (waits !== null) return waits;
  return failed(ctx, options, payment, 'the invoice expired, and the Lightning node was never asked to pay it');
}

/** Fails one by the word of the node, which is asked once more whether it is the one that was asked to pay: it may have been replaced during this look. */
async function failed(ctx: Context, { paying }: LightningDriverOptions, payment: LightningPayment, error: string): Promise<Next> {
  const node = await askPayingNode(ctx, () => paying.node());
  if (node.identity !== payment.node) return ofAnotherNode(ctx, payment, node);
  if (await isInDoubt(ctx.db, payment.payoutId)) return { againMs: RARE_LOOK_MS };
  const waits = (await forgottenPerhaps(ctx, paying, payment, node)) ?? (await unlessWritten(ctx, paying, payment));
  if (waits !== null) return waits;
  await failPayment(ctx, payment, error);
  return { againMs: RETRY_MS };
}

/** The node has the payment, and says how it is. */
async function followed(
  ctx: Context,
  options: LightningDriverOptions,
  payment: LightningPayment,
  { payment: said, ...tracked }: TrackedPayment & { readonly payment: PaymentFacts },
): Promise<Followed> {
  // asked for once more after it had failed, it has another place
  if (said.status !== 'succeeded' && BigInt(said.paymentIndex) > (payment.paymentIndex ?? -1n))
    await setPaymentIndex(ctx.db, payment.payoutId, payment.node as string, BigInt(said.paymentIndex));
  await options.reached?.('ln-answered');
  if (said.status === 'succeeded') {
    const next = await bookPaid(ctx, payment, said);
    await options.reached?.('ln-ended');
    return next;
  }
  const nowMs = ctx.ports.clock.now();
  if (said.status === 'in_flight') return inFlight(ctx, payment, { ...tracked, payment: said }, nowMs);
  if (payment.isDoubted) return { againMs: RARE_LOOK_MS };
  // the word of a request's own answer, or of a time when another request may still arrive, is not the last
  const { payment: again, isPending, saidAtMs } = await options.paying.track(payment.paymentHash);
  if (again?.status !== 'failed' || again.isPartOpen || isPending) return { againMs: LOOK_MS };
  const waits = whileUnanswered(payment, nowMs, saidAtMs);
  if (waits !== null) return waits;
  // what our channels lack today they may have tomorrow: it waits as one does that was never asked for
  if (again.failure === LACKS_BALANCE && nowMs < payment.expiresAtMs) {
    const againMs = Math.min(LONGEST_RETRY_MS, Math.max(RETRY_MS, (nowMs - payment.createdAtMs) / 10));
    return { againMs, asksAgain: true, trouble: 'our channels could not send it' };
  }
  const ended = await failed(ctx, options, payment, failureText(again.failure));
  await options.reached?.('ln-ended');
  return ended;
}
