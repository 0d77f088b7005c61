// An operator decides a payout whose outcome nobody can find out (`held_reason` unknown_outcome), with evidence that stays in its history.
import type { Entry } from '../../core/judge/case.ts';
import { chargedFee } from '../../core/lightning/payout-fees.ts';
import { unknownReceiptEntry } from '../../core/lightning/postings.ts';
import { achCompleteEntry, achHandOverEntry, achReleaseEntry, type PostedAchPayout } from '../../core/payouts/ach-postings.ts';
import {
  completeEntries,
  giveBackEntries,
  type PostedPayout,
  releaseEntry,
  signEntry,
  unknownInflowEntry,
} from '../../core/payouts/postings.ts';
import { Refusal } from '../../core/refusal.ts';
import { lockAchFiles } from '../../store/ach/files.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { isPaidBesides, lockPaymentHash, paymentToResolve } from '../../store/lightning/payment-hashes.ts';
import { setEnded } from '../../store/lightning/payment-rows.ts';
import { listedFee } from '../../store/lightning/sent-payments.ts';
import { bookedFee, isHeldInLedger, oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import { lockPayout, movedPayout, type PayoutRow, paidFrom, setResolved, wakeHeldJob } from '../../store/payouts/payouts.ts';
import { markReimbursing } from '../../store/payouts/reimbursements.ts';
import { openMovements } from '../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { adoptLost } from '../ach/alike-payouts.ts';
import type { Context } from '../context.ts';
import { refuseWhileOpen, refuseWhilePaid, type Track } from '../lightning/may-arrive.ts';

export type Resolution = {
  readonly payoutId: string;
  readonly outcome: 'paid' | 'failed';
  /** What shows it: for the history, and the `error` of a failed one. */
  readonly evidence: string;
  /** The Lightning node that was asked to pay it can never be asked again. */
  readonly isNodeGone?: boolean;
};

/** Where no node may pay. */
const UNTRACKED: Track = async () => ({ unasked: 'no node may pay here' });

/**
 * @param track asks the Lightning node that pays
 * @throws Refusal payout_not_found; not_resolvable unless its outcome is unknown, while something that left in its currency is not booked, as paid where what
 *   the Lightning node has paid for its hash is booked for nobody's payout, and as failed
 *   over Lightning while a request to pay it may still arrive, or the node says that it may be taken yet, that a channel holds it, or that it is closing one,
 *   or cannot be asked
 */
export async function resolvePayout(
  ctx: Context,
  { payoutId, outcome, evidence, isNodeGone = false }: Resolution,
  track: Track = UNTRACKED,
): Promise<PayoutRow> {
  if (outcome === 'failed') await refuseWhileOpen(ctx, payoutId, { track, isNodeGone });
  else await refuseWhilePaid(ctx, payoutId, track);
  return ctx.db.transaction(async (sql) => {
    // what was lost of a bank file may have paid it: the files before the payout, as a look that finds one locks them
    if (outcome === 'paid') await lockAchFiles(sql);
    if (outcome === 'paid') await refuseBooked(sql, payoutId);
    const payout = await lockPayout(sql, payoutId, { wait: true });
    if (payout === null) throw new Refusal('payout_not_found', { param: 'payout_id' });
    if (payout.heldReason !== 'unknown_outcome') {
      const waits = payout.heldReason === null ? '' : `, held_reason ${payout.heldReason}`;
      const message = `The payout is ${payout.status}${waits}: only one with held_reason unknown_outcome can be resolved.`;
      throw new Refusal('not_resolvable', { message });
    }
    await refuseBeforeRecover(sql, payout);
    if (outcome === 'paid') await refuseUnbooked(sql, payout);
    if (outcome === 'paid') await bookPaidByOthers(ctx, sql, payout);
    if (outcome === 'paid' && payout.source !== null) await adoptLost(ctx, sql, payout);
    return resolveLocked(ctx, sql, payout, { outcome, evidence });
  });
}

/** What our Lightning node has paid for its hash, and somebody has booked otherwise, has left once. Who books it meanwhile waits, and finds it paid. */
async function refuseBooked(sql: Sql, payoutId: string): Promise<void> {
  const payment = await paymentToResolve(sql, payoutId);
  if (payment === null) return;
  const { paymentHash } = payment;
  await lockPaymentHash(sql, paymentHash);
  if (!(await isPaidBesides(sql, paymentHash))) return;
  throw new Refusal('not_resolvable', {
    message: `What the Lightning node has paid for ${paymentHash} is booked: it was paid for somebody else, and would count twice as this payout. It can only be called failed.`,
  });
}

/** What is known to have left is booked first: it may have paid this payout, which would then be booked twice or given back although it was paid. */
async function refuseBeforeRecover(sql: Sql, { currency }: PayoutRow): Promise<void> {
  const open = (await openMovements(sql)).find((movement) => movement.currency === currency && movement.txid !== null);
  if (open === undefined) return;
  const message = `${open.txid} has left and is not booked: bursar payout recover ${open.txid} says whether it has paid this payout.`;
  throw new Refusal('not_resolvable', { message });
}

/** What a reimbursement sends back is taken from where it lies once it is booked. */
async function refuseUnbooked(sql: Sql, { id, reimburses }: PayoutRow): Promise<void> {
  if (reimburses === null || (await isHeldInLedger(sql, id))) return;
  const message = 'What it sends back is not booked yet: it can be found paid once its payments have their confirmations.';
  throw new Refusal('not_resolvable', { message });
}

/** What nothing was signed for was paid with outputs that are none of ours: ours are all still there. */
async function bookPaidByOthers(ctx: Context, sql: Sql, row: PayoutRow): Promise<void> {
  if (row.source !== null || (await bookedFee(sql, row.id)) !== null) return;
  const { id: payoutId, amount } = await oneAsBooked(sql, row);
  const entry =
    row.paymentHash == null ? unknownInflowEntry(payoutId, paidFrom(row), amount) : unknownReceiptEntry(payoutId, amount);
  await postEntries(sql, [{ entry, transactionId: null, atMs: ctx.ports.clock.now() }]);
}

/** The same for one whose outcome is unknown and whose row the caller has locked. */
export async function resolveLocked(
  ctx: Context,
  sql: Sql,
  row: PayoutRow,
  { outcome, evidence }: Pick<Resolution, 'outcome' | 'evidence'>,
): Promise<PayoutRow> {
  const payout = await oneAsBooked(sql, row);
  const { id: payoutId, merchantId } = payout;
  const currency = paidFrom(payout);
  const { source } = payout;
  const owed =
    (await lockBalances(sql, merchantId, [currency], { heldDollars: source !== null })).get(currency)?.receivable ?? 0n;
  const booked = await bookedFee(sql, payoutId);
  const fee = await paidFee(sql, payout, booked);
  const atMs = ctx.ports.clock.now();
  const entries =
    source !== null
      ? achEntries({ ...payout, source }, outcome, owed)
      : outcome === 'paid'
        ? paidEntries({ ...payout, currency }, { booked, fee, owed })
        : failedEntries({ ...payout, currency }, booked, owed);
  await postEntries(
    sql,
    entries.map((entry) => ({ entry, transactionId: null, payoutId, atMs })),
  );
  await setResolved(sql, payoutId);
  await setEnded(sql, payoutId, 'closed');
  await wakeHeldJob(sql);
  await markReimbursing(sql, payout.reimburses === null ? [] : [payout.reimburses]);
  const reason = `an operator found it ${outcome === 'paid' ? 'paid' : 'unpaid'}: ${evidence}`;
  return outcome === 'paid'
    ? movedPayout(sql, payout, 'resolved_paid', {
        ...(source === null ? { fee } : {}),
        completedAtMs: atMs,
        reason,
        atMs,
      })
    : movedPayout(sql, payout, 'resolved_failed', {
        error: evidence,
        reason,
        atMs,
        ...(source === null ? {} : { givenBack: source.amount }),
      });
}

/**
 * What one that was found paid has cost. Over Lightning the highest fee is booked, and the merchant pays only what the node has shown: what it
 * may show later is the service's. What a reimbursement's invoice left is its fee.
 */
async function paidFee(sql: Sql, { paymentHash, reimburses }: PayoutRow, booked: bigint | null): Promise<bigint> {
  if (booked === null || paymentHash == null || reimburses !== null) return booked ?? 0n;
  const listed = await listedFee(sql, paymentHash);
  return listed === null ? 0n : chargedFee(listed, booked);
}

function paidEntries(
  payout: PostedPayout,
  { booked, fee, owed }: { readonly booked: bigint | null; readonly fee: bigint; readonly owed: bigint },
): readonly Entry[] {
  // what left without a signature of ours was never booked as on its way
  const left = booked === null ? signEntry(payout, 0, 0n, null) : null;
  return [...(left === null ? [] : [left]), ...completeEntries(payout, fee, booked ?? 0n, owed)];
}

function failedEntries(payout: PostedPayout, booked: bigint | null, owed: bigint): readonly Entry[] {
  if (booked !== null) return giveBackEntries(payout, booked, owed);
  // the judge of its transaction says where the payments of a reimbursement belong
  return payout.reimburses === null ? [releaseEntry(payout, owed)] : [];
}

/** Nothing was handed over as far as this database knows: a file of which only the bank knew has paid it, or none. */
function achEntries(payout: PostedAchPayout, outcome: Resolution['outcome'], owed: bigint): readonly Entry[] {
  return outcome === 'paid' ? [achHandOverEntry(payout), achCompleteEntry(payout)] : [achReleaseEntry(payout, owed)];
}
