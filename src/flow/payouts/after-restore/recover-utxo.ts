// An operator has a transaction booked that this database and its signer have both forgotten, because they were put back together: the payouts
// that it pays get it as their transaction, and what it pays to others is booked as lost.
import type { UtxoCode } from '../../../core/currency.ts';
import { sortableId } from '../../../core/ids.ts';
import { least, minus, plus, sum } from '../../../core/money.ts';
import type { OutputFacts } from '../../../core/ports.ts';
import { isInChain } from '../../../store/chain/blocks.ts';
import { type SpendingKey, spendingKey } from '../../../store/chain/xpubs.ts';
import { postEntries } from '../../../store/ledger/ledger.ts';
import { leaveReservation } from '../../../store/payouts/after-restore/emptied-batches.ts';
import { bookedBeside } from '../../../store/payouts/attempts.ts';
import { type Batch, readBatch } from '../../../store/payouts/batch-rows.ts';
import { insertBatch, type SpendableOutput } from '../../../store/payouts/batches.ts';
import { isHeldInLedger } from '../../../store/payouts/booked-amounts.ts';
import { recordOutgoing } from '../../../store/payouts/outgoing-facts.ts';
import { knownOwnScripts, ungivenOwnIndexes } from '../../../store/payouts/own-outputs.ts';
import { lockPayouts, type PayoutRow } from '../../../store/payouts/payouts.ts';
import { writePayoutChanges } from '../../../store/payouts/status-changes.ts';
import {
  type DecidedPayout,
  decidedPayouts,
  forgottenOutputs,
  isUnexplained,
  paysPayout,
  recordMovements,
  resolveMovement,
  unsignedPayouts,
} from '../../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../../store/postgres/connect.ts';
import type { Context } from '../../context.ts';
import { addAttempt } from '../progress.ts';
import { takeOut } from './never-sent.ts';
import { acceptedLoss, lockUnsigned, type Recovered, type RecoveryOf, type Refused, recovering } from './recover.ts';
import { reopen } from './restored-signatures.ts';
import { adopt, bookWithoutOutputs, differenceEntry, whyNotUnknown } from './unknown-outputs.ts';

export type Recovery = RecoveryOf<UtxoCode> & { readonly raw: Uint8Array };

/** @throws Refusal not_resolvable, with what is missing */
export function recoverTransaction(ctx: Context, recovery: Recovery): Promise<Recovered> {
  const { currency, facts, block } = recovery;
  return recovering(ctx, recovery, async (sql, refused) => {
    if (!(await isInChain(sql, currency, block))) throw refused('is in no block that was read; wait for one');
    const key = await spendingKey(sql, currency);
    if (key === null) throw refused(`cannot be booked: the signer has no key in use for ${currency}`);
    const outputs = await forgottenOutputs(sql, currency, facts.inputs);
    const unknown = facts.inputs.filter(
      ({ txid, vout }) => !outputs.some((output) => output.txid === txid && output.vout === vout),
    );
    const spending = { currency, txid: facts.txid, acceptsLoss: recovery.acceptsLoss };
    const why = await whyNotUnknown(sql, spending, unknown);
    if (why !== null) throw refused(why);

    const signed = await batchOf(sql, outputs);
    if (signed === 'several') throw refused('spends outputs of several batches');
    const plan = await divide(ctx, sql, { recovery, key, outputs, signed, hasUnknown: unknown.length > 0, refused });
    const lost = minus(plan.lost, outputs.length === 0 ? 0n : sum(plan.adopted.map(({ booked }) => booked)));
    const lostText = acceptedLoss(lost, recovery, refused);
    let as = 'without outputs of ours';
    if (outputs.length === 0) {
      await bookWithoutOutputs(ctx, sql, { ...spending, ...plan, accountId: key.id });
      await recordOutgoing(sql, currency, block, [{ ...facts, spends: [] }], new Set());
    } else {
      const batch = signed ?? (await newBatch(ctx, sql, { key, outputs, plan, currency }));
      if (plan.payouts.length < batch.payouts.length) throw refused(`does not pay every payout of batch ${batch.id}`);
      await book(ctx, sql, { recovery, batch, plan });
      await adopt(ctx, sql, currency, plan.adopted);
      as = `as batch ${batch.id}`;
    }
    const ids = [...plan.payouts, ...plan.adopted].map(({ id }) => id);
    const text = `booked ${as}: ${ids.length} payouts${lostText}`;
    const atMs = ctx.ports.clock.now();
    const isNamed = await isUnexplained(sql, currency, facts.inputs);
    // whoever names one that no look has found leaves the same trace
    const finding = `transaction ${facts.txid} spends outputs of ours, and was not signed here`;
    if (isNamed) await recordMovements(sql, [{ currency, txid: facts.txid, blockHash: block.hash, finding }], atMs);
    const booked = { blockHash: block.hash, spends: facts.inputs };
    if (!(await resolveMovement(sql, { currency, txid: facts.txid }, { by: recovery.by, text, atMs, booked })))
      throw refused('was not found missing (bursar audit, OUT-3)');
    return { payoutIds: ids, lost, fee: plan.fee };
  });
}

