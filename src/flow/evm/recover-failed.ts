// An operator has a transaction on Ethereum's chain booked that was signed here, whose payout had failed and was given back, and that has paid, whole or
// but for what a token's contract has kept of it: the nodes that said that it had failed were wrong.
import { finalDepth } from '../../core/confirmations.ts';
import { ETHER, type EvmCode, isUtxo } from '../../core/currency.ts';
import type { EndedByWord } from '../../core/evm/port.ts';
import { minus } from '../../core/money.ts';
import type { BookedSteps } from '../../core/payouts/booked-steps.ts';
import { evmBorneEntry, evmPaidAfterAllEntries, paidGas } from '../../core/payouts/evm-postings.ts';
import { Refusal } from '../../core/refusal.ts';
import { type Attempt, type Batch, type BatchPayout, setBatchState } from '../../store/payouts/batch-rows.ts';
import { lockOutputs } from '../../store/payouts/batches.ts';
import { bookedStepsOf } from '../../store/payouts/booked-amounts.ts';
import { noteKept } from '../../store/payouts/status-changes.ts';
import { batchOfTransaction } from '../../store/payouts/taken-back.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { knownAnew } from '../../store/sweeps/balances.ts';
import type { Context } from '../context.ts';
import type { Recovered, Refused } from '../payouts/after-restore/recover.ts';
import { completeFound, needsAcceptedLoss, notFinal } from '../payouts/after-restore/recover-failed.ts';
import { compare, post } from '../payouts/batch-progress.ts';
import { chargeOf, isShownAs, keptOfPayout } from './progress.ts';

type Recovery = {
  readonly txid: string;
  readonly by: string;
  /** Whether what a reimbursement has paid may be booked as the service's loss: its payments are somebody else's by now. */
  readonly acceptsLoss: boolean;
  /** What nodes show of it. */
  readonly shown: EndedByWord;
};

/**
 * Books such a transaction, in one database transaction; null when none was signed here.
 * @throws Refusal not_resolvable, with what is missing
 */
export async function recoverFailedOnEvm(
  ctx: Context,
  { txid, by, acceptsLoss, shown }: Recovery,
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
    const result = mined?.outcome?.result ?? 'failed';
    if (mined === null || mined.height === null || mined.txid !== txid || result === 'failed')
      throw refused('has paid in no block that was read');
    if (!isShownAs(mined, shown.ended)) throw refused(notShown(shown));
    const kept = keptOfPayout(batch, shown.ended);
    if (result === 'unclear' && kept === null) throw refused('did not do exactly what it asks for: look at its events');
    const last = mined.height + finalDepth(currency).depth - 1;
    if (last > agreed) throw refused(notFinal(ETHER, last, compared.areSeveral));
    const booked = await bookedStepsOf(sql, 'po', payout.id);
    const found = { batch, payout, mined, booked };
    const done =
      payout.reimburses === null
        ? await completed(ctx, sql, { ...found, by })
        : await borne(ctx, sql, { ...found, acceptsLoss, refused });
    if (payout.reimburses === null) await noteKept(sql, payout.id, kept);
    await setBatchState(sql, batchId, { state: 'final', minedAttempt: mined.id });
    for (const { script } of batch.inputs) await knownAnew(sql, script);
    return { payoutIds: [payout.id], ...done, currency };
  });
}

/** Why what a transaction has done is not believed yet. */
export const notShown = ({ said }: EndedByWord): string =>
  `is booked once two nodes show alike how it ended (one that is away for good, or wrong: take it out of BURSAR_${ETHER}_RPC_URL): ${said.join('; ')}`;

type Found = {
  readonly batch: Batch<EvmCode>;
  readonly payout: BatchPayout;
  readonly mined: Attempt;
  readonly booked: BookedSteps;
};
type Done = { readonly lost: bigint; readonly fee: bigint };
const gasOf = ({ outcome }: Attempt): bigint => outcome?.gasPaid ?? 0n;

/** Its merchant pays it. One that had been completed costs him what it had cost then. */
async function completed(ctx: Context, sql: Sql, found: Found & { by: string }): Promise<Done> {
  const { batch, payout, mined, booked, by } = found;
  const fee = booked.has('final') ? (payout.fee ?? 0n) : chargeOf(batch, mined);
  const entriesOf = (there: bigint) => evmPaidAfterAllEntries(payout, { fee, gasPaid: gasOf(mined), there, booked });
  await completeFound(ctx, sql, payout, { txid: mined.txid, by, fee, entriesOf });
  return { lost: 0n, fee };
}

/** The judge of its transaction has given the payments of a reimbursement to somebody else since, so the service bears it: it stays failed. */
async function borne(
  ctx: Context,
  sql: Sql,
  { batch, payout, mined, booked, acceptsLoss, refused }: Found & { acceptsLoss: boolean; refused: Refused },
): Promise<Done> {
  const fee = chargeOf(batch, mined);
  const lost = minus(payout.amount, fee);
  if (!acceptsLoss) throw refused(needsAcceptedLoss(lost, batch.currency));
  const entries = [evmBorneEntry(payout, fee, true, booked), paidGas(payout, gasOf(mined), booked)];
  await post(
    ctx,
    sql,
    entries.flatMap((entry) => (entry === null || entry.postings.length === 0 ? [] : [{ payout, entry }])),
  );
  return { lost, fee };
}
