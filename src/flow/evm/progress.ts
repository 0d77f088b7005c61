// What happens to a batch on Ethereum's chain after its nonce was reserved: a signed transaction is stored, twelve blocks confirm it, its block
// becomes final, or a final block shows that it has failed. A failed transaction and one of somebody else at our nonce count only when final,
// because a reorganisation may put another of the batch in their place. Nothing here calls anything outside.
import { EVM_CONFIRMATIONS, evmAddressOf } from '../../core/currencies/evm.ts';
import { type EvmCode, isToken } from '../../core/currency.ts';
import type { EndedTransaction } from '../../core/evm/port.ts';
import type { Entry } from '../../core/judge/case.ts';
import { formatAmount, minus, plus } from '../../core/money.ts';
import {
  evmBorneEntry,
  evmCompleteEntries,
  evmGiveBackEntries,
  evmReturnEntry,
  evmSignEntry,
  gasEntry,
  paidGas,
} from '../../core/payouts/evm-postings.ts';
import { chargedGas } from '../../core/payouts/gas.ts';
import { keptOf } from '../../core/payouts/sweeps.ts';
import type { SignedTransaction } from '../../core/signer-wire.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { heldAgain, insertAttempt } from '../../store/payouts/attempts.ts';
import { type Attempt, type Batch, type BatchPayout, setBatchState } from '../../store/payouts/batch-rows.ts';
import { bookedStepsOf } from '../../store/payouts/booked-amounts.ts';
import { markReimbursing } from '../../store/payouts/reimbursements.ts';
import { noteKept, writePayoutChanges } from '../../store/payouts/status-changes.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import {
  comparing,
  lockOwed,
  type Progress,
  post,
  reimbursedBy,
  stopOnPaidAfterAll,
  storing,
  unmined,
} from '../payouts/batch-progress.ts';

/** As storeSigned. */
export function storeEvmSigned(ctx: Context, signed: SignedTransaction, epoch: bigint): Promise<boolean> {
  return storing<EvmCode>(ctx, signed, epoch, (sql, batch) => addEvmAttempt(ctx, sql, batch, signed));
}

/** The attempt and its entries; the batch and its payouts are locked. */
export async function addEvmAttempt(ctx: Context, sql: Sql, batch: Batch<EvmCode>, signed: SignedTransaction): Promise<void> {
  const { request } = signed;
  const { evm } = request;
  if (evm === undefined) throw new Error(`signature ${signed.sequence} is of no transaction on Ethereum's chain`);
  const fee = BigInt(signed.fee);
  await insertAttempt(sql, {
    batchId: batch.id,
    number: request.number,
    currency: batch.currency,
    txid: signed.txid,
    raw: Buffer.from(signed.raw, 'hex'),
    fee,
    vbytes: evm.gas,
    feeRate: BigInt(evm.maxFee),
    maxFee: BigInt(evm.maxFee),
    change: null,
    epoch: batch.leaseEpoch,
    sequence: signed.sequence,
    lost: 0n,
    signedAtMs: signed.signedAtMs,
    // a sweep pays no payout
    shares: evm.purpose === undefined ? request.outputs.map(({ payoutId }) => ({ payoutId, fee })) : [],
  });
  const [payout] = batch.payouts;
  if (payout === undefined || payout.status !== 'processing' || batch.attempts.length > 0) return;
  await post(ctx, sql, [{ payout, entry: evmSignEntry(payout, fee) }]);
}

/** What nodes besides the one that is read have said of a batch: receipts are a node's word. */
export type Said = {
  /** Two of them say that it has not paid and never will, and none says otherwise. */
  readonly mayFail?: boolean;
  /** How its transaction ended, as two of them show it. */
  readonly ended?: EndedTransaction | null;
};

/**
 * Compares a batch with what the chain shows of it, and books what follows.
 * @param finalized the highest block that can no longer be replaced
 * @param said absent: they were not asked, so it neither fails nor is completed
 */
