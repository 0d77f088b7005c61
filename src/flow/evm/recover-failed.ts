// An operator has a transaction on Ethereum's chain booked that was signed here, whose payout had failed and was given back, and that has paid: the
// node that said that it had failed was wrong, and no other has contradicted within the hour.
import { finalDepth } from '../../core/confirmations.ts';
import { ETHER, type EvmCode, isUtxo } from '../../core/currency.ts';
import { evmPaidAfterAllEntries } from '../../core/payouts/evm-postings.ts';
import { Refusal } from '../../core/refusal.ts';
import { setBatchState } from '../../store/payouts/batch-rows.ts';
import { lockOutputs } from '../../store/payouts/batches.ts';
import { batchOfTransaction, onceCompleted } from '../../store/payouts/taken-back.ts';
import type { Context } from '../context.ts';
import type { Recovered, Refused } from '../payouts/after-restore/recover.ts';
import { completeFound, notFinal } from '../payouts/after-restore/recover-failed.ts';
import { compare } from '../payouts/batch-progress.ts';
import { chargeOf } from './progress.ts';

type Recovery = { readonly txid: string; readonly by: string };

/**
 * Books such a transaction, in one database transaction; null when none was signed here.
 * @throws Refusal not_resolvable, with what is missing
 */
export async function recoverFailedOnEvm(
  ctx: Context,
  { txid, by }: Recovery,
): Promise<(Recovered & { readonly currency: EvmCode }) | null> {
  const refused: Refused = (what) => new Refusal('not_resolvable', { message: `Transaction ${txid} ${what}.` });
  return ctx.db.transaction(async (sql) => {
    const known = await batchOfTransaction(sql, txid);
    if (known === null || isUtxo(known.currency)) return null;
    const { batchId } = known;
    const currency = known.currency as EvmCode;
    await lockOutputs(sql, currency);
    const compared = await compare<EvmCode>(ctx, sql, batchId);
    if (compared === null) throw refused('is in no block: its chain was not read');
    const { batch, mined, agreed } = compared;
    const [payout] = batch.payouts;
    if (payout === undefined || batch.state !== 'dead' || payout.status !== 'failed')
      throw refused(`was signed here, and is booked as batch ${batchId}, which is ${batch.state}`);
    if (mined === null || mined.height === null || mined.txid !== txid || mined.outcome?.result !== 'paid')
      throw refused('has paid in no block that was read');
    const last = mined.height + finalDepth(currency).depth - 1;
    if (last > agreed) throw refused(notFinal(ETHER, last, compared.areSeveral));
    if (payout.reimburses !== null)
      throw refused(
        'has paid a reimbursement that had failed: its payments are somebody else’s, and this version cannot book it',
      );
    const wasFinal = (await onceCompleted(sql, [payout.id])).has(payout.id);
    const fee = wasFinal ? (payout.fee ?? 0n) : chargeOf(batch, mined);
    const { gasPaid } = mined.outcome;
    const entriesOf = (there: bigint) => evmPaidAfterAllEntries(payout, { fee, gasPaid, there, wasFinal });
    await completeFound(ctx, sql, payout, { txid, by, fee, entriesOf });
    await setBatchState(sql, batchId, { state: 'final', minedAttempt: mined.id });
    return { payoutIds: [payout.id], lost: 0n, fee, currency };
  });
}
