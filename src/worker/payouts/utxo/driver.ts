// Drives the payouts of one chain of Bitcoin's family: forms batches, has them signed, stores each signature before it is sent, sends the same
// bytes again until a block has them, replaces them at a higher fee when they wait too long, and follows the blocks. Any number of workers may
// run it: a batch is worked on under a lease, and a crash anywhere leaves a state from which the next one goes on.

import { chainRow, type UtxoCode } from '../../../core/currency.ts';
import { replacementRate } from '../../../core/payouts/outgoing-fees.ts';
import { refusalKind, refusedRule } from '../../../core/payouts/signing-refusals.ts';
import type { SignedTransaction, TransactionToSign } from '../../../core/signer-wire.ts';
import type { Context } from '../../../flow/context.ts';
import { whereLost } from '../../../flow/payouts/after-restore/lost-outputs.ts';
import {
  type Formed,
  MOST_PAYEES,
  priced,
  signingRequest,
  TOO_MANY_OUTPUTS,
  WAITING_FOR,
} from '../../../flow/payouts/batches.ts';
import { progress, storeSigned } from '../../../flow/payouts/progress.ts';
import { giveUpUnsignedBatch, mustWait } from '../../../flow/payouts/waiting-for-operator.ts';
import { isEmptied } from '../../../store/payouts/after-restore/emptied-batches.ts';
import { markSent } from '../../../store/payouts/attempts.ts';
import { type Attempt, type Batch, endLease, raiseLease, readBatch, setBatchTrouble } from '../../../store/payouts/batch-rows.ts';
import { lastBatchAt } from '../../../store/payouts/batches.ts';
import { readFeeRate } from '../../../store/payouts/fee-rates.ts';
import { payingPortOf } from '../../chain/context.ts';
import { reachable, troubleOf } from '../../chain/pass-result.ts';
import type { DriverOptions, PayoutDriver } from '../driver-options.ts';
import { driveNext } from '../due-batches.ts';
import { createFeeAsking } from '../fee-asking.ts';
import { writeBack } from '../write-back.ts';
import { createBatchForming } from './batch-forming.ts';
import { needsPrevious, readPreviousTransactions } from './previous-transactions.ts';
import { isForgotten, searchSpends } from './spend-search.ts';

/** The time from one batch to the next, so that payouts that are requested one after the other are paid together. */
const TOGETHER_MS = 10_000;
const RESEND_MS = 600_000;
/** How old a batch must be for its first replacement, for the second twice as old, and so on; and only while today's fee is above the last one. */
const REPLACE_AFTER_MS = 1_800_000;
/** From when on what no block takes is told, in the blocks of its chain. */
const UNTAKEN_TOLD_BLOCKS = 36;
const RETRY_MS = 15_000;
const SEARCH_MS = 60_000;
/** How often one that is in a block is looked at until it is final. */
const MINED_LOOK_MS = 60_000;

/** Nothing was signed: by a rule of the signer (its message), or because an output is gone (null). */
type Refused = { readonly refusal: string | null };

/** What an operator can do about what no block has any more, where nothing tells what became of it. */
function howToGiveUp({ inputs, payouts }: Batch): string {
  const gone = inputs.find(({ isNowhere, goneHeight }) => isNowhere && goneHeight === null);
  if (gone === undefined) return '';
  return ` (a reorganisation has taken ${gone.txid}, which made ${gone.txid}:${gone.vout}, out of its block; if it can be mined no more: bursar payout give-up ${payouts[0]?.id ?? ''})`;
}

/** Our nodes have it, and no block takes it: blocks are full, or one of our nodes says too little of what a transaction costs. Null while it is young. */
function whyUntaken(currency: UtxoCode, { txid }: Attempt, ageMs: number): string | null {
  const minutes = (UNTAKEN_TOLD_BLOCKS * chainRow(currency).blockSeconds) / 60;
  return ageMs < minutes * 60_000
    ? null
    : `no block has taken ${txid} for more than ${Math.floor(minutes)} minutes, and our nodes have it`;
}

