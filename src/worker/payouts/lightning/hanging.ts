// A payment that the node calls under way is looked at more and more rarely, and an operator is asked only once nothing can end it any more; so is one of
// which the node's word proves nothing.
import { hasRunSince, isSameStart, knowsWhoIsThere, type NodeRun } from '../../../core/lightning/node-run.ts';
import {
  CLOCKS_DIFFER_MS,
  clockBehind,
  mayStillArrive,
  type PayingNode,
  type PaymentFacts,
  type TrackedPayment,
} from '../../../core/lightning/payer.ts';
import type { Context } from '../../../flow/context.ts';
import { completePayment, holdUnknownPayment } from '../../../flow/lightning/payout-progress.ts';
import { type Asked, askPayingNode, type SeenRun } from '../../../flow/lightning/restored-node.ts';
import { channelsSince } from '../../../store/lightning/channels.ts';
import { doubtPayment } from '../../../store/lightning/paying-node.ts';
import { type LightningPayment, setPaymentIndex } from '../../../store/lightning/payment-rows.ts';
import { lastListedPaid } from '../../../store/lightning/sent-payments.ts';
import { troubleOf } from '../../chain/pass-result.ts';

/** Asks the node what has become of a payment. */
type Tracking = { track(paymentHash: string): Promise<TrackedPayment> };
/** In how many milliseconds a payment is looked at again, and what is in its way. */
export type Next = { readonly againMs: number; readonly trouble?: string };

/** This long after the node was last asked it looks for no route any more. */
const LOOKS_MS = 600_000;
/** The expiry of an invoice is its recipient's to choose, and may be years away: this long after the node was last asked it is not waited for. */
const LONGEST_WAIT_MS = 86_400_000;
/** One under way is looked at every second at first, and every ten in the end; one that only an operator can end, every minute. */
export const LOOK_MS = 1_000;
const LONGEST_LOOK_MS = 10_000;
export const RARE_LOOK_MS = 60_000;
/** What could not be done is tried again. */
export const RETRY_MS = 15_000;
/** From then on a payment without an HTLC on any channel hangs for good: its invoice has expired, or will not within any time that somebody waits. */
export const hangsFrom = ({ askedAtMs, expiresAtMs }: LightningPayment): number =>
  Math.max(askedAtMs + LOOKS_MS, Math.min(expiresAtMs, askedAtMs + LONGEST_WAIT_MS));

/** @param tracked what the node's channels hold of it, or may yet */
export async function inFlight(
  ctx: Context,
  payment: LightningPayment,
  { payment: said, isPending, arrivesUntil }: TrackedPayment & { readonly payment: PaymentFacts },
  nowMs: number,
): Promise<Next> {
  const ageMs = Math.max(0, nowMs - payment.createdAtMs);
  const againMs = Math.min(LONGEST_LOOK_MS, Math.max(LOOK_MS, ageMs / 30));
  if (nowMs < hangsFrom(payment)) return { againMs };
  // whoever is asked before that decides what somebody else may still take
  const trouble = `the Lightning node calls it under way, and no channel lists an HTLC of it: what has left may still arrive, up to block ${arrivesUntil}`;
  if (isPending) return arrivesUntil === undefined ? { againMs } : { againMs: RARE_LOOK_MS, trouble };
  const onChain = await mayBeOnChain(ctx);
  if (onChain !== null) return { againMs: RARE_LOOK_MS, trouble: onChain };
  // who has taken a part of it has given his receipt for all of it: nobody may call it failed
  if (said.preimage !== null) return bookPaid(ctx, payment, said);
  await holdUnknownPayment(ctx, payment);
  return { againMs: RARE_LOOK_MS, trouble: HANGS };
}

const HANGS =
  'the Lightning node calls it under way, and no channel holds an HTLC of it: it hangs for good, or the node was put back from a copy and its recipient has it; ask its recipient, close the channel of its attempt, or decide (bursar payout resolve)';