export function evmProgress(ctx: Context, batchId: string, finalized: number, said: Said = {}): Promise<Progress> {
  const orLater = (failed: () => Promise<Progress>): Promise<Progress> | 'to_fail' =>
    said.mayFail === true ? failed() : 'to_fail';
  return comparing<EvmCode>(ctx, batchId, async (sql, { batch, decided, mined }) => {
    // what pays nobody here was booked whole when it was recovered
    if (batch.payouts.length === 0) return 'waiting';
    const isFinal = (height: number | null): boolean => height !== null && height <= Math.min(finalized, decided);
    // what the gas of a final one has cost is known again when one is final again
    if (mined === null && (batch.state === 'final' || batch.state === 'dead')) await bookGas(ctx, sql, batch, null);
    if (mined === null)
      return unmined(ctx, sql, batch, {
        isGone: ({ spentBy, spentHeight }) => spentBy !== null && isFinal(spentHeight),
        fail: async () => orLater(() => fail(ctx, sql, batch, null)),
      });
    // a node has lied when it was given back; of what succeeded and asks for something else a fee may have been kept
    if (batch.state === 'dead' && mined.outcome !== null && mined.outcome.result !== 'failed')
      return stopOnPaidAfterAll(ctx, sql, batch, mined, `bursar payout recover ${mined.txid}, once it is final`);
    if ((mined.height as number) > decided) return 'unagreed';
    const isShown = isShownAs(mined, said.ended ?? null);
    const kept = isShown ? keptOfPayout(batch, said.ended ?? null) : null;
    if (mined.outcome?.result === 'paid' || kept !== null) {
      // that its payee has got less counts once nothing can replace it
      if (kept !== null && !isFinal(mined.height)) return 'waiting';
      const confirmations = decided - (mined.height as number) + 1;
      const { currency } = batch;
      const reason =
        kept === null ? {} : { reason: `the token's contract has kept ${formatAmount(kept, currency)} ${currency} of it` };
      return confirm(ctx, sql, { batch, mined, isFinal: isFinal(mined.height), confirmations, isShown, kept, reason });
    }
    if (mined.outcome?.result !== 'failed') {
      // an operator has said that it counts as paid
      if (batch.state === 'final' && batch.minedAttempt === mined.id && isFinal(mined.height)) return 'waiting';
      // one node's word stops nobody's payouts, and what it has said for a moment is read again
      return isShown ? stopUnclear(ctx, sql, batch, mined) : 'to_complete';
    }
    if (!isFinal(mined.height)) return 'waiting';
    return orLater(async () => (isShown ? fail(ctx, sql, batch, mined) : 'to_complete'));
  });
}

/**
 * Nodes of ours contradict each other about what the transactions of a batch have done: nothing is given back, and payouts stop.
 * @param what one of them says against the one that is read, as a sentence without a full stop
 */
export async function stopContradicted(ctx: Context, batchId: string, what: string): Promise<void> {
  const findings = [
    `batch ${batchId}: ${what}, says a node of ours, and the one that is read says that it has failed for good: one of them is wrong. Once the wrong one is configured no more, its receipt is read again by itself, and a green "bursar audit --clear" lets payouts go on`,
  ];
  await tripBreaker(ctx.db, { name: 'payouts', by: ['INV-10'], findings, atMs: ctx.ports.clock.now() });
}

/** What a token's contract has kept of what its payee should get, as two nodes show; null: they show something else, or that nothing was kept. */
export function keptOfPayout(
  { payouts: [payout], inputs: [input] }: Batch<EvmCode>,
  ended: EndedTransaction | null,
): bigint | null {
  if (ended === null || payout === undefined || input === undefined || !isToken(payout.currency)) return null;
  return keptOf(ended.facts, { target: payout.script, amount: input.amount });
}