/** @throws when no node is configured for the currency */
export function createPayoutDriver(ctx: Context, currency: UtxoCode, options: DriverOptions): PayoutDriver {
  const port = payingPortOf(ctx, currency);
  const { clock } = ctx.ports;
  const reached = options.reached ?? (async () => undefined);
  const formed = createBatchForming(ctx, currency, options.onFault);
  /** After a refusal: payees of the next batch at most, and when it is formed at the earliest. */
  let mostPayees = MOST_PAYEES;
  let formAgainMs = Number.NEGATIVE_INFINITY;
  /** Batches whose inputs were searched for by this process. */
  const searched = new Set<string>();

  /** Payouts wait a little for others, so that one transaction pays many of them. */
  async function isTimeToForm(): Promise<boolean> {
    const nowMs = clock.now();
    if (nowMs < formAgainMs && formAgainMs <= nowMs + SEARCH_MS) return false;
    // the half of what was refused is tried at once
    if (mostPayees < MOST_PAYEES) return true;
    const last = await lastBatchAt(ctx.db, currency);
    return last === null || nowMs - last >= TOGETHER_MS || nowMs < last;
  }

  async function drive(batchId: string, signsNew: boolean): Promise<void> {
    const batch = await readBatch(ctx.db, batchId, { lock: false });
    if (batch === null) return;
    const again = await work(batch, signsNew);
    await endLease(ctx.db, batch.id, batch.leaseEpoch, again === null ? null : clock.now() + again);
  }

  /** @returns in how many milliseconds it is looked at again; null = when the chain shows something new of it */
  async function work(batch: Batch, signsNew: boolean): Promise<number | null> {
    if (isEmptied(batch)) return batch.state === 'dead' ? null : giveUp(batch, null);
    if (batch.attempts.length === 0) return signsNew ? signFirst(batch) : RETRY_MS;
    const forgotten = await reachable(() => isForgotten(ctx, port, batch));
    if (forgotten !== false) return forgotten === null ? RETRY_MS : SEARCH_MS;
    if (batch.inputs.some((input) => input.spentBy !== null)) await reached('seen');
    const how = await progress(ctx, batch.id);
    if (how === 'confirmed') await reached('completed');
    if (how === 'final') await reached('final');
    if (how === 'final' || how === 'failed' || how === 'displaced') searched.delete(batch.id);
    if (how === 'final') return null;
    // some of its outputs may be spent by others in blocks that are not final yet
    if (how === 'failed' || how === 'displaced' || how === 'unsettled') return MINED_LOOK_MS;
    const now = (await readBatch(ctx.db, batch.id, { lock: false })) as Batch;
    if (now.state === 'final' || now.state === 'dead') return null;
    if (how === 'unagreed') return RETRY_MS;
    // a block decides, and says nothing when it makes one final
    if (now.attempts.some((attempt) => attempt.height !== null)) return MINED_LOOK_MS;
    return (await replaceIfSlow(now)) ?? sendNewest(now, how === 'reorged');
  }

  async function signFirst(batch: Batch): Promise<number | null> {
    // whoever has waited for the signer may owe something by now
    if (await mustWait(ctx, batch)) return giveUp(batch, null);
    const signed = await sign(batch, 1, batch.feeRate);
    if (signed === null) return RETRY_MS;
    if ('refusal' in signed) return giveUp(batch, signed.refusal);
    mostPayees = Math.min(MOST_PAYEES, mostPayees * 2);
    const stored = await readBatch(ctx.db, batch.id, { lock: false });
    return stored === null ? null : sendNewest(stored, true);
  }

  /** Signs and stores; null when it is not known whether the signer has signed: the same request gets the same bytes later. */
  async function sign(batch: Batch, number: number, rate: bigint): Promise<SignedTransaction | Refused | null> {
    const selection = priced(batch, rate);
    if (selection === null) throw new Error(`batch ${batch.id} cannot pay ${rate} per 1,000 virtual bytes`);
    const previous = await previousOf(batch);
    if (previous === null) return null;
    // no block has an output of it any more: where nothing was signed, other outputs pay
    if (previous === 'gone') return { refusal: null };
    try {
      const signed = await options.signing.sign({ ...signingRequest(batch, number, selection), ...previous });
      await reached('signed');
      await storeSigned(ctx, signed, { epoch: batch.leaseEpoch, feeRate: rate });
      await reached('stored');
      await setBatchTrouble(ctx.db, batch.id, null);
      return signed;
    } catch (error) {
      const { fault, message } = error as { fault?: string; message: string };
      if (fault === undefined) throw error;
      options.onTrouble(`batch ${batch.id}: the signer ${fault === 'refused' ? 'refuses' : 'does not answer'}: ${message}`);
      await setBatchTrouble(ctx.db, batch.id, message);
      return fault === 'refused' ? { refusal: message } : null;
    }
  }

  /** What the signer needs besides; null when it cannot be had now. */
  async function previousOf(batch: Batch): Promise<Pick<TransactionToSign, 'previous'> | 'gone' | null> {
    if (!needsPrevious(currency)) return {};
    try {
      const previous = await readPreviousTransactions(ctx, port, batch.id);
      return previous === null ? 'gone' : { previous };
    } catch (error) {
      const trouble = troubleOf(error);
      if (trouble === null) throw error;
      options.onTrouble(`batch ${batch.id}: what made its outputs cannot be read`);
      return null;
    }
  }

  /**
   * Gives a reservation up. A refusal says that nothing was signed now; an earlier request may have been signed and its answer lost, or may
   * still be on its way. So the lease is raised first: nothing is signed under the old one any more, and what the signer names then is all.
   * @param refusal null when the signer did not refuse
   */
  async function giveUp(batch: Batch, refusal: string | null): Promise<number | null> {
    const epoch = await raiseLease(ctx.db, batch.id, batch.leaseEpoch);
    if (epoch === null) return null;
    const restored = await writeBack(ctx, options, batch.id);
    if (restored === 0) afterRefusal(batch, refusal, await giveUpUnsignedBatch(ctx, batch, epoch, refusal));
    await endLease(ctx.db, batch.id, epoch, clock.now() + (restored === null ? RETRY_MS : 0));
    return null;
  }

  /** Half of a batch that is refused is tried next, until the payout that is refused is alone. */
  function afterRefusal({ payouts }: Batch, refusal: string | null, isGivenUp: boolean): void {
    const kind = refusal === null || !isGivenUp ? null : refusalKind(refusal);
    if (kind === 'later') formAgainMs = clock.now() + SEARCH_MS;
    const next = payouts.length > 1 ? Math.ceil(payouts.length / 2) : mostPayees * 2;
    if (kind === 'payout') mostPayees = Math.min(MOST_PAYEES, next);
  }

  /** A replacement with the same inputs and payees at a higher fee; null when none is wanted or possible. The older one is sent again meanwhile. */
  async function replaceIfSlow(batch: Batch): Promise<number | null> {
    const newest = batch.attempts.at(-1) as Attempt;
    const estimate = await readFeeRate(ctx.db, currency);
    // not since it was sent last: it is sent again all the time
    const isSlow = clock.now() - batch.createdAtMs >= REPLACE_AFTER_MS * newest.number;
    if (estimate === null || !isSlow || estimate <= batch.feeRate) return null;
    const rate = replacementRate(currency, batch.feeRate, estimate);
    if (priced(batch, rate) === null) return null;
    const signed = await sign(batch, newest.number + 1, rate);
    // its answer was lost, and today's fee is another one: what was signed counts
    if (signed !== null && 'refusal' in signed && refusedRule(signed.refusal ?? '') === 'number')
      await writeBack(ctx, options, batch.id);
    const stored = await readBatch(ctx.db, batch.id, { lock: false });
    if (stored === null) return null;
    const isNew = stored.attempts.length > batch.attempts.length;
    return Math.min(await sendNewest(stored, isNew), isNew ? RESEND_MS : RETRY_MS);
  }

  /** Sends the newest bytes, never others; what a node answers decides when they are sent again, and nothing else. */
  async function sendNewest(batch: Batch, atOnce: boolean): Promise<number> {
    const newest = batch.attempts.at(-1);
    // another worker has leased it meanwhile, and nothing was stored
    if (newest === undefined) return RETRY_MS;
    const left = newest.sentAtMs === null || atOnce ? 0 : newest.sentAtMs + RESEND_MS - clock.now();
    if (left > 0 && left <= RESEND_MS) return left;
    const answer = await reachable(() => port.send(newest.raw));
    await reached('sent');
    if (answer === null) return RETRY_MS;
    // in a block that was read before we watched for it: a database that was restored may have forgotten what it waited for
    if (answer.state === 'mined' || answer.state === 'inputs_missing') await search(batch);
    if (!('reason' in answer)) {
      await markSent(ctx.db, newest.id, clock.now());
      await reached('marked');
      const untaken = whyUntaken(currency, newest, clock.now() - batch.createdAtMs);
      if (untaken !== null) options.onTrouble(`batch ${batch.id}: ${untaken}`);
      await setBatchTrouble(ctx.db, batch.id, untaken);
      return RESEND_MS;
    }
    const trouble = answer.state === 'inputs_missing' ? `${answer.reason}${howToGiveUp(batch)}` : answer.reason;
    options.onTrouble(`batch ${batch.id}: ${trouble}`);
    await setBatchTrouble(ctx.db, batch.id, trouble);
    return SEARCH_MS;
  }

  /**
   * All blocks since it was made are read: where it is known what else has taken an input, once. Every later block is watched; but what the batch itself has
   * spent was read before that was written back, as often as the database is put back under this process.
   */
  async function search(batch: Batch): Promise<void> {
    const isOwn = (txid: string): boolean => batch.attempts.some((attempt) => attempt.txid === txid);
    const isExplained = batch.inputs.some(
      ({ spentBy, goneHeight }) => (spentBy !== null && !isOwn(spentBy)) || goneHeight !== null,
    );
    if (isExplained && searched.has(batch.id)) return;
    await searchSpends(ctx, port, batch);
    searched.add(batch.id);
  }

  async function form(): Promise<void> {
    await reached('queued');
    const rate = await readFeeRate(ctx.db, currency);
    const how: Formed | { readonly outcome: 'no_fee' } | null =
      rate === null ? { outcome: 'no_fee' } : await formed(rate, mostPayees);
    if (how === null) return;
    if ('alike' in how) for (const id of how.alike ?? []) options.onTrouble(whereLost(id));
    if ('tooLarge' in how) options.onTrouble(`${how.tooLarge?.join(', ')} waits for the operator: ${TOO_MANY_OUTPUTS}`);
    if (how.outcome === 'formed') await reached('reserved');
    const why = WAITING_FOR[how.outcome];
    if (why !== null) options.onTrouble(`payouts in ${currency} wait: ${why}`);
  }

  return {
    askFee: createFeeAsking(ctx, port),
    async pass({ isQueued, signsNew, goesOn = () => true }) {
      if (isQueued && signsNew && (await isTimeToForm())) await form();
      const seen: string[] = [];
      const due = { ...options, currency, drive: (id: string) => drive(id, signsNew) };
      while (goesOn() && (await driveNext(ctx, due, seen)));
    },
  };
}