const NOT_ANSWERED = 'a request to pay it was not answered';
const STARTED_SINCE =
  'the Lightning node calls it failed, and was started after it was asked to pay it, or has none of the channels any more that it had then';

/** Whether the node was started after it was last asked, as far as is known. A machine that is put back with its memory looks as if it had been. */
const isStartedSince = ({ nodeStartedAtMs }: LightningPayment, { startedAtMs }: NodeRun): boolean =>
  nodeStartedAtMs !== null && !isSameStart(nodeStartedAtMs, startedAtMs);

/** Why the node's word that it has no payment, or that it failed, may be that of an older state. Null: it cannot be. */
function doubtOf(payment: LightningPayment, node: NodeRun): string | null {
  // the place that it gave to the only request is noticed when it is given to another (restored-node)
  const isKnown = payment.sends <= 1 && payment.paymentIndex !== null;
  if (payment.unansweredUntilMs !== null && !isKnown) return NOT_ANSWERED;
  // a copy that was made while it was under way has it too, under the same number
  const isOfStart = payment.nodeStartedAtMs !== null && !isStartedSince(payment, node);
  return payment.paymentIndex === null || isOfStart ? null : STARTED_SINCE;
}

/** The node, of which a payment may have been asked for before: since a look began it may have been put back, and say what it says now from an older state. */
export async function asItIsNow(
  ctx: Context,
  paying: { node(): Promise<PayingNode> },
  looked: Asked,
  { paymentIndex, unansweredUntilMs }: LightningPayment,
): Promise<Asked> {
  return paymentIndex === null && unansweredUntilMs === null ? looked : askPayingNode(ctx, () => paying.node());
}

/**
 * What is done with a payment of which a request was not answered, or that the node had before it was started, where the node may have been put back: it
 * says the same then as one that never had the request, or with which the payment failed. Its channels tell the two apart. Null: nothing speaks against its
 * word.
 */
export async function forgottenPerhaps(
  ctx: Context,
  paying: Tracking,
  payment: LightningPayment,
  node: SeenRun,
): Promise<Next | null> {
  const said = doubtOf(payment, node);
  if (said === null) return null;
  if (said === NOT_ANSWERED && (await isDeletedPerhaps(ctx, paying, payment))) {
    await holdUnknownPayment(ctx, payment);
    return { againMs: RARE_LOOK_MS, trouble: DELETED };
  }
  const nowMs = ctx.ports.clock.now();
  let isAway = false;
  try {
    const known = await channelsSince(ctx.db, payment.node ?? '', payment.createdAtMs);
    const withinMs = Math.max(0, nowMs - payment.createdAtMs);
    const hasRunOn = !isStartedSince(payment, node) && hasRunSince(node, payment.createdAtMs);
    const run = { hasRunOn, areMet: knowsWhoIsThere(node, node.seenAtMs) };
    const mayBe = (await ctx.ports.lightning?.mayBeOlder(withinMs, known, run)) ?? 'no';
    if (mayBe === 'no') return null;
    isAway = mayBe === 'not_met';
  } catch (error) {
    const trouble = troubleOf(error);
    if (trouble === null) throw error;
    return {
      againMs: RARE_LOOK_MS,
      trouble: `${said}, and whether the Lightning node was put back since is not known: ${trouble.reason}`,
    };
  }
  const away = `${said}, and the other side of a channel is away: once it is met again it shows whether the Lightning node was put back since`;
  // it may never come back
  if (isAway && nowMs < hangsFrom(payment)) return { againMs: RARE_LOOK_MS, trouble: away };
  await holdUnknownPayment(ctx, payment);
  if (isAway) return { againMs: RARE_LOOK_MS, trouble: `${away}; ask its recipient, or decide (bursar payout resolve)` };
  const trouble = `${said}, and a channel was closed since, or is being closed by force, or is in no list of the node: it may have been restored from an older state and have forgotten that it has paid; ask its recipient, and decide (bursar payout resolve)`;
  return { againMs: RARE_LOOK_MS, trouble };
}

