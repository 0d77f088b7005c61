// What happens to a sweep, or to ether for the gas of one, after it was signed. What it moves stays ours, so only its gas is booked, when its
// block is final. One that failed, or whose nonce somebody else has used, leaves its payments where they are: they are moved by another.
import type { EvmCode } from '../../core/currency.ts';
import { sweepGasEntry } from '../../core/payouts/sweeps.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { type Attempt, type Batch, setBatchState } from '../../store/payouts/batch-rows.ts';
import { bookedStepsOf } from '../../store/payouts/booked-amounts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { noteSwept } from '../../store/sweeps/addresses.ts';
import type { Context } from '../context.ts';
import { stopUnclear } from '../evm/progress.ts';
import { comparing, type Progress, unmined } from '../payouts/batch-progress.ts';

/** As evmProgress, for a batch without payouts. */
export function sweepProgress(ctx: Context, batchId: string, finalized: number): Promise<Progress> {
  return comparing<EvmCode>(ctx, batchId, async (sql, { batch, decided, mined }) => {
    const isFinal = (height: number | null): boolean => height !== null && height <= Math.min(finalized, decided);
    const isOver = mined !== null && isFinal(mined.height);
    // what its gas has cost is known again when it is in a final block again
    if (!isOver && (batch.state === 'final' || batch.state === 'dead')) await bookGas(ctx, sql, batch, 0n);
    if (mined === null)
      return unmined(ctx, sql, batch, {
        isGone: ({ spentBy, spentHeight }) => spentBy !== null && isFinal(spentHeight),
        fail: () => ended(ctx, sql, batch, null),
      });
    if (mined.outcome === null || mined.outcome.result === 'unclear') return stopUnclear(ctx, sql, batch, mined);
    if (isOver) return ended(ctx, sql, batch, mined);
    if (batch.state === 'mined' && batch.minedAttempt === mined.id) return 'waiting';
    const isFirst = batch.state === 'signed' && batch.minedAttempt === null;
    await setBatchState(sql, batch.id, { state: 'mined', minedAttempt: mined.id });
    return isFirst ? 'confirmed' : 'moved';
  });
}

/** @param mined null where a transaction that is none of ours took the nonce for good */
async function ended(ctx: Context, sql: Sql, batch: Batch<EvmCode>, mined: Attempt | null): Promise<Progress> {
  if (mined !== null) await bookGas(ctx, sql, batch, mined.outcome?.gasPaid ?? 0n);
  const isKnown = batch.minedAttempt === (mined?.id ?? null);
  if ((batch.state === 'final' || batch.state === 'dead') && isKnown) return 'waiting';
  const isPaid = mined?.outcome?.result === 'paid';
  await setBatchState(sql, batch.id, { state: isPaid ? 'final' : 'dead', minedAttempt: mined?.id ?? null });
  if (isPaid) return 'final';
  const [input] = batch.inputs;
  if (batch.purpose === 'sweep' && input !== undefined) await noteSwept(sql, batch.currency, input.script);
  return 'failed';
}

/** Books what its gas has cost, as the difference to what is booked of that. */
async function bookGas(ctx: Context, sql: Sql, { id }: Batch<EvmCode>, wei: bigint): Promise<void> {
  const entry = sweepGasEntry(id, wei, await bookedStepsOf(sql, 'sweep', id));
  if (entry !== null) await postEntries(sql, [{ entry, transactionId: null, atMs: ctx.ports.clock.now() }]);
}
