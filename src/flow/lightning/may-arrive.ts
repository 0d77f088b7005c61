// Whether a payment that the Lightning node was asked for may still arrive, or be taken: what may, nobody calls failed. Nor does anybody call failed what
// nobody was asked about, unless he says that the node is gone for good.
import { createHash } from 'node:crypto';
import { clockBehind, mayStillArrive, type TrackedPayment } from '../../core/lightning/payer.ts';
import { isWhatWasAsked } from '../../core/lightning/payout-fees.ts';
import type { LightningPort } from '../../core/lightning/port.ts';
import { Refusal } from '../../core/refusal.ts';
import { type PaymentToResolve, paymentToResolve } from '../../store/lightning/payment-hashes.ts';
import { listedBy } from '../../store/lightning/sent-payments.ts';
import type { Context } from '../context.ts';

/** Why something could not be asked. */
type Unasked = { readonly unasked: string };

/** What the node that pays says of a payment hash, or why it cannot be asked. */
export type Track = (paymentHash: string) => Promise<TrackedPayment | Unasked>;

/**
 * @param of.isNodeGone the node that was asked can never be asked again
 * @throws Refusal not_resolvable
 */
export async function refuseWhileOpen(
  ctx: Context,
  payoutId: string,
  { track, isNodeGone }: { readonly track: Track; readonly isNodeGone: boolean },
): Promise<void> {
  const payment = await paymentToResolve(ctx.db, payoutId);
  if (payment === null) return;
  // it may be there no more to say so again
  const paidBy = await listedBy(ctx.db, payoutId);
  if (paidBy !== null) throw refused(`Lightning node ${paidBy} lists it as paid: it can only be called paid.`);
  if (mayStillArrive(payment, ctx.ports.clock.now()))
    throw refused('A request to pay it was not answered, and may still arrive at the Lightning node: try again in two minutes.');
  const stalled = await unlessItWrites(ctx.ports.lightning, payment);
  // an HTLC that the other side has not confirmed is in no list of a channel: only who pays can ask for it
  const said = await track(payment.paymentHash);
  const open = isUnasked(said) ? null : whyOpen(said, payment);
  if (open !== null) throw refused(open);
  const nowMs = ctx.ports.clock.now();
  if (!isUnasked(said) && said.saidAtMs !== undefined && mayStillArrive(payment, nowMs, said.saidAtMs))
    throw refused(`Wait: ${clockBehind(nowMs, said.saidAtMs)}.`);
  const held = await refuseWhileHeld(ctx.ports.lightning, payment);
  const { unasked } = isUnasked(said) ? said : (held ?? stalled ?? { unasked: null });
  if (unasked === null || isNodeGone) return;
  throw refused(
    `The Lightning node cannot be asked whether it may still arrive (${unasked}): try again, or say --node-gone where the node that was asked is gone for good.`,
  );
}

/**
 * What nobody here has asked for, and the node has paid or is paying all the same, is completed by that: called paid, it would count as paid by something else too.
 * @throws Refusal not_resolvable
 */
export async function refuseWhilePaid(ctx: Context, payoutId: string, track: Track): Promise<void> {
  const payment = await paymentToResolve(ctx.db, payoutId);
  if (payment === null || payment.node !== null) return;
  const said = await track(payment.paymentHash);
  const open = isUnasked(said) ? null : whyOpen(said, payment);
  if (open !== null) throw refused(open);
}

const refused = (message: string): Refusal => new Refusal('not_resolvable', { message });
const isUnasked = (said: object): said is Unasked => 'unasked' in said;

/** Why the node's word keeps it from being called failed; null where it does not. */
function whyOpen({ payment, isPending, arrivesUntil }: TrackedPayment, of: PaymentToResolve): string | null {
  if (payment === null || payment.status === 'failed') return null;
  const { preimage } = payment;
  if (payment.status === 'succeeded')
    return isReceipt(preimage, of) && isWhatWasAsked(payment, of)
      ? `The Lightning node has paid it, with the preimage ${preimage}: the worker completes it.`
      : null;
  if (isPending)
    return arrivesUntil === undefined
      ? 'A channel of the Lightning node holds this payment: its recipient may still take it.'
      : `The Lightning node calls it under way, and what has left may still arrive, up to block ${arrivesUntil}.`;
  return preimage === null
    ? null
    : `The recipient has taken a part of it, with the preimage ${preimage}: the worker completes it.`;
}

/** What it says of a request that was not answered is worth something only once it has written. @returns why that is not known; null where it has */
async function unlessItWrites(lightning: LightningPort | null, { unansweredUntilMs }: PaymentToResolve): Promise<Unasked | null> {
  if (unansweredUntilMs === null || lightning === null) return null;
  return lightning.writes().then(() => null, orWhy);
}

function orWhy(error: Error): Unasked {
  if (error.name === 'NodeTrouble' || error.name === 'LndRefusal') return { unasked: error.message };
  throw error;
}

/** What is none completes nothing. */
const isReceipt = (preimage: string | null, { paymentHash }: PaymentToResolve): boolean =>
  createHash('sha256')
    .update(Buffer.from(preimage ?? '', 'hex'))
    .digest('hex') === paymentHash;

/** What a channel holds, or one that is being closed may hold, its recipient may still take. @returns why that is not known; null where it is */
async function refuseWhileHeld(
  lightning: LightningPort | null,
  { paymentHash, node }: PaymentToResolve,
): Promise<Unasked | null> {
  if (lightning === null) return { unasked: 'no node is configured here' };
  const there = await lightning.condition();
  // in this order: what leaves a channel because that is closed is found in the second
  const holds = await lightning.holds(paymentHash).catch(orWhy);
  if (holds === true) throw refused('A channel of the Lightning node holds this payment: its recipient may still take it.');
  const isClosing = await lightning.isClosing().catch(orWhy);
  if (isClosing === true)
    throw refused(
      'The Lightning node is closing a channel that may hold this payment: its recipient may still take it on the chain.',
    );
  if (holds !== false) return holds;
  if (isClosing !== false) return isClosing;
  if (node === null) return null;
  // it answers before it says which node it is, or has read in its blocks which channels were closed
  if (there.state !== 'ready') return { unasked: there.reason };
  return there.identity === node ? null : { unasked: `node ${node} was asked to pay it, and this is node ${there.identity}` };
}