const DELETED = `${NOT_ANSWERED}, and the Lightning node has nothing any more of what it listed as paid before: its payments were deleted since (deletepayments), and this one may have been paid; ask its recipient, and decide (bursar payout resolve)`;

/**
 * Of what was deleted at the node it says that it has none, and would pay it once more. It has nothing then of what had ended before either; what has still to end
 * stays there, so that its numbers look like those of a node that has forgotten nothing.
 */
async function isDeletedPerhaps(ctx: Context, { track }: Tracking, { node, paymentHash, createdAtMs }: LightningPayment) {
  const listed = node === null ? null : await lastListedPaid(ctx.db, node, createdAtMs);
  if (listed === null || (await track(paymentHash)).payment !== null) return false;
  return (await track(listed)).payment?.status !== 'succeeded';
}

/** The node has none of it, and the signer's folder was lost or is an older copy: its journal will refuse every request for it. */
export async function notInJournal(ctx: Context, payment: LightningPayment, refusal: string): Promise<Next> {
  if (mayStillArrive(payment, ctx.ports.clock.now())) return { againMs: LOOK_MS, trouble: refusal };
  await holdUnknownPayment(ctx, payment);
  return { againMs: RARE_LOOK_MS, trouble: `${refusal}; the Lightning node does not have it: decide (bursar payout resolve)` };
}

/**
 * While a request that was not answered may still arrive, what the node says is not the last. It takes one by its own clock, so where that was stopped with its
 * machine, and is behind since, later than ours says. Null: none may.
 */
export function whileUnanswered(payment: LightningPayment, nowMs: number, saidAtMs?: number): Next | null {
  const { unansweredUntilMs: until } = payment;
  if (until === null || !mayStillArrive(payment, nowMs, saidAtMs)) return null;
  const leftMs = until + CLOCKS_DIFFER_MS - nowMs;
  if (leftMs >= 0 || saidAtMs === undefined) return { againMs: Math.max(leftMs, 0) + LOOK_MS };
  return { againMs: LOOK_MS, trouble: clockBehind(nowMs, saidAtMs) };
}

/**
 * A node whose disk or database stands still says of a request that it has taken, and not written down yet, that it has no such payment. So what it says of one
 * that was not answered is the last only where it has written since, and says the same then. Null: it has, or each request was answered.
 */
export async function unlessWritten(
  ctx: Context,
  { track }: Tracking,
  { payoutId, node, paymentHash, paymentIndex, unansweredUntilMs }: LightningPayment,
): Promise<Next | null> {
  if (unansweredUntilMs === null || ctx.ports.lightning === null) return null;
  try {
    await ctx.ports.lightning.writes();
  } catch (error) {
    const trouble = troubleOf(error);
    if (trouble === null) throw error;
    return { againMs: RETRY_MS, trouble: `${NOT_ANSWERED}, and the Lightning node writes nothing down: ${trouble.reason}` };
  }
  const { payment, isPending } = await track(paymentHash);
  const isOpen = payment !== null && (payment.status !== 'failed' || payment.isPartOpen);
  if (isOpen || isPending) return { againMs: LOOK_MS };
  // whoever has read the node's list meanwhile has seen it under way under the number that it has got now
  if (payment !== null && BigInt(payment.paymentIndex) > (paymentIndex ?? -1n))
    await setPaymentIndex(ctx.db, payoutId, node as string, BigInt(payment.paymentIndex));
  return null;
}

/** Only a preimage counts of a node that was not asked to pay it: what it does not know, or calls failed, says nothing of the one that was. */
export async function ofAnotherNode(ctx: Context, payment: LightningPayment, { identity }: PayingNode): Promise<Next> {
  if (ctx.ports.clock.now() >= hangsFrom(payment)) await holdUnknownPayment(ctx, payment);
  const trouble = `Lightning node ${payment.node} was asked to pay it, and this is node ${identity}: put the first one back, or decide when it can never pay again (bursar payout resolve)`;
  return { againMs: RARE_LOOK_MS, trouble };
}

