// What the signer has signed, nobody has stored, and is never sent from here, because something else has paid what it pays, or may have. What else it
// would have paid can be signed for no more, since the signer keeps to one transaction of a payout: a person gives that back.
import type { CurrencyCode } from '../../../core/currency.ts';
import type { SignedTransaction } from '../../../core/signer-wire.ts';
import type { StoredKey } from '../../../store/chain/xpubs.ts';
import { insertDeadBatch, leaveReservation } from '../../../store/payouts/after-restore/emptied-batches.ts';
import { type Batch, readBatch, setBatchState } from '../../../store/payouts/batch-rows.ts';
import { freeInputs } from '../../../store/payouts/batches.ts';
import type { PayoutRow } from '../../../store/payouts/payouts.ts';
import { unsignedPayouts } from '../../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../../store/postgres/connect.ts';
import type { Context } from '../../context.ts';
import { CANCELLED } from '../cancel-and-approve.ts';
import { holdAlike, isToBeAsked } from './lost-outputs.ts';
import { holdUnknown } from './unknown-movements.ts';

/** What was signed and is not stored here, its payouts locked. */
export type Unstored = {
  readonly currency: CurrencyCode;
  readonly signed: SignedTransaction;
  readonly payouts: readonly PayoutRow[];
  readonly key: StoredKey | undefined;
  /** What it pays, in the unit of its batch. */
  readonly feeRate: bigint;
};

/** What an operator must know of a signature that was left. */
export const whyLeft = ({ txid }: Pick<SignedTransaction, 'txid'>): string =>
  `${txid} is not sent from here any more: it was signed, and not known here when what had left before was booked. What else it would have paid waits: bursar payout resolve --failed, unless a database that was there before has sent it (an explorer of the chain shows ${txid})`;

/**
 * What nobody has stored was never sent, and the batch that it was signed for was emptied: what else it would have paid can be signed for no more, since
 * the signer keeps to one transaction of a payout. A person gives that back; its outputs are free.
 */
export async function leave(ctx: Context, sql: Sql, batch: Batch, payouts: readonly PayoutRow[]): Promise<void> {
  await holdOthers(ctx, sql, await unsignedOf(sql, batch.currency, payouts));
  if (batch.state === 'dead') return;
  await freeInputs(sql, batch.currency, batch.id, batch.inputs);
  await setBatchState(sql, batch.id, { state: 'dead', minedAttempt: null });
}

/** Those of these payouts for which nothing was signed, as far as this database knows. */
async function unsignedOf(sql: Sql, currency: CurrencyCode, payouts: readonly PayoutRow[]): Promise<readonly PayoutRow[]> {
  const unsigned = new Set((await unsignedPayouts(sql, currency)).map(({ id }) => id));
  return payouts.filter(({ id }) => unsigned.has(id));
}

async function holdOthers(ctx: Context, sql: Sql, payouts: readonly PayoutRow[]): Promise<void> {
  const ids = payouts.map(({ id }) => id);
  await holdUnknown(sql, ids, ctx.ports.clock.now());
}

/**
 * Leaves what nobody has stored where what it pays has ended otherwise, or a person is asked, or must be, whether it has. Of its batch nothing is
 * here, or nothing but the reservation.
 * @returns whether it was left
 */
export async function leaveWhatIsPaid(ctx: Context, sql: Sql, of: Unstored, known: Batch | null): Promise<boolean> {
  const { currency, payouts } = of;
  const isLeft = known === null ? await isOverOtherwise(sql, of) : await isToBeAsked(sql, currency, known.payouts);
  if (!isLeft) return false;
  if (known !== null) await leaveReservation(sql, known, []);
  else for (const { batchId } of payouts) await takeOut(sql, batchId);
  const open = await unsignedOf(sql, currency, payouts);
  await holdAlike(ctx, sql, currency, open);
  if (known !== null) {
    await leave(ctx, sql, known, payouts);
    return true;
  }
  const atMs = ctx.ports.clock.now();
  await insertDeadBatch(sql, { id: of.signed.request.batchId, currency, feeRate: of.feeRate, atMs });
  await holdOthers(ctx, sql, open);
  return true;
}

async function isOverOtherwise(sql: Sql, { currency, signed, payouts }: Unstored): Promise<boolean> {
  for (const payout of payouts) {
    // whoever has cancelled it was told that it is not paid
    if (payout.status === 'failed' || payout.heldReason === 'unknown_outcome') return true;
    if ((await whyPaidHere(sql, payout)) !== null) return true;
  }
  const merchantOf = new Map(payouts.map(({ id, merchantId }) => [id, merchantId]));
  const outputs = signed.request.outputs.map(({ payoutId: id, script, amount }) => ({
    id,
    // nobody's, where this database does not know the payout
    merchantId: merchantOf.get(id) ?? 0n,
    script: Buffer.from(script, 'hex'),
    amount: BigInt(amount),
  }));
  return isToBeAsked(sql, currency, outputs);
}

/** The signer may have signed for the reservation of a payout, which its answer has not reached: it is asked before anything of it is given up. */
export async function takeOut(sql: Sql, batchId: string | null): Promise<void> {
  const batch = batchId === null ? null : await readBatch(sql, batchId, { lock: true });
  if (batch !== null && batch.attempts.length === 0) await leaveReservation(sql, batch, []);
}

/** How a payout has ended here, or what else pays it; null = it has not, and nothing does. */
export async function whyPaidHere(sql: Sql, { id, status, error, batchId, reimburses }: PayoutRow): Promise<string | null> {
  // the payments of a reimbursement may have been decided otherwise since it was cancelled
  const goesOn = status === 'failed' && error === CANCELLED && reimburses === null;
  if (status === 'completed' || (status === 'failed' && !goesOn)) return `for ${id}, which is ${status} here`;
  const other = batchId === null ? null : await readBatch(sql, batchId, { lock: true });
  return other !== null && other.attempts.length > 0 ? `for ${id}, which batch ${other.id} pays here` : null;
}
