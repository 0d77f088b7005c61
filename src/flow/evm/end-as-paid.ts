// A payout on Ethereum's chain that did something else than it asks for, and of which no fee was kept either: nobody but a person knows what its
// destination has.
import { EVM_CONFIRMATIONS } from '../../core/currencies/evm.ts';
import type { EvmCode } from '../../core/currency.ts';
import type { EndedTransaction } from '../../core/evm/port.ts';
import { notArrived } from '../../core/payouts/sweeps.ts';
import type { Batch, BatchPayout } from '../../store/payouts/batch-rows.ts';
import { asBooked } from '../../store/payouts/booked-amounts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { confirm, isShownAs } from './progress.ts';

/**
 * Completes it, as an operator has it. @throws Error where it has ended, or is recorded otherwise
 * @param read locked
 * @param of.shown its transaction in a final block
 */
export async function endAsPaid(
  ctx: Context,
  sql: Sql,
  read: Batch<EvmCode>,
  { shown, evidence }: { readonly shown: EndedTransaction; readonly evidence: string },
): Promise<void> {
  const mined = read.attempts.find(({ height }) => height !== null);
  const hasEnded = read.state === 'final' || read.state === 'dead';
  if (hasEnded || mined?.outcome?.result !== 'unclear' || !isShownAs(mined, shown))
    throw new Error(`batch ${read.id} is recorded as something else than nodes show, or has ended`);
  const batch = { ...read, payouts: await asBooked(sql, read.payouts) };
  const payout = batch.payouts[0] as BatchPayout;
  const kept = notArrived(shown.facts, { target: payout.script, amount: batch.inputs[0]?.amount ?? 0n });
  const reason = { reason: `an operator found it paid: ${evidence}` };
  await confirm(ctx, sql, { batch, mined, isFinal: true, confirmations: EVM_CONFIRMATIONS, isShown: true, kept, reason });
}