/** Books one for which the node has a preimage. What of it was not taken, though its recipient has given his receipt for all of it, is told. */
export async function bookPaid(ctx: Context, payment: LightningPayment, said: PaymentFacts): Promise<Next> {
  const { amountMsat, takenMsat = amountMsat } = said;
  if ((await completePayment(ctx, payment, said)) === 'otherwise') return paidOtherwise(ctx, payment, said);
  if (BigInt(takenMsat) >= BigInt(amountMsat)) return { againMs: RETRY_MS };
  const trouble = `its recipient has taken ${takenMsat} of ${amountMsat} thousandths of a satoshi, and given a receipt for all of it: the rest is at our node, and its operator's`;
  return { againMs: RETRY_MS, trouble };
}

/** The node pays each hash once, and has paid this one for somebody else, with another amount or for a higher fee: it will never pay the payout. Whether to give it back a person says. */
async function paidOtherwise(ctx: Context, payment: LightningPayment, { amountMsat, feeMsat }: PaymentFacts): Promise<Next> {
  await holdUnknownPayment(ctx, payment);
  const trouble = `the Lightning node has paid ${payment.paymentHash} with ${amountMsat} thousandths of a satoshi for a fee of ${feeMsat}, and the payout sends ${payment.amount} satoshis for at most ${payment.feeMax}: it was paid for somebody else; decide (bursar payout resolve)`;
  return { againMs: RARE_LOOK_MS, trouble };
}

/** A channel holds an HTLC of it, and the node says that it has no such payment: its list of payments is older than its channels. From now on only a preimage counts. */
export async function heldUnlisted(ctx: Context, payment: LightningPayment): Promise<Next> {
  await holdUnknownPayment(ctx, payment);
  await doubtPayment(ctx.db, payment.payoutId);
  const trouble =
    'a channel holds an HTLC of it, and the Lightning node says that it has no such payment: ask its recipient, and decide (bursar payout resolve)';
  return { againMs: RARE_LOOK_MS, trouble };
}

/** Whether what a node had listed as paid is asked for while another is there, or by now that has forgotten it: it would pay it once more. */
export const isListedElsewhere = async (
  { track }: Tracking,
  { identity }: PayingNode,
  { listedBy, paymentHash }: LightningPayment,
) => listedBy !== null && (listedBy !== identity || (await track(paymentHash)).payment?.status !== 'succeeded');

/** Whether the node has nothing any more, or calls failed, what it had listed as paid, or was restored since it was asked. */
export const isForgotten = ({ isDoubted, listedBy }: LightningPayment, said: PaymentFacts | null): boolean =>
  said === null ? isDoubted || listedBy !== null : said.status === 'failed' && listedBy !== null;

/** The node has forgotten it, and what it was asked for, or has paid, may have reached its recipient: from now on only a preimage counts. */
export async function forgottenByNode(ctx: Context, payment: LightningPayment): Promise<Next> {
  await holdUnknownPayment(ctx, payment);
  await doubtPayment(ctx.db, payment.payoutId);
  return { againMs: RARE_LOOK_MS, trouble: FORGOTTEN };
}

const FORGOTTEN =
  'the Lightning node has forgotten it, and may have paid it: ask its recipient, and decide (bursar payout resolve)';

/** Why nobody may decide yet: of a channel that is being closed no HTLC is listed, and its recipient may still take it there. Null: no channel is. */
async function mayBeOnChain(ctx: Context): Promise<string | null> {
  try {
    if (ctx.ports.lightning === null || !(await ctx.ports.lightning.isClosing())) return null;
    return 'the Lightning node calls it under way, and a channel is being closed that may hold it: the chain decides within days';
  } catch (error) {
    const trouble = troubleOf(error);
    if (trouble === null) throw error;
    return `the Lightning node calls it under way, and whether a channel is being closed that may hold it is not known: ${trouble.reason}`;
  }
}
