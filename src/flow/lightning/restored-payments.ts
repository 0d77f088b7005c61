// After a database was restored from a copy it may not know that it had a payment over Lightning sent. The signer's journal knows every one that it
// let the node make, and the node what has become of it: each is written back before anything new is paid, and before a payout can be cancelled.

import type { TrackedPayment } from '../../core/lightning/payer.ts';
import { signEntry } from '../../core/payouts/postings.ts';
import type { AuthorizedPayment } from '../../core/signer-wire.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { heldAndListed, setAskedBefore, setSentAgain } from '../../store/lightning/asked-before.ts';
import { isOfAnother, readPaymentState } from '../../store/lightning/payment-rows.ts';
import { isBookedHere } from '../../store/lightning/sent-payments.ts';
import { oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import { lockPayout, movedPayout, movePayout, paidFrom } from '../../store/payouts/payouts.ts';
import type { Context } from '../context.ts';

/** `never_sent`: it was authorized, and the node has paid nothing for it; it may be paid yet. */
export type RestoredPayment = 'known' | 'written_back' | 'never_sent' | 'unknown_payout';

/** A node was not asked, or cannot say anything any more. */
export const NOTHING_KNOWN: TrackedPayment = { payment: null, isPending: false };

/** Longer than a request to pay, made before the database was restored, can still arrive. */
export const STILL_ARRIVES_MS = 60_000;

/**
 * Writes one payment back of which this database does not know that it was sent. One that it does not know at all, or has cancelled, and that
 * the node has paid or is paying, stops all payouts until an operator has booked it.
 */
export function restorePayment(
  ctx: Context,
  { payoutId, paymentHash }: Pick<AuthorizedPayment, 'payoutId' | 'paymentHash'>,
  at: {
    readonly node: string;
    readonly tracked: TrackedPayment;
    /** Of one that the signer let be made, or that the node has, and that the node does not have as paid or under way: whether it may have forgotten that. Null: neither, or its word counts. */
    readonly isForgotten: boolean | null;
  },
): Promise<RestoredPayment> {
  const said = at.tracked.payment?.status ?? 'failed';
  const isGone = said !== 'failed' || at.tracked.isPending;
  return ctx.db.transaction(async (sql): Promise<RestoredPayment> => {
    const atMs = ctx.ports.clock.now();
    const row = await lockPayout(sql, payoutId, { wait: true });
    const state = await readPaymentState(sql, payoutId);
    if (state === 'sent' || state === 'paid' || state === 'closed') return 'known';
    const isOpen = row !== null && state === 'waiting' && row.step !== 'ended';
    // what shows that the node has forgotten it may be seen later; until then nothing ends it
    if (!isGone && isOpen && at.isForgotten === false) {
      await setAskedBefore(sql, payoutId, atMs + STILL_ARRIVES_MS);
      // a person is asked whether something else has paid it: nobody asks for it before he has said so
      if (row.step === 'held' && row.heldReason !== 'unknown_outcome') await movePayout(sql, row, 'hold_ended', { atMs });
    }
    if (!isGone && !(isOpen && at.isForgotten === true)) return 'never_sent';
    // it failed, and its merchant has asked once more for the same invoice
    if (state === 'failed' && (await isOfAnother(sql, paymentHash, payoutId))) return 'known';
    if (row === null || state === null || row.step === 'ended') {
      if (await isBookedHere(sql, paymentHash, payoutId)) return 'known';
      const known = row === null ? 'which this database does not know' : `which is ${row.status} here`;
      const finding = `the Lightning node has paid ${paymentHash}, or is paying it, for ${payoutId}, ${known}`;
      await tripBreaker(sql, { name: 'payouts', by: ['LN-5'], findings: [finding], atMs });
      return 'unknown_payout';
    }
    // what this copy still holds back was let go when it was sent
    const queued = row.step === 'held' ? await movedPayout(sql, row, 'hold_ended', { atMs }) : row;
    const payout = await oneAsBooked(sql, queued);
    const entry = signEntry({ ...payout, currency: paidFrom(payout) }, 1, payout.feeMax, null);
    if (entry !== null) await postEntries(sql, [{ entry, transactionId: null, payoutId, atMs }]);
    await movePayout(sql, queued, 'committed', { atMs });
    await setSentAgain(sql, payoutId, { node: at.node, unansweredUntilMs: atMs + STILL_ARRIVES_MS, dueAtMs: atMs });
    return 'written_back';
  });
}

/**
 * What a person is asked about, and a node lists as paid, as it asks for it, was paid by that, whoever had the node pay it: it ends as one that was sent, and not
 * as one that something else has paid.
 */
export async function restoreListed(ctx: Context): Promise<void> {
  for (const { node, ...payment } of await heldAndListed(ctx.db))
    await restorePayment(ctx, payment, { node, tracked: NOTHING_KNOWN, isForgotten: true });
}
