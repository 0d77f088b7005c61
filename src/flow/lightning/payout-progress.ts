// What happens to a payout over Lightning after it was requested, one database transaction for each step: it is committed, paid, failed, expired
// before anybody was asked, or its outcome becomes unknown. Only the node's word ends a payment; nothing here calls anything outside.
import { createHash } from 'node:crypto';
import type { CurrencyCode } from '../../core/currency.ts';
import type { Entry } from '../../core/judge/case.ts';
import type { NodeRun } from '../../core/lightning/node-run.ts';
import type { PayingNode, PaymentFacts } from '../../core/lightning/payer.ts';
import { chargedFee, isWhatWasAsked } from '../../core/lightning/payout-fees.ts';
import { MOST_UNDER_WAY, takesTooManySlots, takesTooMuch } from '../../core/lightning/under-way.ts';
import { minus, plus } from '../../core/money.ts';
import { completeEntries, giveBackEntries, releaseEntry, signEntry } from '../../core/payouts/postings.ts';
import type { PayoutEvent } from '../../core/payouts/states.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { isAskedBefore } from '../../store/lightning/asked-before.ts';
import {
  type LightningPayment,
  lockLeased,
  readPaymentState,
  setEnded,
  setPaid,
  setSent,
} from '../../store/lightning/payment-rows.ts';
import { heldAndExpired, othersUnderWay } from '../../store/lightning/under-way.ts';
import { bookedAmounts, oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import { lockPayout, movePayout, type PayoutRow, paidFrom, wakeHeldJob } from '../../store/payouts/payouts.ts';
import { markReimbursing } from '../../store/payouts/reimbursements.ts';
import { readStops } from '../../store/payouts/request-facts.ts';
import { type Sql, transactionByIndex } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';

export type Booked = PayoutRow & { readonly currency: CurrencyCode };
type Leased = Pick<LightningPayment, 'payoutId' | 'leaseEpoch'>;

/** Runs a step on a payout whose payment is still leased under its epoch; `lost` when it is not. */
export function onLeased<T>(
  ctx: Context,
  of: Leased,
  step: (sql: Sql, payout: Booked, atMs: number) => Promise<T>,
): Promise<T | 'lost'> {
  async function onLocked(sql: Sql): Promise<T | 'lost'> {
    const [row, isLeased, asBooked] = await Promise.all([
      lockPayout(sql, of.payoutId, { wait: true }),
      lockLeased(sql, of),
      bookedAmounts(sql, [of.payoutId]),
    ]);
    if (row === null || !isLeased) return 'lost';
    const payout = asBooked(row);
    return step(sql, { ...payout, currency: paidFrom(payout) }, ctx.ports.clock.now());
  }
  return transactionByIndex(ctx.db, onLocked, { readsFirst: true });
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

/** `waits`: payouts are stopped, its merchant owes something, it is held again, or as many of its merchant's are under way as may be: its row says so. `too_much`: as much of its merchant's is. */
export type Committed = 'committed' | 'waits' | 'too_much' | 'lost';

/** What it may take out of our channels: of a reimbursement the fee is inside the amount. */
const takes = ({ amount, feeMax, reimburses }: Booked): bigint => (reimburses === null ? plus(amount, feeMax) : amount);
/** What its recipient gets of it. */
const sends = (payout: Booked): bigint => minus(takes(payout), payout.feeMax);

/** From here on the node may be asked, and only its word ends the payout. What it may take is on its way out. */
export function commitPayment(
  ctx: Context,
  of: Leased,
  node: Pick<PayingNode, 'identity' | 'spendable' | 'freeSlots'> & NodeRun,
): Promise<Committed> {
  return onLeased<Committed>(ctx, of, async (sql, payout, atMs) => {
    // one at a time of a merchant counts the others, and whoever had the balance before may have made him owe something
    const [, { isStopped, owes }, others] = await Promise.all([
      lockBalances(sql, payout.merchantId, [payout.currency]),
      readStops(sql, payout.merchantId, payout.id),
      othersUnderWay(sql, payout.id),
    ]);
    if (payout.step !== 'queued' || isStopped || owes) {
      await wakeHeldJob(sql);
      return 'waits';
    }
    if (others.count >= MOST_UNDER_WAY) {
      await movePayout(sql, payout, 'crowded', { heldReason: 'cool_down', atMs });
      return 'waits';
    }
    if (takesTooMuch(takes(payout), { underWay: others.satoshis, spendable: BigInt(node.spendable) })) return 'too_much';
    if (takesTooManySlots(others.count, node.freeSlots)) return 'too_much';
    await Promise.all([
      post(sql, payout, [signEntry(payout, 1, payout.feeMax, null)], atMs),
      movePayout(sql, payout, 'committed', { atMs }),
      setSent(sql, payout.id, { node: node.identity, nodeStartedAtMs: node.startedAtMs, atMs }),
    ]);
    return 'committed';
  });
}

/** As many of its merchant are under way as may be: it waits until one of them ends. */
export function holdCrowded(ctx: Context, of: Leased): Promise<'held' | 'lost'> {
  return onLeased(ctx, of, async (sql, payout, atMs): Promise<'held'> => {
    if (payout.step === 'queued') await movePayout(sql, payout, 'crowded', { heldReason: 'cool_down', atMs });
    // one may have ended meanwhile
    await wakeHeldJob(sql);
    return 'held';
  });
}

/**
 * What the node calls paid. `contradicts`: its preimage is not that of the payment hash; payouts are stopped. `otherwise`: it has paid this hash with
 * another amount or for a higher fee, which was not asked for by this payout.
 */
export type Paid = 'paid' | 'contradicts' | 'otherwise' | 'lost';

/**
 * Books a payment over Lightning that the node calls paid. Its preimage must hash (SHA-256) to the payment hash: one that does not books
 * nothing and stops payouts. Nor is anything booked when it was paid otherwise: somebody had the node pay an invoice with this hash before, and it pays
 * none twice. `lost`: another process has the lease.
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
    if (!isWhatWasAsked(said, { amount: sends(payout), feeMax: payout.feeMax })) return 'otherwise';
    const feeMsat = BigInt(said.feeMsat);
    // what an invoice left of a reimbursement is its fee: what the route did not take is the service's (store/lightning/comparison)
    const fee = payout.reimburses === null ? chargedFee(feeMsat, payout.feeMax) : payout.feeMax;
    const owed = await owedOf(sql, payout);
    await Promise.all([
      post(sql, payout, completeEntries(payout, fee, payout.feeMax, owed), atMs),
      setPaid(sql, { payoutId: payout.id, preimage: said.preimage ?? '', feeMsat, paymentIndex: BigInt(said.paymentIndex) }),
      end(sql, payout, 'paid', { fee, completedAtMs: atMs, atMs }),
    ]);
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

/** Nobody was asked to pay it, and our node could never pay its invoice. `waits`: as far as the signer knows, somebody was. */
export function refusePayment(ctx: Context, of: Leased, error: string): Promise<'failed' | 'waits' | 'lost'> {
  return onLeased(ctx, of, async (sql, payout, atMs): Promise<'failed' | 'waits'> => {
    if (payout.step !== 'queued' || (await isAskedBefore(sql, payout.id))) return 'waits';
    await endUnasked(sql, payout, 'unpayable', { error, atMs });
    return 'failed';
  });
}

/**
 * Those that are held for whatever reason, and whose invoices cannot be paid any more. Nobody was asked to pay them, also before the database was
 * restored: the caller has compared it.
 */
export async function expireHeld(ctx: Context): Promise<void> {
  const expired = await heldAndExpired(ctx.db, ctx.ports.clock.now());
  for (const payoutId of expired)
    await ctx.db.transaction(async (sql) => {
      const row = await lockPayout(sql, payoutId, { wait: false });
      // it may have been cancelled, or let go and sent, since it was found
      if (row === null || (await readPaymentState(sql, payoutId)) !== 'waiting') return;
      const payout = await oneAsBooked(sql, row);
      await expireLocked(sql, { ...payout, currency: paidFrom(payout) }, ctx.ports.clock.now());
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
  await endUnasked(sql, payout, 'invoice_expired', { error: INVOICE_EXPIRED, atMs });
}

/** What it held comes back; the judge of its transaction says where the payments of a reimbursement belong. */
async function endUnasked(
  sql: Sql,
  payout: Booked,
  event: 'invoice_expired' | 'unpayable',
  ending: { readonly error: string; readonly atMs: number },
): Promise<void> {
  if (payout.reimburses === null) await post(sql, payout, [releaseEntry(payout, await owedOf(sql, payout))], ending.atMs);
  await setEnded(sql, payout.id, 'failed');
  await end(sql, payout, event, ending);
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
    await movePayout(sql, payout, 'outcome_unknown', { heldReason: 'unknown_outcome', atMs });
    return 'held';
  });
}
