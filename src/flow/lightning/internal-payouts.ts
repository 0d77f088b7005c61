// Payouts to an invoice of another merchant here: our node is made to cancel it first, so that nobody else can pay it, then one database transaction
// makes the amount a payment of that transaction. Where it was paid, cancelled or timed out before, nothing has moved and the payout fails.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { AskTrust } from '../../core/payouts/intent.ts';
import { completeEntries, signEntry } from '../../core/payouts/postings.ts';
import { openBreakers, tripBreaker } from '../../store/ledger/breakers.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { closeInvoices, SETTLED_HEIGHT } from '../../store/lightning/invoices.ts';
import { type LightningPayment, setEnded } from '../../store/lightning/payment-rows.ts';
import { recordSettled } from '../../store/lightning/settlements.ts';
import { insertInternalPayment, lockPaidTransaction } from '../../store/payouts/internal-payouts.ts';
import { movePayout, wakeHeldJob } from '../../store/payouts/payouts.ts';
import { readStops } from '../../store/payouts/request-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { whyNotBooked } from '../payouts/internal-payouts.ts';
import { holdForOperator } from '../payouts/waiting-for-operator.ts';
import { type Booked, expireLocked, expirePayment, onLeased, owedOf } from './payout-progress.ts';

/**
 * Books a leased one, or fails it where its invoice cannot be paid any more.
 * @param intents whose payouts count: the signer does not see what leaves nothing
 * @returns what is in its way; null when nothing is
 */
export async function bookInvoiceHere(ctx: Context, payment: LightningPayment, intents: AskTrust): Promise<string | null> {
  // its transaction times out with the next look at the node, which may come later
  if (ctx.ports.clock.now() >= payment.expiresAtMs) {
    await expirePayment(ctx, payment);
    return null;
  }
  const isIntended = await intents();
  if (isIntended === null) return 'the signer does not say which APIs are trusted';
  if ((await openBreakers(ctx.db)).length > 0) return null;
  const { payoutId } = payment;
  const against = await ctx.db.transaction((sql) => whyNotBooked(ctx, sql, isIntended, payoutId));
  if (against !== null) {
    await ctx.db.transaction(async (sql) => {
      await holdForOperator(ctx, sql, { payoutId, why: against.why });
      const findings = [against.why];
      if (against.stops) await tripBreaker(sql, { name: 'payouts', by: ['INT-1'], findings, atMs: ctx.ports.clock.now() });
    });
    return against.why;
  }
  if ((await onLeased(ctx, payment, mayBeBooked)) !== true) return null;
  const closed = await closeAtNode(ctx, payment);
  if (closed.said === null) return closed.trouble;
  const how = await book(ctx, payment, closed.said === 'cancelled');
  return how === 'unknown_invoice' ? 'the Lightning node does not know the invoice that it would pay' : null;
}

type Closed = { readonly said: 'cancelled' | 'settled' | 'unknown' } | { readonly said: null; readonly trouble: string };

/** Makes the node cancel the invoice; where it was paid first, that is recorded. */
async function closeAtNode({ ports, db }: Context, { paymentHash }: LightningPayment): Promise<Closed> {
  const trouble = (what: string): Closed => ({ said: null, trouble: what });
  if (ports.lightning === null) return trouble('no Lightning node is configured');
  try {
    const said = await ports.lightning.cancelInvoice(paymentHash);
    if (said !== 'settled') return { said };
    const facts = await ports.lightning.invoice(paymentHash);
    if (facts?.state !== 'settled') return trouble('the Lightning node contradicts itself about the invoice that it would pay');
    await recordSettled(db, null, [facts], ports.clock.now());
    return { said };
  } catch (error) {
    const { name, message } = error as Error;
    if (name === 'NodeTrouble' || name === 'LndRefusal') return trouble(message);
    throw error;
  }
}

/** Looked at before the node is asked: an invoice that it has cancelled for a payout that waits then nobody could pay. */
async function mayBeBooked(sql: Sql, { step, merchantId }: Booked): Promise<boolean> {
  const { isStopped, owes } = await readStops(sql, merchantId);
  const may = step === 'queued' && !isStopped && !owes;
  // its row says then why it waits, and it ends when its invoice does
  if (!may) await wakeHeldJob(sql);
  return may;
}

/** @param isCancelled the node has said that nobody can pay it any more, and nobody has */
function book(ctx: Context, payment: LightningPayment, isCancelled: boolean): Promise<string> {
  const internalTo = payment.internalTo as string;
  return onLeased(ctx, payment, async (sql, payout, atMs) => {
    // what its merchant has come to owe since the invoice was cancelled comes too late, as for one that the node was asked to pay
    if (payout.step !== 'queued') return 'waits';
    const { status, isSettled } = await lockPaidTransaction(sql, internalTo);
    // paid by somebody else, which its judge may not know yet; cancelled or timed out meanwhile
    if (isSettled || status !== 'started') {
      await expireLocked(sql, payout, atMs);
      return 'failed';
    }
    if (!isCancelled) return 'unknown_invoice';
    const taken = signEntry(payout, 0, 0n, null);
    const entries = [...(taken === null ? [] : [taken]), ...completeEntries(payout, 0n, 0n, await owedOf(sql, payout))];
    await postEntries(
      sql,
      entries.map((entry) => ({ entry, transactionId: null, payoutId: payout.id, atMs })),
    );
    await closeInvoices(sql, [payment.paymentHash]);
    await insertInternalPayment(
      sql,
      { id: payout.id, internalTo, amount: payout.amount },
      { currency: LIGHTNING.code, height: SETTLED_HEIGHT, atMs },
    );
    await setEnded(sql, payout.id, 'closed');
    await movePayout(sql, payout, 'booked_here', { fee: 0n, completedAtMs: atMs, atMs });
    return 'booked';
  });
}