/** It succeeded, and its events say something else than was asked for: nobody but a person knows what the destination has. */
export async function stopUnclear(ctx: Context, sql: Sql, batch: Batch<EvmCode>, { txid }: Attempt): Promise<Progress> {
  const [input] = batch.inputs;
  const address = input === undefined ? '' : ` ${evmAddressOf(input.script.toString('hex'))}`;
  const findings = [
    `${txid} of batch ${batch.id} succeeded and did not do exactly what it asks for: look at its events (bursar chain write-off${address}, once its block is final, has it count as done)`,
  ];
  await tripBreaker(sql, { name: 'payouts', by: ['INV-10'], findings, atMs: ctx.ports.clock.now() });
  return 'waiting';
}

type Mined = {
  readonly batch: Batch<EvmCode>;
  readonly mined: Attempt;
  readonly isFinal: boolean;
  readonly confirmations: number;
  /** Whether two nodes show it alike. */
  readonly isShown: boolean;
  /** What of it has not arrived, once it is final; null: all has. */
  readonly kept: bigint | null;
  /** Why it counts as paid, where it did something else than it asks for. */
  readonly reason: { readonly reason?: string };
};

/** Whether what is recorded of a transaction is what nodes show of it. */
export function isShownAs({ txid, blockHash, outcome }: Attempt, ended: EndedTransaction | null): boolean {
  const shown = ended?.facts.outcome;
  if (ended === null || shown === undefined || outcome === null) return false;
  const isThere = ended.facts.txid === txid && ended.blockHash === blockHash;
  return isThere && shown.result === outcome.result && shown.gasPaid === outcome.gasPaid;
}

/** What the payout of a batch is charged, as the block says that holds it. */
export function chargeOf({ attempts, payouts }: Batch<EvmCode>, { outcome }: Attempt): bigint {
  const first = attempts[0] as Attempt;
  // a reimbursement's fee was taken from what the customer gets
  if (payouts[0]?.reimburses !== null) return first.fee;
  return chargedGas({ fee: first.fee, gas: first.vbytes, maxFee: first.maxFee ?? 1n }, outcome?.gasPaid ?? 0n);
}

/** It has paid, or counts as paid: what follows by now. */
export async function confirm(
  ctx: Context,
  sql: Sql,
  { batch, mined, isFinal, confirmations, isShown, kept, reason }: Mined,
): Promise<Progress> {
  const [payout] = batch.payouts as readonly [BatchPayout];
  const signed = (batch.attempts[0] as Attempt).fee;
  const isOpen = payout.status === 'processing';
  if (isOpen && confirmations < EVM_CONFIRMATIONS && !isFinal) return 'waiting';
  const isSame = batch.minedAttempt === mined.id;
  const isOver = batch.state === 'final' && isSame && isFinal && !isOpen;
  if (isOver && (await unbookedGas(sql, batch, mined)).postings.length === 0) return 'waiting';
  // what is booked of it now stays booked
  if ((isOpen || isFinal) && !isShown) return 'to_complete';
  const nowMs = ctx.ports.clock.now();
  if (isOpen) {
    const fee = chargeOf(batch, mined);
    const owed = await lockOwed(sql, [payout]);
    const before = owed(payout, minus(payout.feeMax, fee));
    await postAll(ctx, sql, payout, evmCompleteEntries(payout, signed, fee, before));
    const event = 'confirmed';
    await writePayoutChanges(
      sql,
      [{ payout, from: ['processing', 'batched'], event, fee, completedAtMs: nowMs, ...reason }],
      nowMs,
    );
    await markReimbursing(sql, reimbursedBy([payout]));
  }
  if (!isFinal) {
    if (batch.state === 'final') await bookGas(ctx, sql, batch, null);
    const isKnown = batch.state === 'mined' && isSame;
    if (!isKnown) await setBatchState(sql, batch.id, { state: 'mined', minedAttempt: mined.id });
    return isOpen ? 'confirmed' : isKnown ? 'waiting' : 'moved';
  }
  await noteKept(sql, payout.id, kept);
  await bookGas(ctx, sql, batch, mined);
  if (batch.state === 'final' && isSame) return 'waiting';
  await setBatchState(sql, batch.id, { state: 'final', minedAttempt: mined.id });
  return 'final';
}

