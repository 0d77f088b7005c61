// What happens to a payout over Lightning after it was requested, one database transaction for each step: it is committed, paid, failed, expired
// before anybody was asked, or its outcome becomes unknown. Only the node's word ends a payment; nothing here calls anything outside.
import { createHash } from 'node:crypto';
import type { CurrencyCode } from '../../core/currency.ts';
import type { Entry } from '../../core/judge/case.ts';
import type { PaymentFacts } from '../../core/lightning/payer.ts';
import { chargedFee } from '../../core/lightning/payout-fees.ts';
import { completeEntries, giveBackEntries, releaseEntry, signEntry } from '../../core/payouts/postings.ts';
import type { PayoutEvent } from '../../core/payouts/states.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { type LightningPayment, lockLeased, setEnded, setPaid, setSent } from '../../store/lightning/payment-rows.ts';
import { oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import { readStops } from '../../store/payouts/hold-facts.ts';
import { lockPayout, movePayout, type PayoutRow, paidFrom, wakeHeldJob } from '../../store/payouts/payouts.ts';
import { markReimbursing } from '../../store/payouts/reimbursements.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';

export type Booked = PayoutRow & { readonly currency: CurrencyCode };
type Leased = Pick<LightningPayment, 'payoutId' | 'leaseEpoch'>;

/** Runs a step on a payout whose payment is still leased under its epoch; `lost` when it is not. */
export function onLeased<T>(
  ctx: Context,
  of: Leased,
  step: (sql: Sql, payout: Booked, atMs: number) => Promise<T>,
): Promise<T | 'lost'> {
  return ctx.db.transaction(async (sql) => {
    const row = await lockPayout(sql, of.payoutId, { wait: true });
    if (row === null || !(await lockLeased(sql, of))) return 'lost';
    const payout = await oneAsBooked(sql, row);
    return step(sql, { ...payout, currency: paidFrom(payout) }, ctx.ports.clock.now());
  });
}

async function post(sql: Sql, { id }: Booked, entries: readonly (Entry | null)[], atMs: number): Promise<void> {
  const made = entries.filter((entry) => entry !== null);
  await postEntries(
    sql,
    made.map((entry) => ({ entry, transactionId: null, payoutId: id, atMs })),
  );
}

/** What its merchant owes in its currency; his balances are locked. */
export async function owedOf(sql: Sql, { merchantId, currency }: Booked): Promise<bigint> {
  return (await lockBalances(sql, merchantId, [currency])).get(currency)?.receivable ?? 0n;
}

/** `waits`: payouts are stopped, its merchant owes something, or it is held again; the job of held payouts says so. */
export type Committed = 'committed' | 'waits' | 'lost';

/** From here on the node may be asked, and only its word ends the payout. What it may take is on its way out. */
export function commitPayment(ctx: Context, of: Leased, node: string): Promise<Committed> {
  return onLeased<Committed>(ctx, of, async (sql, payout, atMs) => {
    const { isStopped, owes } = await readStops(sql, payout.merchantId, payout.id);
    if (payout.step !== 'queued' || isStopped || owes) {
      await wakeHeldJob(sql);
      return 'waits';
    }
    await post(sql, payout, [signEntry(payout, 1, payout.feeMax, null)], atMs);
    await movePayout(sql, payout, 'committed', { atMs });
    await setSent(sql, payout.id, node);
    return 'committed';
  });
}

/** What the node calls paid. `contradicts`: its preimage is not that of the payment hash; payouts are stopped. */
export type Paid = 'paid' | 'contradicts' | 'lost';

/**
 * Books a payment over Lightning that the node calls paid. Its preimage must hash (SHA-256) to the payment hash: one that does not books
 * nothing and stops payouts. `lost`: another process has the lease.
 * @param said the node's word; fees in millisatoshis
 */
export function completePayment(ctx: Context, of: Leased & { readonly paymentHash: string }, said: PaymentFacts): Promise<Paid> {
  return onLeased<Paid>(ctx, of, async (sql, payout, atMs) => {
    const preimage = Buffer.from(said.preimage ?? '', 'hex');
    if (createHash('sha256').update(preimage).digest('hex') !== of.paymentHash) {
      const finding = `the Lightning node calls ${payout.id} paid, and shows no preimage of ${of.paymentHash}`;
      await tripBreaker(sql, { name: 'payouts', by: ['LN-5'], findings: [finding], atMs });
      return 'contradicts';
    }
    const feeMsat = BigInt(said.feeMsat);
    // what an invoice left of a reimbursement is its fee: what the route did not take is the service's (store/lightning/comparison)
    const fee = payout.reimburses === null ? chargedFee(feeMsat, payout.feeMax) : payout.feeMax;
    await post(sql, payout, completeEntries(payout, fee, payout.feeMax, await owedOf(sql, payout)), atMs);
    await setPaid(sql, { payoutId: payout.id, preimage: said.preimage ?? '', feeMsat, paymentIndex: BigInt(said.paymentIndex) });
    await end(sql, payout, 'paid', { fee, completedAtMs: atMs, atMs });
    return 'paid';
  });
}

/** The node's last word is that it was not paid, and nothing that was asked of it can arrive any more. */
export function failPayment(ctx: Context, of: Leased, error: string): Promise<'failed' | 'lost'> {
  return onLeased(ctx, of, async (sql, payout, atMs): Promise<'failed'> => {
    await post(sql, payout, giveBackEntries(payout, payout.feeMax, await owedOf(sql, payout)), atMs);
    await setEnded(sql, payout.id, 'failed');
    await end(sql, payout, 'unpayable', { error, atMs });
    return 'failed';
  });
}

/** Nobody was asked to pay it, and its invoice cannot be paid any more. */
export function expirePayment(ctx: Context, of: Leased): Promise<'failed' | 'waits' | 'lost'> {
  return onLeased(ctx, of, async (sql, payout, atMs): Promise<'failed' | 'waits'> => {
    if (payout.step !== 'queued') return 'waits';
    await expireLocked(sql, payout, atMs);
    return 'failed';
  });
}

/** The same for one that waits, and whose payment the caller has locked. */
export async function expireLocked(sql: Sql, payout: Booked, atMs: number): Promise<void> {
  if (payout.reimburses === null) await post(sql, payout, [releaseEntry(payout, await owedOf(sql, payout))], atMs);
  await setEnded(sql, payout.id, 'failed');
  await end(sql, payout, 'invoice_expired', { error: INVOICE_EXPIRED, atMs });
}
/** The error of a payout whose invoice expired before our node was asked. */
const INVOICE_EXPIRED = 'invoice_expired';

type Ending = Parameters<typeof movePayout>[3];

async function end(sql: Sql, payout: Booked, event: PayoutEvent, ending: Ending): Promise<void> {
  await movePayout(sql, payout, event, ending);
  await markReimbursing(sql, payout.reimburses === null ? [] : [payout.reimburses]);
  // what it gave back may let others go on
  await wakeHeldJob(sql);
}

/** Nobody can say by himself how it ends: it stays reserved, and an operator decides, unless the node says it after all. */
export function holdUnknownPayment(ctx: Context, of: Leased): Promise<'held' | 'lost'> {
  return onLeased(ctx, of, async (sql, payout, atMs): Promise<'held'> => {
    if (payout.step === 'batched') await movePayout(sql, payout, 'outcome_unknown', { heldReason: 'unknown_outcome', atMs });
    return 'held';
  });
}
