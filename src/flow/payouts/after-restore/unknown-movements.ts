// Money that has left without this database knowing why. It is recorded and reported, and nothing new leaves until an operator has decided.
import { type CurrencyCode, isUtxo } from '../../../core/currency.ts';
import { unfiledAchPayouts } from '../../../store/ach/entries.ts';
import { tripBreaker } from '../../../store/ledger/breakers.ts';
import { areUsesBooked } from '../../../store/payouts/after-restore/authorized-nonces.ts';
import { lockOutputs } from '../../../store/payouts/batches.ts';
import { lockPayouts } from '../../../store/payouts/payouts.ts';
import { type PayoutChange, writePayoutChanges } from '../../../store/payouts/status-changes.ts';
import { closeUnexplained, recordMovements, signedHere, type UnknownMovement } from '../../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../../store/postgres/connect.ts';
import type { Context } from '../../context.ts';

export type Unknown = {
  readonly movements: readonly UnknownMovement[];
  /** Payouts that such a transaction pays: nobody may pay or cancel them before it is known what it was. */
  readonly payoutIds: readonly string[];
};

/** Writes what a look has found of a currency; what is not found any more and had no transaction is closed. */
export async function recordUnknown(
  ctx: Context,
  currency: CurrencyCode,
  { movements: seen, payoutIds }: Unknown,
): Promise<void> {
  const atMs = ctx.ports.clock.now();
  await ctx.db.transaction(async (sql) => {
    // whoever books one holds this lock as well
    await lockOutputs(sql, currency);
    const movements = await stillUnknown(sql, currency, seen);
    await holdUnknown(sql, payoutIds, atMs);
    await recordMovements(sql, movements, atMs);
    const unexplained = movements.filter(({ txid }) => txid === null).map(({ finding }) => finding);
    await closeUnexplained(sql, currency, unexplained, atMs);
    if (movements.length === 0) return;
    const findings = movements.map(({ finding }) => `OUT-3: ${finding}`);
    await tripBreaker(sql, { name: 'payouts', by: ['OUT-3'], findings, atMs });
  });
}

/** Without those that an operator has had booked since the look began: on Ethereum's chain, with all the nonces that it has used. */
async function stillUnknown(
  sql: Sql,
  currency: CurrencyCode,
  movements: readonly UnknownMovement[],
): Promise<readonly UnknownMovement[]> {
  if (isUtxo(currency)) {
    const txids = movements.flatMap(({ txid }) => txid ?? []);
    const signed = await signedHere(sql, currency, txids);
    return movements.filter(({ txid }) => txid === null || !signed.has(txid));
  }
  const still: UnknownMovement[] = [];
  for (const one of movements) {
    const { txid, spends: senders = [] } = one;
    if (txid === null || !(await areUsesBooked(sql, { currency, txid, senders }))) still.push(one);
  }
  return still;
}

/** Payouts that may have been paid wait for that to be known; returns those that did not wait for it before. */
export async function holdUnknown(sql: Sql, payoutIds: readonly string[], atMs: number): Promise<readonly string[]> {
  const waiting = (await lockPayouts(sql, payoutIds)).filter(
    ({ step, heldReason }) => step === 'queued' || (step === 'held' && heldReason !== 'unknown_outcome'),
  );
  const changes = waiting.map(
    (payout): PayoutChange => ({
      payout,
      from: [payout.status, payout.step],
      event: 'outcome_unknown',
      heldReason: 'unknown_outcome',
    }),
  );
  await writePayoutChanges(sql, changes, atMs);
  return waiting.map(({ id }) => id);
}

/**
 * No bank, and no folder, can prove that payouts by ach which were requested until then are still unpaid: they wait for an operator.
 * @returns those that did not wait for one before
 */
export function holdUnprovenAch(ctx: Context, untilMs: number): Promise<readonly string[]> {
  const nowMs = ctx.ports.clock.now();
  return ctx.db.transaction(async (sql) => holdUnknown(sql, await unfiledAchPayouts(sql, { untilMs, nowMs }), nowMs));
}