type SpentOutput = SpendableOutput & { readonly batchId: string | null };

/** The batch with signatures whose inputs it spends; null = none. Reservations without one are emptied: their transaction cannot be mined. */
async function batchOf(sql: Sql, outputs: readonly SpentOutput[]): Promise<Batch | null | 'several'> {
  const ids = [...new Set(outputs.map(({ batchId }) => batchId))].filter((id) => id !== null);
  const signed: Batch[] = [];
  for (const id of ids.sort()) {
    const batch = (await readBatch(sql, id, { lock: true })) as Batch;
    if (batch.attempts.length > 0) signed.push(batch);
    else await leaveReservation(sql, batch, outputs);
  }
  if (signed.length > 1) return 'several';
  const [only] = signed;
  if (only === undefined) return null;
  return outputs.every(({ batchId }) => batchId === only.id) ? only : 'several';
}

type Plan = {
  readonly payouts: readonly PayoutRow[];
  readonly change: { readonly vout: number; readonly index: number; readonly amount: bigint; readonly script: string } | null;
  /** Those that an operator has found paid before this was known: they are booked, and what paid them is in `lost`. */
  readonly adopted: readonly DecidedPayout[];
  /** Less than zero where outputs that this database does not know have paid for some of it. */
  readonly lost: bigint;
  /** What the payouts pay of the network fee: never more than is held for them; the rest is lost. */
  readonly fee: bigint;
};

type Dividing = {
  readonly recovery: Recovery;
  readonly key: SpendingKey;
  readonly outputs: readonly SpentOutput[];
  readonly signed: Batch | null;
  /** It spends outputs besides, of which this database knows nothing. */
  readonly hasUnknown: boolean;
  readonly refused: Refused;
};

/** Which output is whose. */
async function divide(ctx: Context, sql: Sql, { recovery, key, outputs, signed, hasUnknown, refused }: Dividing): Promise<Plan> {
  const { currency, facts } = recovery;
  const asked =
    signed === null
      ? await unsignedPayouts(sql, currency)
      : signed.payouts.map(({ id, script, amount, feeMax, reimburses }) => {
          const least = reimburses === null ? amount : minus(amount, feeMax);
          return { id, script: script.toString('hex'), amount, least, reimburses };
        });
  const left = new Set<OutputFacts>(facts.outputs);
  const ids: string[] = [];
  let paid = 0n;
  let adoptedPaid = 0n;
  let first: (typeof asked)[number] | null = null;
  for (const payout of asked) {
    const output = [...left].find((one) => paysPayout(one, payout));
    // payouts and reimbursements are never paid by one transaction
    if (output === undefined || (first !== null && (first.reimburses === null) !== (payout.reimburses === null))) continue;
    // one that has taken nothing yet may never have anything to be paid with: it waits for a person, as where something was lost
    if (payout.reimburses !== null && !(await isHeldInLedger(sql, payout.id))) continue;
    first ??= payout;
    left.delete(output);
    ids.push(payout.id);
    paid = plus(paid, output.amountMinor);
  }
  const adopted: DecidedPayout[] = [];
  // a transaction that was signed here pays the payouts of its batch and nobody else
  for (const payout of signed === null ? await decidedPayouts(sql, currency) : []) {
    const output = [...left].find((one) => paysPayout(one, payout));
    if (output === undefined) continue;
    if (payout.outcome === 'paid') {
      left.delete(output);
      adopted.push(payout);
      adoptedPaid = plus(adoptedPaid, output.amountMinor);
    } else if (first === null || first.reimburses === null) {
      left.delete(output);
      const [row] = await lockPayouts(sql, [payout.id]);
      await reopen(ctx, sql, row as PayoutRow, facts.txid, 'found_paid');
      ids.push(payout.id);
      paid = plus(paid, output.amountMinor);
    }
  }
  const locked = signed === null ? await lockUnsigned(sql, currency, ids, refused) : await lockPayouts(sql, ids);
  const payouts = ids.map((id) => locked.find((payout) => payout.id === id)).filter((payout) => payout !== undefined);
  for (const { batchId } of payouts) await takeOut(sql, batchId);
  const change = await changeOf(ctx, sql, key, [...left]);
  if (change !== null) for (const output of left) if (output.vout === change.vout) left.delete(output);
  const foreign = plus(adoptedPaid, sum([...left].map((output) => output.amountMinor)));
  const spent = sum(outputs.map(({ amount }) => amount));
  // nobody knows what the others held, and so what the fee was
  if (hasUnknown) {
    const explained = plus(sum(payouts.map(({ amount }) => amount)), change?.amount ?? 0n);
    return { payouts, adopted, change, fee: 0n, lost: minus(spent, explained) };
  }
  const whole = minus(spent, plus(plus(paid, foreign), change?.amount ?? 0n));
  const fee = feeOf(payouts, { whole, paid });
  return { payouts, adopted, change, fee, lost: plus(foreign, minus(whole, fee)) };
}

