// Drives the payouts of ether or a token: asks the node what the next one costs, reserves a nonce for it, has it signed, stores the signature
// before it is sent, sends the same bytes again until a block has them, replaces them at a higher fee when they wait, and follows the blocks.
// Any number of workers may run it: a batch is worked on under a lease, and a crash anywhere leaves a state from which the next one goes on.

import { GAS } from '../../../core/currencies/evm.ts';
import { ETHER, type EvmCode } from '../../../core/currency.ts';
import { type GasOffer, replacementOffer } from '../../../core/payouts/gas.ts';
import { refusalKind, refusedRule } from '../../../core/payouts/signing-refusals.ts';
import type { SignedTransaction } from '../../../core/signer-wire.ts';
import type { Context } from '../../../flow/context.ts';
import { evmProgress, type Said, stopContradicted, storeEvmSigned } from '../../../flow/evm/progress.ts';
import { evmRequestOf } from '../../../flow/evm/signing.ts';
import type { Progress } from '../../../flow/payouts/batch-progress.ts';
import { giveUpUnsignedBatch, mustWait } from '../../../flow/payouts/waiting-for-operator.ts';
import { sweepProgress } from '../../../flow/sweeps/progress.ts';
import { giveUpSweep } from '../../../flow/sweeps/sweeps.ts';
import { openBreakers } from '../../../store/ledger/breakers.ts';
import { isEmptied } from '../../../store/payouts/after-restore/emptied-batches.ts';
import { markSent } from '../../../store/payouts/attempts.ts';
import { type Attempt, type Batch, endLease, raiseLease, readBatch, setBatchTrouble } from '../../../store/payouts/batch-rows.ts';
import { readBlockHash } from '../../../store/payouts/evm-lane.ts';
import { reachable } from '../../chain/pass-result.ts';
import type { DRIVER_STEPS, DriverOptions, Pass, PayoutDriver } from '../driver-options.ts';
import { driveNext } from '../due-batches.ts';
import { writeBack } from '../write-back.ts';
import { createForming } from './forming.ts';
import { findAtNonce, type Lane } from './lane.ts';
import { recordDisplacing } from './passed-nonces.ts';
import { createSweeper } from './sweeper.ts';
import { nonceOf, readUsed, saidByAll, stopsPayouts } from './used-nonce.ts';

const RESEND_MS = 60_000;
/** How long no block has taken one before its first replacement, before the second twice as long, and so on; and only once blocks ask for more than it offers. */
const REPLACE_AFTER_MS = 60_000;
const RETRY_MS = 5_000;
/** From when on what no block takes is told. */
const UNTAKEN_TOLD_MS = 600_000;
/** How often one that is in a block is looked at until it is confirmed, and until it is final. */
const CONFIRMING_LOOK_MS = 2_000;
const MINED_LOOK_MS = 15_000;
/** A sweep that the signer has refused is nobody's money on its way: it can wait. */
const REFUSED_SWEEP_MS = 600_000;

/**
 * Drives the payouts and sweeps that leave from one address on Ethereum's chain: signs, stores, sends, sends again, replaces while its fee
 * is too low.
 */
