// After a start of the database, and when another copy has taken its place: whether it knows of every payment over Lightning that the signer has
// let our node make, and of what the node lists besides. Until then nothing is paid, and nothing that could have been paid is cancelled.
import { LIGHTNING } from '../../../core/currencies/lightning.ts';
import { hasRunSince, knowsWhoIsThere } from '../../../core/lightning/node-run.ts';
import type { TrackedPayment } from '../../../core/lightning/payer.ts';
import type { AuthorizedPayment } from '../../../core/signer-wire.ts';
import type { Context } from '../../../flow/context.ts';
import { type Asked, askPayingNode } from '../../../flow/lightning/restored-node.ts';
import { restorePayment, STILL_ARRIVES_MS } from '../../../flow/lightning/restored-payments.ts';
import { neverSent, notSent, setAllAskedAgain } from '../../../store/lightning/asked-before.ts';
import { addForgottenChannels, channelsSince } from '../../../store/lightning/channels.ts';
import { payerBefore } from '../../../store/lightning/paying-node.ts';
import { isComparedSince, saveChecked } from '../../../store/payouts/comparisons.ts';
import { troubleOf } from '../../chain/pass-result.ts';
import { readSent, type SentPayments, stopOnUnasked } from '../../lightning/sent-comparison.ts';

/** Asks the signer; throws with a `fault` when it, or the node, cannot be asked. */
export type AuthorizedPayments = {
  authorized(after: number): Promise<{ readonly payments: readonly AuthorizedPayment[]; readonly more: boolean }>;
  track(paymentHash: string): Promise<TrackedPayment>;
  /** Every channel that a node has had open while the signer knew it. */
  channels(node: string): Promise<readonly string[]>;
} & SentPayments;

type Word = Pick<Parameters<typeof restorePayment>[2], 'node' | 'isForgotten'>;

/** Writes back what is missing. @returns whether everything was compared with this database, and not with one that has been replaced since */
export async function isPaidKnown(
  ctx: Context,
  paying: AuthorizedPayments,
  node: Asked,
  onTrouble: (what: string) => void,
): Promise<boolean> {
  if (await isComparedSince(ctx.db, LIGHTNING.code)) return true;
  const { identity } = node;
  // a node that was put back to before it had one, together with the database, shows nothing of it
  await addForgottenChannels(ctx.db, identity, await paying.channels(identity), ctx.ports.clock.now());
  const { generation } = ctx.db.identity;
  /** Of which node it was asked, and whether that may have forgotten it. @param sinceMs it may have been asked for from then on; null: it was not, or is there */
  async function wordOf(sinceMs: number | null, { payment }: TrackedPayment): Promise<Word> {
    if (sinceMs === null) return { node: identity, isForgotten: null };
    // another one paid then, and only that can say that it has none
    const other = payment === null ? await payerBefore(ctx.db, identity, sinceMs) : null;
    if (other !== null) return { node: other, isForgotten: true };
    // since this look began it may have been put back
    const mayBe = await mayBeOlder(ctx, await askPayingNode(ctx, () => paying.node()), sinceMs);
    // of one that it does not have nothing ends it but what its channels show later; that it failed counts where they show nothing
    return { node: identity, isForgotten: mayBe === 'no' && payment !== null ? null : mayBe === 'yes' };
  }
  async function writeBack(
    payment: Pick<AuthorizedPayment, 'payoutId' | 'paymentHash'>,
    askedSince: (tracked: TrackedPayment) => number | null,
  ): Promise<void> {
    const tracked = await paying.track(payment.paymentHash);
    // what it calls failed it may have had under way when it was copied
    const hasNone = (tracked.payment?.status ?? 'failed') === 'failed' && !tracked.isPending;
    const sinceMs = hasNone ? askedSince(tracked) : null;
    const at = await wordOf(sinceMs, tracked);
    const how = await restorePayment(ctx, payment, { ...at, tracked });
    if (how === 'written_back') onTrouble(`payment ${payment.paymentHash} was not in the database: it is written back`);
    if (how === 'unknown_payout') onTrouble(`payment ${payment.paymentHash} is of no payout here: payouts are stopped`);
  }
  for (let after = 0, more = true; more; ) {
    const page = await paying.authorized(after);
    const missing = await notSent(
      ctx.db,
      page.payments.map(({ payoutId }) => payoutId),
    );
    for (const payment of page.payments) {
      after = payment.sequence;
      if (!missing.has(payment.payoutId)) continue;
      await writeBack(payment, () => payment.authorizedAtMs);
    }
    more = page.more && page.payments.length > 0;
  }
  // a signer that was put back together with the database has forgotten the same payments: the node has not, whatever it calls them now
  for (const { createdAtMs, knownIndex, ...payment } of await neverSent(ctx.db, identity))
    await writeBack(payment, ({ payment: said }) =>
      said !== null && BigInt(said.paymentIndex) > (knownIndex ?? -1n) ? createdAtMs : null,
    );
  // and what neither knows, the node lists
  await readSent(ctx, paying, identity);
  if (await stopOnUnasked(ctx, onTrouble)) return false;
  if (generation !== ctx.db.identity.generation) return false;
  // also of what it knows to be sent it may not know the last request
  await setAllAskedAgain(ctx.db, ctx.ports.clock.now() + STILL_ARRIVES_MS);
  await saveChecked(ctx.db, LIGHTNING.code, 0);
  return true;
}

/** Whether the node may have been put back to before a payment was asked for, as its channels say. Throws with a `fault` when that is not known. */
async function mayBeOlder({ ports, db }: Context, node: Asked, sinceMs: number): Promise<'no' | 'yes' | 'not_met'> {
  try {
    // where the other side of a channel is away, that is asked again before the payment is asked for, and before it ends
    const nowMs = ports.clock.now();
    const known = await channelsSince(db, node.identity, sinceMs);
    const run = { hasRunOn: hasRunSince(node, sinceMs), areMet: knowsWhoIsThere(node, node.seenAtMs) };
    const said = (await ports.lightning?.mayBeOlder(Math.max(0, nowMs - sinceMs), known, run)) ?? 'no';
    if (said !== 'not_met' || run.areMet) return said;
  } catch (error) {
    const trouble = troubleOf(error);
    if (trouble === null) throw error;
    throw Object.assign(new Error(trouble.reason), { fault: 'node' });
  }
  throw Object.assign(new Error('the Lightning node was started a moment ago, and does not know yet who is there'), {
    fault: 'node',
  });
}
