// An operator has a transaction booked that was signed here, whose payouts had failed and were given back, and that is in the chain after all: a
// reorganisation below the final depth, or a node that lied. Its payouts are completed, and what was given back is taken again.
import { finalDepth } from '../../../core/confirmations.ts';
import { type CurrencyCode, isUtxo, type UtxoCode } from '../../../core/currency.ts';
import type { Entry } from '../../../core/judge/case.ts';
import { formatAmount, least, minus, plus, sum } from '../../../core/money.ts';
import { type BookedSteps, outBy } from '../../../core/payouts/booked-steps.ts';
import { borneEntry, foundInputsEntry, paidAfterAllEntries, trueUpEntry } from '../../../core/payouts/postings.ts';
import { Refusal } from '../../../core/refusal.ts';
import { lockBalances, postEntries } from '../../../store/ledger/ledger.ts';
import { leaveReservation } from '../../../store/payouts/after-restore/emptied-batches.ts';
import { readShares } from '../../../store/payouts/attempts.ts';
import { type Attempt, type Batch, type BatchPayout, readBatch, setBatchState } from '../../../store/payouts/batch-rows.ts';
import { lockOutputs } from '../../../store/payouts/batches.ts';
import { bookedSteps } from '../../../store/payouts/booked-amounts.ts';
import { writePayoutChanges } from '../../../store/payouts/status-changes.ts';
import { batchOfTransaction, rivalsOf, takeInputsBack } from '../../../store/payouts/taken-back.ts';
import type { Sql } from '../../../store/postgres/connect.ts';
import type { Context } from '../../context.ts';
import { compare, post } from '../batch-progress.ts';
import { type Recovered, type Refused, stillOwed } from './recover.ts';

type FailedRecovery = {
  readonly txid: string;
  readonly by: string;
  /** Whether what a reimbursement has paid may be booked as the service's loss: its payments are somebody else's by now. */
  readonly acceptsLoss: boolean;
};
export type RecoveredFailed = Recovered & { readonly currency: UtxoCode };

/**
 * Books a transaction of a failed batch that is in the chain after all, in one database transaction; null when none such was signed here.
 * @throws Refusal not_resolvable, with what is missing
 */
export async function recoverFailed(ctx: Context, recovery: FailedRecovery): Promise<RecoveredFailed | null> {
  const refused: Refused = (what) => new Refusal('not_resolvable', { message: `Transaction ${recovery.txid} ${what}.` });
  return ctx.db.transaction(async (sql) => {
    const known = await batchOfTransaction(sql, recovery.txid);
    if (known === null || !isUtxo(known.currency)) return null;
    const { currency, batchId } = known;
    await lockOutputs(sql, currency);
    const compared = await compare<UtxoCode>(ctx, sql, batchId);
    if (compared === null) throw refused(`is in no block: its chain was not read`);
    const { batch, mined, agreed } = compared;
    if (batch.state !== 'dead') throw refused(`was signed here, and is booked as batch ${batchId}, which is ${batch.state}`);
    if (mined === null || mined.height === null || mined.txid !== recovery.txid)
      throw refused(`is in no block that was read: nothing of batch ${batchId} is to be booked`);
    const last = mined.height + finalDepth(currency).depth - 1;
    if (last > agreed) throw refused(notFinal(currency, last, compared.areSeveral));
    const found = await foundInputs(sql, batch, refused);
    await takeInputsBack(sql, { batchId, currency, txid: mined.txid, height: mined.height });
    const atMs = ctx.ports.clock.now();
    await postEntries(
      sql,
      found.map((entry) => ({ entry, transactionId: null, atMs })),
    );
    const booked = await complete(ctx, sql, { batch, mined, recovery, refused });
    await setBatchState(sql, batchId, { state: 'final', minedAttempt: mined.id });
    return { ...booked, currency };
  });
}

/**
 * Why a transaction cannot be booked yet, and how that ends where a node is away.
 * @param chain names the setting of its nodes
 * @param last the block that makes it final
 */
export function notFinal(chain: CurrencyCode, last: number, areSeveral: boolean): string {
  if (!areSeveral) return `is not final: wait for block ${last}`;
  return `is not final: wait until two of our nodes hold block ${last} (one that is away for good: take it out of BURSAR_${chain}_RPC_URL)`;
}

/** Why reimbursements are not booked without the operator's word: somebody else has their payments by now. */
export function needsAcceptedLoss(borne: bigint, currency: CurrencyCode): string {
  return `has paid reimbursements of ${formatAmount(borne, currency)} ${currency} that had failed, and whose payments are not the customers' any more: --accept-loss books that as the service's loss`;
}

/**
 * The entries that undo what was booked as lost of its outputs, by itself and by batches that were given them in between. These have failed first; a
 * reservation is left, and the signer asked about it.
 */