/** What payouts pay of a fee, each the same part; what reimbursements pay of it is what their customers have got less, and others have paid the rest. */
function feeOf(payouts: readonly PayoutRow[], { whole, paid }: { readonly whole: bigint; readonly paid: bigint }): bigint {
  if (payouts.length === 0) return whole;
  if (payouts.some(({ reimburses }) => reimburses !== null)) return minus(sum(payouts.map(({ amount }) => amount)), paid);
  return least(whole, payouts.map(({ feeMax }) => feeMax).reduce(least) * BigInt(payouts.length));
}

async function changeOf(ctx: Context, sql: Sql, key: SpendingKey, outputs: readonly OutputFacts[]): Promise<Plan['change']> {
  const deriver = ctx.ports.addresses.ownOf(key.currency, key.xpub);
  const known = await knownOwnScripts(
    sql,
    key.currency,
    outputs.map(({ script }) => script),
  );
  // an address of our own may have been given out after the state that was put back
  const ungiven = await ungivenOwnIndexes(sql, key.id);
  const indexes = new Map([
    ...known,
    ...ungiven.map((index) => [Buffer.from(deriver.derive(index).script).toString('hex'), index] as const),
  ]);
  for (const { vout, script, amountMinor: amount } of outputs) {
    const index = indexes.get(script);
    if (index !== undefined) return { vout, index, amount, script };
  }
  return null;
}

type Making = {
  readonly key: SpendingKey;
  readonly outputs: readonly SpentOutput[];
  readonly plan: Plan;
  readonly currency: UtxoCode;
};

async function newBatch(ctx: Context, sql: Sql, { key, outputs, plan, currency }: Making): Promise<Batch> {
  const atMs = ctx.ports.clock.now();
  const id = sortableId('batch_', atMs, ctx.ports.rng.bytes(10));
  const pending = plan.payouts.filter((payout) => payout.status === 'pending');
  await writePayoutChanges(
    sql,
    pending.map((payout) => ({ payout, from: ['pending', 'held'], event: 'outcome_unknown' })),
    atMs,
  );
  await insertBatch(sql, {
    id,
    currency,
    feeRate: 1_000n,
    accountId: key.id,
    change: plan.change === null ? null : { index: plan.change.index, script: Buffer.from(plan.change.script, 'hex') },
    inputs: outputs,
    payoutIds: plan.payouts.map((payout) => payout.id),
    atMs,
  });
  return (await readBatch(sql, id, { lock: true })) as Batch;
}

type Booking = { readonly recovery: Recovery; readonly batch: Batch; readonly plan: Plan };

/** The transaction as an attempt of its batch, in its block; what follows from that is the driver's. */
async function book(ctx: Context, sql: Sql, { recovery, batch, plan }: Booking): Promise<void> {
  const { currency, facts, raw, block } = recovery;
  const atMs = ctx.ports.clock.now();
  const script = new Map(batch.payouts.map((payout) => [payout.id, payout.script.toString('hex')]));
  // of one that a reorganisation has put this one in the place of
  const before = await bookedBeside(sql, batch.id);
  await addAttempt(
    ctx,
    sql,
    batch,
    {
      // none of the signer's own: it has forgotten it
      sequence: 0,
      request: {
        currency,
        batchId: batch.id,
        number: (batch.attempts.at(-1)?.number ?? 0) + 1,
        leaseEpoch: batch.leaseEpoch.toString(),
        inputs: [],
        outputs: batch.payouts.map(({ id, amount }) => ({
          payoutId: id,
          script: script.get(id) as string,
          amount: amount.toString(),
        })),
        change: plan.change === null ? null : { index: plan.change.index, amount: plan.change.amount.toString() },
      },
      txid: facts.txid,
      raw: Buffer.from(raw).toString('hex'),
      fee: plan.fee.toString(),
      vbytes: raw.length,
      signedAtMs: atMs,
    },
    { epoch: batch.leaseEpoch, feeRate: batch.feeRate, lost: plan.lost },
  );
  const outflow = minus(plan.payouts.length === 0 ? plus(plan.lost, plan.fee) : plan.lost, before);
  const { acceptsLoss } = recovery;
  if (outflow !== 0n)
    await postEntries(sql, [
      { entry: differenceEntry({ currency, txid: facts.txid, acceptsLoss }, outflow), transactionId: null, atMs },
    ]);
  await recordOutgoing(sql, currency, block, [{ ...facts, spends: facts.inputs }], new Set());
}