/**
 * Books what the gas of its payout has cost, as the difference to what is booked of that: another block, or another node, may say something else.
 * @param mined the one that is final, paid or failed; null = none is any more
 */
async function bookGas(ctx: Context, sql: Sql, batch: Batch<EvmCode>, mined: Attempt | null): Promise<void> {
  const [payout] = batch.payouts as readonly [BatchPayout];
  await postAll(ctx, sql, payout, [await unbookedGas(sql, batch, mined)]);
}

/** That difference; without postings where there is none. */
async function unbookedGas(sql: Sql, { payouts, attempts }: Batch<EvmCode>, mined: Attempt | null): Promise<Entry> {
  const [payout] = payouts as readonly [BatchPayout];
  const booked = await bookedStepsOf(sql, 'po', payout.id);
  const gasPaid = mined?.outcome?.gasPaid ?? 0n;
  // what the service bears of a reimbursement is what has arrived
  const hasLeft = mined?.outcome?.result === 'paid' && payout.status !== 'failed';
  return hasLeft ? gasEntry(payout, gasPaid, (attempts[0] as Attempt).fee, booked) : paidGas(payout, gasPaid, booked);
}

/** @param mined its failed transaction in a final block; null where one that is none of ours took the nonce for good */
async function fail(ctx: Context, sql: Sql, batch: Batch<EvmCode>, mined: Attempt | null): Promise<Progress> {
  // where none is mined, what was booked is taken back already
  if (mined !== null) await bookGas(ctx, sql, batch, mined);
  const minedAttempt = mined?.id ?? null;
  if (batch.state === 'dead') {
    if (batch.minedAttempt !== minedAttempt) await setBatchState(sql, batch.id, { state: 'dead', minedAttempt });
    return 'waiting';
  }
  const [payout] = batch.payouts as readonly [BatchPayout];
  const signed = (batch.attempts[0] as Attempt).fee;
  const booked = await bookedStepsOf(sql, 'po', payout.id);
  const nowMs = ctx.ports.clock.now();
  const error = mined === null ? 'displaced' : 'reverted';
  const owed = await lockOwed(sql, [payout]);
  const isCompleted = payout.status === 'completed';
  if (isCompleted) {
    const fee = payout.fee ?? 0n;
    const before = owed(payout, plus(payout.amount, fee));
    await postAll(ctx, sql, payout, [evmReturnEntry(payout, { signed, fee, owed: before, booked })]);
    await writePayoutChanges(sql, [{ payout, from: ['completed', 'ended'], event: 'displaced', error }], nowMs);
  } else if (payout.status === 'processing') {
    const release = {
      owed: owed(payout, plus(payout.amount, payout.feeMax)),
      isAgain: (await heldAgain(sql, [payout.id])).has(payout.id),
    };
    await postAll(ctx, sql, payout, evmGiveBackEntries(payout, signed, release));
    await writePayoutChanges(sql, [{ payout, from: ['processing', 'batched'], event: 'impossible', error }], nowMs);
  } else {
    // it was found paid once, and was borne
    const undone = evmBorneEntry(payout, signed, false, booked);
    if (undone !== null) await postAll(ctx, sql, payout, [undone]);
  }
  await markReimbursing(sql, reimbursedBy([payout]));
  await setBatchState(sql, batch.id, { state: 'dead', minedAttempt });
  return isCompleted ? 'displaced' : 'failed';
}

/** What costs nothing is no entry. */
async function postAll(ctx: Context, sql: Sql, payout: BatchPayout, entries: readonly Entry[]): Promise<void> {
  await post(
    ctx,
    sql,
    entries.filter(({ postings }) => postings.length > 0).map((entry) => ({ payout, entry })),
  );
}