export function createEvmDriver(ctx: Context, lane: Lane, options: DriverOptions): PayoutDriver {
  const { currency, port, contract } = lane;
  const { clock } = ctx.ports;
  const reached = options.reached ?? (async () => undefined);
  const reachedBy = ({ purpose }: Batch<EvmCode>, step: (typeof DRIVER_STEPS)[number]): Promise<void> =>
    reached(purpose === 'payout' ? step : `sweep-${step}`);
  const sweeper = createSweeper(ctx, lane, {
    onWait: (why) => options.onTrouble(`payments in ${currency} stay at their addresses: ${why}`),
    onFault: options.onFault,
  });
  const forming = createForming(ctx, lane, {
    reached,
    onWait: (why) => options.onTrouble(`payouts in ${currency} wait: ${why}`),
    onFault: options.onFault,
  });
  let sweepAgainMs = Number.NEGATIVE_INFINITY;

  async function drive(batchId: string, signsNew: boolean): Promise<void> {
    const batch = await readBatch<EvmCode>(ctx.db, batchId, { lock: false });
    if (batch === null) return;
    const again = await work(batch, signsNew);
    await endLease(ctx.db, batch.id, batch.leaseEpoch, again === null ? null : clock.now() + again);
  }

  /** @returns in how many milliseconds it is looked at again; null = it is over */
  async function work(batch: Batch<EvmCode>, signsNew: boolean): Promise<number | null> {
    if (isEmptied(batch)) return batch.state === 'dead' ? null : giveUp(batch, null);
    if (batch.attempts.length === 0) return signsNew ? signFirst(batch) : RETRY_MS;
    const finalized = await reachable(() => port.finalized());
    if (batch.inputs.some((input) => input.spentBy !== null)) await reachedBy(batch, 'seen');
    if (stopsPayouts(batch) && !(await readAgain(batch, finalized?.height))) return RETRY_MS;
    const how = await progressOf(batch, finalized?.height ?? 0);
    if (how === null) return RETRY_MS;
    if (how === 'to_complete') return MINED_LOOK_MS;
    if (how === 'confirmed') await reachedBy(batch, 'completed');
    if (how === 'final') await reachedBy(batch, 'final');
    const now = await readBatch<EvmCode>(ctx.db, batch.id, { lock: false });
    if (now?.state === 'dead' && stopsPayouts(now)) return MINED_LOOK_MS;
    if (now === null || now.state === 'final' || now.state === 'dead') return null;
    if (now.attempts.some((attempt) => attempt.height !== null))
      return now.state === 'mined' ? MINED_LOOK_MS : CONFIRMING_LOOK_MS;
    return (await replaceIfSlow(now)) ?? sendNewest(now, how === 'reorged');
  }

  /** Null where nodes must be asked, and do not answer or contradict each other. */
  async function progressOf(batch: Batch<EvmCode>, finalized: number): Promise<Progress | null> {
    const how = await compared(batch, finalized);
    if (how === 'to_complete') return completeIfShown(batch, finalized);
    if (how !== 'to_fail') return how;
    if (!(await readAgain(batch))) return null;
    const again = await compared(batch, finalized);
    if (again === 'to_complete') return completeIfShown(batch, finalized);
    return again === 'to_fail' ? failUnlessPaid(batch, finalized) : again;
  }

  function compared({ id, purpose }: Batch<EvmCode>, finalized: number, said?: Said): Promise<Progress> {
    return (purpose === 'payout' ? evmProgress : sweepProgress)(ctx, id, finalized, said);
  }

  /** What is stored is the word of the node that was read then, and the one that is read now may know better. Whether it answers. */
  async function readAgain(batch: Batch<EvmCode>, finalized = 0): Promise<boolean> {
    return (await reachable(async () => ({ read: await readUsed(ctx, lane, batch, finalized) }))) !== null;
  }

  /** What has paid is completed, and whatever is final ends, when two nodes show alike how it ended: receipts are a node's word. */
  async function completeIfShown({ id }: Batch<EvmCode>, finalized: number, mayFail = false): Promise<Progress | null> {
    const batch = await readBatch<EvmCode>(ctx.db, id, { lock: false });
    const mined = batch?.attempts.find((attempt) => attempt.height !== null);
    if (batch === null || mined === undefined) return null;
    const shown = await reachable(() => port.ended(mined.txid));
    if (shown === null) return waits(batch, 'no node says how it ended');
    // whether its block is final is a node's word too
    const isHigher = shown.ended !== null && !shown.isFinal;
    const final = isHigher ? Math.min(finalized, (mined.height as number) - 1) : finalized;
    const how = await compared(batch, final, { ended: shown.ended, mayFail });
    if (how !== 'to_complete') {
      await setBatchTrouble(ctx.db, id, null);
      return how;
    }
    const what = batch.purpose === 'payout' && mined.outcome?.result === 'paid' ? 'has paid' : 'has ended';
    await waits(
      batch,
      `it ${what}, says the node that is read, and that counts once two nodes show the same of ${mined.txid} (one that is away for good, or wrong: take it out of BURSAR_${ETHER}_RPC_URL): ${shown.said.join('; ')}`,
    );
    return (await readAgain(batch)) ? 'to_complete' : null;
  }

  /** What gives money back is asked of every node, because receipts are a node's word. Null where it must be looked at again. */
  async function failUnlessPaid(batch: Batch<EvmCode>, finalized: number): Promise<Progress | null> {
    const { id } = batch;
    const sender = nonceOf(batch);
    const said = await reachable(() => saidByAll(port, batch, finalized));
    if (said === null) return waits(batch, 'no node says whether it has paid');
    const { paid, isUnused, isDenied, silent } = said;
    if (paid !== null || isUnused) {
      const known = paid === null ? null : await readBlockHash(ctx.db, currency, paid.height);
      const what =
        paid === null
          ? `nothing has used nonce ${sender.nonce} of ${sender.address} yet`
          : `${paid.txid} has paid, in block ${paid.blockHash}`;
      if (paid === null || known === null || known === paid.blockHash) await stopContradicted(ctx, id, what);
      return waits(batch, `${what}, says a node that is not the one that is read`);
    }
    // while payouts are stopped, one that says nothing now may have contradicted before
    const mustHear = !isDenied || (silent.length > 0 && (await openBreakers(ctx.db)).some(({ name }) => name === 'payouts'));
    const away = `one that is away for good: take it out of BURSAR_${ETHER}_RPC_URL`;
    if (mustHear) return waits(batch, `it has failed, and is given back once two nodes say so (${away}): ${silent.join('; ')}`);
    const by = await reachable(async () => ({ why: await recordDisplacing(ctx, lane, batch) }));
    if (by?.why !== null) return waits(batch, by?.why ?? 'no node says what has used its nonce');
    const how = await compared(batch, finalized, { mayFail: true });
    // what its gas has cost is booked with that
    return how === 'to_complete' ? completeIfShown(batch, finalized, true) : how;
  }

  async function signFirst(batch: Batch<EvmCode>): Promise<number | null> {
    // whoever has waited for the signer may owe something by now
    if (await mustWait(ctx, batch)) return giveUp(batch, null);
    if (batch.gas === null) throw new Error(`batch ${batch.id} has no gas`);
    const signed = await sign(batch, 1, { maxFee: batch.feeRate, tip: batch.gas.tip });
    if (signed === null) return RETRY_MS;
    const stored = await readBatch<EvmCode>(ctx.db, batch.id, { lock: false });
    return stored === null ? null : sendNewest(stored, true);
  }

  /** Signs and stores; null when nothing was stored: the same request gets the same bytes later. */
  async function sign(batch: Batch<EvmCode>, number: number, offer: GasOffer): Promise<SignedTransaction | null> {
    const request = await evmRequestOf(ctx, batch, contract, { number, offer });
    if (request === null) return waits(batch, 'there is no price of what its gas is worth');
    try {
      const signed = await options.signing.sign(request);
      await reachedBy(batch, 'signed');
      await storeEvmSigned(ctx, signed, batch.leaseEpoch);
      await reachedBy(batch, 'stored');
      await setBatchTrouble(ctx.db, batch.id, null);
      return signed;
    } catch (error) {
      const { fault, message } = error as { fault?: string; message: string };
      if (fault === undefined) throw error;
      await waits(batch, message);
      // its answer was lost, and today's offer is another one: what was signed counts
      if (fault === 'refused' && refusedRule(message) === 'number') await writeBack(ctx, options, batch.id);
      else if (fault === 'refused' && batch.attempts.length === 0) await giveUp(batch, message);
      return null;
    }
  }

  async function waits(batch: Batch<EvmCode>, why: string): Promise<null> {
    options.onTrouble(`batch ${batch.id}: ${why}`);
    await setBatchTrouble(ctx.db, batch.id, why);
    return null;
  }

  /**
   * Gives a reservation up for which nothing was signed. The lease is raised first: nothing is signed under the old one any more, and what the
   * signer names then is all. No later nonce is reserved before this one has a signature, so the next payout gets it.
   * @param refusal null when the signer was not asked
   */
  async function giveUp(batch: Batch<EvmCode>, refusal: string | null): Promise<null> {
    const epoch = await raiseLease(ctx.db, batch.id, batch.leaseEpoch);
    if (epoch === null) return null;
    const restored = await writeBack(ctx, options, batch.id);
    if (restored === 0) {
      // what it has against the nonce of one address says nothing of the others
      const rests = batch.purpose === 'top_up' || refusedRule(refusal ?? '') !== 'conflict';
      if (refusal !== null && batch.purpose !== 'payout' && rests) sweepAgainMs = clock.now() + REFUSED_SWEEP_MS;
      else if (refusal !== null && refusalKind(refusal) === 'later') forming.wait();
      await (batch.purpose === 'payout' ? giveUpUnsignedBatch : giveUpSweep)(ctx, batch, epoch, refusal);
    }
    await endLease(ctx.db, batch.id, epoch, clock.now() + (restored === null ? RETRY_MS : 0));
    return null;
  }

  /** A replacement at the same nonce that pays the same; null when none is wanted. The older one is sent again meanwhile. */
  async function replaceIfSlow(batch: Batch<EvmCode>): Promise<number | null> {
    const newest = batch.attempts.at(-1) as Attempt;
    const last = newest.maxFee ?? 0n;
    const agoMs = clock.now() - batch.createdAtMs;
    // before that only by a clock that was fast
    const isYoung = agoMs >= 0 && agoMs < REPLACE_AFTER_MS * newest.number;
    if (isYoung || last >= GAS.mostFee) return null;
    const fees = await reachable(() => port.gasFees());
    // whoever offers what the next block asks for only has to wait
    if (fees === null || last >= fees.base + fees.tip) return null;
    const offer = await reachable(() => sweeper.affordable(batch, replacementOffer(last, fees)));
    if (offer === null || offer.maxFee > GAS.mostFee) return null;
    const signed = await sign(batch, newest.number + 1, offer);
    const stored = await readBatch<EvmCode>(ctx.db, batch.id, { lock: false });
    if (stored === null) return null;
    return Math.min(await sendNewest(stored, signed !== null), signed === null ? RETRY_MS : RESEND_MS);
  }

  /** Sends the newest bytes, never others; what a node answers decides when they are sent again, and nothing else. */
  async function sendNewest(batch: Batch<EvmCode>, atOnce: boolean): Promise<number> {
    const newest = batch.attempts.at(-1);
    if (newest === undefined) return RETRY_MS;
    // it was recovered from a final block, which brings it back
    if (newest.raw.length === 0) return RESEND_MS;
    const left = newest.sentAtMs === null || atOnce ? 0 : newest.sentAtMs + RESEND_MS - clock.now();
    if (left > 0 && left <= RESEND_MS) return left;
    const answer = await reachable(() => port.send(newest.raw));
    await reachedBy(batch, 'sent');
    if (answer === null) return RETRY_MS;
    if (!('reason' in answer)) {
      await markSent(ctx.db, newest.id, clock.now());
      await reachedBy(batch, 'marked');
      const untaken = await whyUntaken(port, newest, clock.now() - batch.createdAtMs);
      await (untaken === null ? setBatchTrouble(ctx.db, batch.id, null) : waits(batch, untaken));
      return RESEND_MS;
    }
    // mined already, or somebody else uses this nonce: the blocks say which
    if (answer.state === 'inputs_missing') await reachable(() => findAtNonce(ctx, lane, batch));
    await waits(batch, answer.reason);
    return RETRY_MS;
  }

  return {
    askFee: lane.askFee,
    wantsToMove: () => sweeper.isDue(),
    async pass({ isQueued, signsNew, moves = false, goesOn = () => true }: Pass) {
      const seen: string[] = [];
      const due = { ...options, currency, drive: (id: string) => drive(id, signsNew) };
      while (goesOn()) {
        if (await driveNext(ctx, due, seen)) continue;
        // the next nonce is reserved when the one before has its signature
        if (!signsNew) return;
        if (isQueued && (await forming.next())) continue;
        const restsMs = sweepAgainMs - clock.now();
        const isResting = restsMs > 0 && restsMs <= REFUSED_SWEEP_MS;
        if (!moves || isResting || (await reachable(() => sweeper.form())) !== true) return;
        await reached('sweep-reserved');
      }
    },
  };
}

/** Our nodes have it, and no block takes it: one of them may say too little of what gas costs, which holds up whatever leaves. Null while it is young. */
async function whyUntaken(port: Lane['port'], { txid }: Attempt, ageMs: number): Promise<string | null> {
  if (ageMs < UNTAKEN_TOLD_MS) return null;
  const cheapest = (await reachable(() => port.gasFees()))?.cheapest;
  const least = cheapest === undefined ? '' : `; of our nodes ${cheapest} says the least of what gas costs now`;
  return `no block has taken ${txid} for more than ${UNTAKEN_TOLD_MS / 60_000} minutes, and our nodes have it${least}`;
}