async function foundInputs(sql: Sql, batch: Batch, refused: Refused): Promise<readonly Entry[]> {
  const rivals = await rivalsOf(sql, batch.id);
  for (const { batchId, state } of rivals) {
    if (state === 'dead') continue;
    const rival = await readBatch(sql, batchId, { lock: true });
    if (rival?.state === 'reserved') await leaveReservation(sql, rival, []);
    else throw refused(`spends outputs that batch ${batchId} was given since, which is ${state}: again once that has failed`);
  }
  const booked = await bookedSteps(sql, 'batch', [batch.id, ...rivals.map(({ batchId }) => batchId)]);
  const lostBy = (id: string): bigint => plus(outBy(booked(id), 'lost'), outBy(booked(id), 'lost_undone'));
  const found = [{ batchId: batch.id, lost: lostBy(batch.id) }, ...rivals];
  return found.flatMap(({ batchId, lost }) => {
    const undone = least(lost, lostBy(batchId));
    return undone <= 0n ? [] : [foundInputsEntry(batchId, batch.currency, undone, booked(batchId))];
  });
}

type Completing = {
  readonly batch: Batch;
  readonly mined: Attempt;
  readonly recovery: FailedRecovery;
  readonly refused: Refused;
};

async function complete(ctx: Context, sql: Sql, { batch, mined, recovery, refused }: Completing): Promise<Recovered> {
  const parts = (await readShares(sql, batch.id)).get(mined.id) ?? new Map<string, bigint>();
  const failed = batch.payouts.filter(({ status }) => status === 'failed');
  const borne = sum(failed.flatMap(({ reimburses, amount }) => (reimburses === null ? [] : [amount])));
  if (borne > 0n && !recovery.acceptsLoss) throw refused(needsAcceptedLoss(borne, batch.currency));
  const booked = await bookedSteps(
    sql,
    'po',
    failed.map(({ id }) => id),
  );
  for (const payout of failed) {
    const fee = parts.get(payout.id) ?? 0n;
    const entry = payout.reimburses === null ? null : borneEntry(payout, true, booked(payout.id));
    if (entry !== null) await post(ctx, sql, [{ payout, entry }]);
    if (payout.reimburses === null) await completeOne(ctx, sql, { payout, fee, booked: booked(payout.id), recovery });
  }
  const paidFee = sum(failed.map(({ id, reimburses }) => (reimburses === null ? 0n : (parts.get(id) ?? 0n))));
  return { payoutIds: failed.map(({ id }) => id), lost: minus(borne, paidFee), fee: mined.fee };
}

type CompletingOne = {
  readonly payout: BatchPayout;
  readonly fee: bigint;
  readonly booked: BookedSteps;
  readonly recovery: FailedRecovery;
};

/** What was given back of it is taken again. One that had been completed costs its merchant what it had cost then. */
async function completeOne(ctx: Context, sql: Sql, one: CompletingOne): Promise<void> {
  const { payout, fee, booked, recovery } = one;
  const charged = booked.has('final') ? (payout.fee ?? fee) : fee;
  const trueUp = trueUpEntry(payout, fee, charged, booked);
  await completeFound(ctx, sql, payout, {
    ...recovery,
    fee: charged,
    entriesOf: (there) => [...paidAfterAllEntries(payout, charged, there, booked), ...(trueUp === null ? [] : [trueUp])],
  });
}

type Found = {
  readonly txid: string;
  readonly by: string;
  /** What its merchant is charged. */
  readonly fee: bigint;
  /** @param there what its merchant has available */
  readonly entriesOf: (there: bigint) => readonly Entry[];
};

/** Completes a failed payout whose transaction was found in the chain after all; the history says who has found it, and what its merchant owes. */
export async function completeFound(ctx: Context, sql: Sql, payout: BatchPayout, found: Found): Promise<void> {
  const { currency, merchantId } = payout;
  const { fee, txid, by } = found;
  const atMs = ctx.ports.clock.now();
  const there = (await lockBalances(sql, merchantId, [currency])).get(currency)?.available ?? 0n;
  const entries = found.entriesOf(there).filter(({ postings }) => postings.length > 0);
  await post(
    ctx,
    sql,
    entries.map((entry) => ({ payout, entry })),
  );
  const owes = minus(plus(payout.amount, fee), there);
  const reason = `it was found paid after all by ${txid} (${by})${stillOwed(owes, currency)}`;
  await writePayoutChanges(sql, [{ payout, from: ['failed', 'ended'], event: 'found_paid', reason }], atMs);
  const reopened = { ...payout, sequence: payout.sequence + 1 };
  const completed = { fee, completedAtMs: atMs } as const;
  await writePayoutChanges(sql, [{ payout: reopened, from: ['processing', 'batched'], event: 'confirmed', ...completed }], atMs);
}
