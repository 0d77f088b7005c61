// What happens to a sweep, or to ether for the gas of one, after it was signed. What it moves stays ours, so only its gas is booked, when its
// block is final, and what a token's contract has kept of it. One that failed, or whose nonce somebody else has used, leaves its payments where
// they are: they are moved by another.
import type { EvmCode } from '../../core/currency.ts';
import type { EndedTransaction } from '../../core/evm/port.ts';
import type { Entry } from '../../core/judge/case.ts';
import { minus } from '../../core/money.ts';
import { keptEntry, keptOf, sweepGasEntry } from '../../core/payouts/sweeps.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { type Attempt, type Batch, setBatchState } from '../../store/payouts/batch-rows.ts';
import { bookedStepsOf } from '../../store/payouts/booked-amounts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { noteSwept } from '../../store/sweeps/addresses.ts';
import { insertWriteOff, writtenOffOf } from '../../store/sweeps/written-off.ts';
import type { Context } from '../context.ts';
import { isShownAs, type Said, stopUnclear } from '../evm/progress.ts';
import { comparing, type Progress, unmined } from '../payouts/batch-progress.ts';

/** As evmProgress, for a batch without payouts. */
export function sweepProgress(ctx: Context, batchId: string, finalized: number, said: Said = {}): Promise<Progress> {
  return comparing<EvmCode>(ctx, batchId, async (sql, { batch, decided, mined }) => {
    const isFinal = (height: number | null): boolean => height !== null && height <= Math.min(finalized, decided);
    const isOver = mined !== null && isFinal(mined.height);
    // what its gas has cost is known again when it is in a final block again
    if (!isOver && (batch.state === 'final' || batch.state === 'dead')) {
      await bookGas(ctx, sql, batch, 0n);
      await bookKept(ctx, sql, batch, null, 0n);
    }
    if (mined === null)
      return unmined(ctx, sql, batch, {
        isGone: ({ spentBy, spentHeight }) => spentBy !== null && isFinal(spentHeight),
        fail: async () => (said.mayFail === true || hasEnded(batch, null) ? ended(ctx, sql, batch, null) : 'to_fail'),
      });
    const isShown = isShownAs(mined, said.ended ?? null);
    if (mined.outcome === null) return stopUnclear(ctx, sql, batch, mined);
    if (isOver && hasEnded(batch, mined) && (await unbookedGas(sql, batch, mined.outcome.gasPaid)) === null) return 'waiting';
    if (mined.outcome.result === 'unclear' && !isShown) return 'to_complete';
    if (mined.outcome.result === 'unclear' && keptBy(batch, said) === null) return stopUnclear(ctx, sql, batch, mined);
    if (isOver && isShown) return ended(ctx, sql, batch, mined, said);
    const isKnown = (batch.state === 'mined' && batch.minedAttempt === mined.id) || (isOver && hasEnded(batch, mined));
    if (!isKnown) await setBatchState(sql, batch.id, { state: 'mined', minedAttempt: mined.id });
    if (isOver) return 'to_complete';
    const isFirst = batch.state === 'signed' && batch.minedAttempt === null;
    return isKnown ? 'waiting' : isFirst ? 'confirmed' : 'moved';
  });
}

/** @param mined null where a transaction that is none of ours took the nonce for good */
const hasEnded = ({ state, minedAttempt }: Batch<EvmCode>, mined: Attempt | null): boolean =>
  (state === 'final' || state === 'dead') && minedAttempt === (mined?.id ?? null);

/** As two nodes show it. @param mined as {@link hasEnded} */
async function ended(ctx: Context, sql: Sql, batch: Batch<EvmCode>, mined: Attempt | null, said: Said = {}): Promise<Progress> {
  const kept = keptBy(batch, said);
  if (mined !== null) await bookGas(ctx, sql, batch, mined.outcome?.gasPaid ?? 0n);
  if (mined !== null) await bookKept(ctx, sql, batch, mined, kept ?? 0n);
  if (hasEnded(batch, mined)) return 'waiting';
  const isPaid = mined?.outcome?.result === 'paid' || kept !== null;
  await setBatchState(sql, batch.id, { state: isPaid ? 'final' : 'dead', minedAttempt: mined?.id ?? null });
  if (isPaid) return 'final';
  const [input] = batch.inputs;
  if (batch.purpose === 'sweep' && input !== undefined) await noteSwept(sql, batch.currency, input.script);
  return 'failed';
}

/** Books what its gas has cost, as the difference to what is booked of that. */
async function bookGas(ctx: Context, sql: Sql, batch: Batch<EvmCode>, wei: bigint): Promise<void> {
  const entry = await unbookedGas(sql, batch, wei);
  if (entry !== null) await postEntries(sql, [{ entry, transactionId: null, atMs: ctx.ports.clock.now() }]);
}

/** That difference; null where there is none. */
const unbookedGas = async (sql: Sql, { id }: Batch<EvmCode>, wei: bigint): Promise<Entry | null> =>
  sweepGasEntry(id, wei, await bookedStepsOf(sql, 'sweep', id));

/** What two nodes show that the token's contract has kept of it; null where that is not all that they show. */
function keptBy({ target, inputs: [input] }: Batch<EvmCode>, { ended: shown = null }: Said): bigint | null {
  if (shown === null || target === null || input === undefined) return null;
  return keptOf(shown.facts, { target, amount: input.amount });
}

/** Books that, and that it is not where it was to arrive, as the difference to what is booked of it. @param mined null: it is in no final block */
async function bookKept(ctx: Context, sql: Sql, batch: Batch<EvmCode>, mined: Attempt | null, kept: bigint): Promise<void> {
  const { id, currency, target } = batch;
  const entry = keptEntry(id, currency, kept, await bookedStepsOf(sql, 'sweep', id));
  if (entry === null || target === null) return;
  const atMs = ctx.ports.clock.now();
  await postEntries(sql, [{ entry, transactionId: null, atMs }]);
  const input = batch.inputs[0];
  await insertWriteOff(sql, {
    currency,
    script: target,
    amount: minus(kept, await writtenOffOf(sql, id)),
    block: { height: mined?.height ?? input?.spentHeight ?? 0, hash: mined?.blockHash ?? '' },
    batchId: id,
    by: 'the chain',
    evidence: mined === null ? 'its block was replaced' : `${mined.txid}: the token's contract has kept it`,
    atMs,
  });
}

/**
 * Ends a sweep that did something else than it asks for, as an operator has it: it counts as moved whole, and what has not arrived is written off where
 * it should have. @throws Error where it has ended, or is recorded otherwise
 */
export async function endAsMoved(ctx: Context, sql: Sql, batch: Batch<EvmCode>, shown: EndedTransaction): Promise<void> {
  const mined = batch.attempts.find(({ height }) => height !== null);
  if (mined === undefined || mined.outcome?.result !== 'unclear' || !isShownAs(mined, shown))
    throw new Error(`sweep ${batch.id} is recorded as something else than nodes show`);
  await bookGas(ctx, sql, batch, mined.outcome.gasPaid);
  await setBatchState(sql, batch.id, { state: 'final', minedAttempt: mined.id });
}
