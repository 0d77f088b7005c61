// An operator has a transaction on Ethereum's chain booked that our address has sent and that was not signed here: database and signer have
// forgotten it together, or its key was used elsewhere. The payout that it pays gets it as its transaction; what went to others is lost.
import { evmInput, GAS } from '../../core/currencies/evm.ts';
import type { EvmCode } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import { greatest, least, minus, mulDivUp, sum } from '../../core/money.ts';
import { evmSignEntry, leavingOnEvm } from '../../core/payouts/evm-postings.ts';
import { sweepGasEntry } from '../../core/payouts/sweeps.ts';
import type { OutputFacts } from '../../core/ports.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { leaveReservation } from '../../store/payouts/after-restore/emptied-batches.ts';
import { insertAttempt } from '../../store/payouts/attempts.ts';
import { type Batch, type BatchPayout, readBatch, setBatchState } from '../../store/payouts/batch-rows.ts';
import { batchesOfOutputs, freeInputs, insertBatch } from '../../store/payouts/batches.ts';
import { isHeldInLedger } from '../../store/payouts/booked-amounts.ts';
import { recordOutgoing } from '../../store/payouts/outgoing-facts.ts';
import { lockPayouts, type PayoutRow } from '../../store/payouts/payouts.ts';
import { writePayoutChanges } from '../../store/payouts/status-changes.ts';
import {
  type DecidedPayout,
  decidedPayouts,
  paysPayout,
  recordMovements,
  resolveMovement,
  unsignedPayouts,
} from '../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { knownAnew } from '../../store/sweeps/balances.ts';
import { isNoted } from '../../store/sweeps/forgotten-moves.ts';
import type { Context } from '../context.ts';
import {
  acceptedLoss,
  lockUnsigned,
  type Recovered,
  type RecoveryOf,
  type Refused,
  recovering,
} from '../payouts/after-restore/recover.ts';
import { reopen } from '../payouts/after-restore/restored-signatures.ts';
import { adopt, differenceEntry } from '../payouts/after-restore/unknown-outputs.ts';
import { post } from '../payouts/batch-progress.ts';
import { type Beside, bookBeside, type Fate, fateOf, fatesOf, noteArrived } from '../sweeps/sent-beside.ts';
import { feeFor, HOT_INDEX, type HotAddress, hotAddress } from './batches.ts';
import { sentBy, together } from './sent-by-address.ts';

export type EvmRecovery = RecoveryOf<EvmCode> & {
  /** Whether its block can no longer be replaced. */
  readonly isFinal: boolean;
  readonly beside: readonly Beside[];
};

/** What such a transaction has paid. `output`: what pays the payout; where none is paid, all that it has sent. */
type Paid = { readonly payout: PayoutRow | null; readonly adopted: DecidedPayout | null; readonly output: OutputFacts | null };

/**
 * Books a transaction that our address has sent, and that was not signed here.
 * @returns the payout that it pays, and what is lost
 * @throws Refusal not_resolvable, with what is missing
 */
export function recoverOnEvm(ctx: Context, recovery: EvmRecovery): Promise<Recovered> {
  const { currency, facts } = recovery;
  return recovering(ctx, recovery, async (sql, refused) => {
    const hot = await hotAddress(ctx, sql, currency);
    const [sender] = facts.inputs;
    if (hot === null || sender?.txid !== evmInput(hot.address, 0).txid)
      throw refused(`was not sent by the address that payouts in ${currency} leave from`);
    if (!recovery.isFinal) throw refused('is in no final block yet: wait for one');
    const sent = sentBy(recovery);
    if (sent === null) throw refused('did not do exactly what it asks for: look at its events');
    if (await isNoted(sql, currency, facts.txid))
      throw refused(
        'has left for another address of ours, which loses nothing: it is booked by itself once two nodes (the only one, where there is one) show that it is final, and what our address has sent before it is known',
      );
    const known = await atNonce(sql, { currency, sender, sent }, refused);
    const paid =
      known === null
        ? await whomItPays(ctx, sql, { currency, txid: facts.txid, sent, refused })
        : await ofBatch(sql, known, sent);
    const { output } = paid;
    const isPaid = paid.payout !== null || paid.adopted !== null;
    const { arrived } = await fateOf(sql, isPaid || output === null ? [] : facts.outputs);
    // what a token's contract has kept is lost as well
    const lost = isPaid ? 0n : minus(output?.amountMinor ?? 0n, sum([...arrived.values()]));
    const lostText = acceptedLoss(lost, recovery, refused);
    // what went to others beside a payout is booked beside it
    const rest = isPaid ? [{ currency, facts: { ...facts, outputs: sent.filter((one) => one !== output) } }] : [];
    const fates = await fatesOf(sql, { ...recovery, beside: [...recovery.beside, ...rest] }, refused);
    const { fee, batchId } = await write(ctx, sql, { recovery, hot, known, paid, sender, fate: { arrived, lost } });
    const besides = await bookBeside(ctx, sql, { ...recovery, batchId, script: hot.script }, fates);
    await knownAnew(sql, hot.script);
    const ids = [paid.payout?.id, paid.adopted?.id].filter((id) => id !== undefined);
    const atMs = ctx.ports.clock.now();
    const text = `booked at nonce ${sender.vout}: ${ids.join(', ') || 'no payout'}${lostText}`;
    // whoever names one that no look has found yet leaves the same trace
    const finding = `transaction ${facts.txid} was sent by our address and not signed here`;
    await recordMovements(sql, [{ currency, txid: facts.txid, blockHash: recovery.block.hash, finding }], atMs);
    await resolveMovement(sql, { currency, txid: facts.txid }, { by: recovery.by, text, atMs });
    return { payoutIds: ids, lost, fee, besides };
  });
}

type AtNonce = {
  readonly currency: EvmCode;
  readonly sender: { readonly txid: string; readonly vout: number };
  readonly sent: readonly OutputFacts[];
};

/**
 * The batch with signatures at its nonce whose payout it pays; null when there is none any more. A reservation is emptied: what the signer may have
 * signed for it can never be mined.
 */
async function atNonce(sql: Sql, { currency, sender, sent }: AtNonce, refused: Refused): Promise<Batch<EvmCode> | null> {
  for (const id of await batchesOfOutputs(sql, currency, [sender])) {
    const batch = await readBatch<EvmCode>(sql, id, { lock: true });
    if (batch === null) continue;
    if (batch.attempts.length === 0) await leaveReservation(sql, batch, [sender]);
    else if (batch.state === 'dead') await freeInputs(sql, currency, id, [sender]);
    else if (batch.payouts.some((payout) => sent.some((output) => paysPayout(output, askedOf(payout))))) return batch;
    else throw refused(`has the nonce of batch ${id}, which it has displaced: again once that has failed`);
  }
  return null;
}

/** What a payout that was signed for asks for. */
export const askedOf = ({ id, script, amount, feeMax, reimburses }: BatchPayout) => ({
  id,
  script: script.toString('hex'),
  amount,
  least: reimburses === null ? amount : minus(amount, feeMax),
  reimburses,
});

async function ofBatch(sql: Sql, { payouts }: Batch<EvmCode>, sent: readonly OutputFacts[]): Promise<Paid> {
  const [payout] = await lockPayouts(
    sql,
    payouts.map(({ id }) => id),
  );
  const output = sent.find((one) => payouts.some((asked) => paysPayout(one, askedOf(asked)))) ?? null;
  return { payout: payout ?? null, adopted: null, output };
}

type Paying = {
  readonly currency: EvmCode;
  readonly txid: string;
  readonly sent: readonly OutputFacts[];
  readonly refused: Refused;
};

/** The payout that asks for just what it has sent to somebody, the oldest first; one that a person has decided already counts too. */
async function whomItPays(ctx: Context, sql: Sql, { currency, txid, sent, refused }: Paying): Promise<Paid> {
  const paying = (payout: Parameters<typeof paysPayout>[1]): OutputFacts | null =>
    sent.find((output) => paysPayout(output, payout)) ?? null;
  const nobody = { payout: null, adopted: null, output: together(sent) };
  if (sent.length === 0) return nobody;
  for (const open of await unsignedPayouts(sql, currency)) {
    // one that has taken nothing yet may never have anything to be paid with: it waits for a person, as where something was lost
    if (paying(open) === null || (open.reimburses !== null && !(await isHeldInLedger(sql, open.id)))) continue;
    const [payout] = await lockUnsigned(sql, currency, [open.id], refused);
    return { payout: payout ?? null, adopted: null, output: paying(open) };
  }
  const asking = (await decidedPayouts(sql, currency)).filter((payout) => paying(payout) !== null);
  // what was found paid before has been paid by something
  const decided = asking.find(({ outcome }) => outcome === 'paid') ?? asking[0];
  if (decided === undefined) return nobody;
  const output = paying(decided);
  if (decided.outcome === 'paid') return { payout: null, adopted: decided, output };
  const [row] = await lockPayouts(sql, [decided.id]);
  await reopen(ctx, sql, row as PayoutRow, txid, 'found_paid');
  return { payout: (await lockPayouts(sql, [decided.id]))[0] ?? null, adopted: null, output };
}

type Writing = {
  readonly recovery: EvmRecovery;
  readonly hot: HotAddress;
  readonly known: Batch<EvmCode> | null;
  readonly paid: Paid;
  readonly sender: { readonly txid: string; readonly vout: number };
  readonly fate: Fate;
};
type Written = { readonly fee: bigint; readonly batchId: string };

/** Writes it as a transaction of a batch, in its block. What follows for a payout is the driver's; of one that pays nobody all is booked here. */
async function write(ctx: Context, sql: Sql, { recovery, hot, known, paid, sender, fate }: Writing): Promise<Written> {
  const { currency, facts, block } = recovery;
  const { payout, adopted, output } = paid;
  const gasPaid = facts.outcome?.gasPaid ?? 0n;
  const atMs = ctx.ports.clock.now();
  const fee = await feeOf(ctx, sql, { currency, payout, output, gasPaid, known });
  const price = greatest(1n, mulDivUp(gasPaid, 1n, BigInt(GAS.plain)));
  const amount = payout === null ? (output?.amountMinor ?? 0n) : leavingOnEvm({ ...payout, currency }, fee);
  const batch = known ?? (await newBatch(ctx, sql, { currency, hot, payout, sender, price, amount: greatest(1n, amount) }));
  await insertAttempt(sql, {
    batchId: batch.id,
    number: (batch.attempts.at(-1)?.number ?? 0) + 1,
    currency,
    txid: facts.txid,
    // a final block has it: it is never sent again
    raw: Buffer.alloc(0),
    fee,
    vbytes: GAS.plain,
    feeRate: price,
    maxFee: price,
    change: null,
    epoch: batch.leaseEpoch,
    // none of the signer's own: it has forgotten it
    sequence: 0,
    lost: payout === null ? (output?.amountMinor ?? 0n) : 0n,
    signedAtMs: atMs,
    shares: payout === null ? [] : [{ payoutId: payout.id, fee }],
  });
  const [booked] = batch.payouts;
  if (booked !== undefined && batch.attempts.length === 0)
    await post(ctx, sql, [{ payout: booked, entry: evmSignEntry({ ...booked, currency }, fee) }]);
  await recordOutgoing(sql, currency, block, [{ ...facts, spends: facts.inputs, outputs: [] }], new Set());
  if (payout !== null) return { fee, batchId: batch.id };
  const gone = adopted === null ? fate.lost : (output?.amountMinor ?? 0n);
  const entries = [
    ...(gone === 0n ? [] : [differenceEntry({ currency, txid: facts.txid, acceptsLoss: true }, gone)]),
    ...[sweepGasEntry(batch.id, gasPaid, new Map())].filter((entry) => entry !== null),
  ];
  await postEntries(
    sql,
    entries.map((entry) => ({ entry, transactionId: null, atMs })),
  );
  if (adopted !== null) await adopt(ctx, sql, currency, [adopted]);
  await noteArrived(ctx, sql, { ...recovery, batchId: batch.id }, fate.arrived);
  const written = await readBatch<EvmCode>(sql, batch.id, { lock: true });
  const state = output === null ? 'dead' : 'final';
  await setBatchState(sql, batch.id, { state, minedAttempt: written?.attempts.at(-1)?.id ?? null });
  return { fee, batchId: batch.id };
}

/** What its payout is charged: never more than is held for it. */
async function feeOf(
  ctx: Context,
  sql: Sql,
  of: {
    readonly currency: EvmCode;
    readonly payout: PayoutRow | null;
    readonly output: OutputFacts | null;
    readonly gasPaid: bigint;
    readonly known: Batch<EvmCode> | null;
  },
): Promise<bigint> {
  const { currency, payout, output, gasPaid, known } = of;
  if (payout === null) return 0n;
  const first = known?.attempts[0];
  if (first !== undefined) return first.fee;
  if (payout.reimburses !== null) return minus(payout.amount, output?.amountMinor ?? payout.amount);
  // without a price nothing is charged
  return least(
    payout.feeMax,
    (await feeFor(ctx, sql, currency, { ...payout, script: Buffer.from(payout.script ?? []) }, gasPaid)) ?? 0n,
  );
}

type NewBatchOf = {
  readonly currency: EvmCode;
  readonly hot: HotAddress;
  readonly payout: PayoutRow | null;
  readonly sender: { readonly txid: string; readonly vout: number };
  readonly price: bigint;
  readonly amount: bigint;
};

async function newBatch(ctx: Context, sql: Sql, of: NewBatchOf): Promise<Batch<EvmCode>> {
  const { currency, hot, payout, sender, price, amount } = of;
  const atMs = ctx.ports.clock.now();
  const id = sortableId('batch_', atMs, ctx.ports.rng.bytes(10));
  if (payout !== null) {
    const unsigned = payout.batchId === null ? null : await readBatch(sql, payout.batchId, { lock: true });
    if (unsigned !== null && unsigned.attempts.length === 0) await leaveReservation(sql, unsigned, []);
    if (payout.status === 'pending')
      await writePayoutChanges(sql, [{ payout, from: ['pending', 'held'], event: 'outcome_unknown' }], atMs);
  }
  await insertBatch(sql, {
    id,
    currency,
    feeRate: price,
    gas: { tip: price, limit: GAS.plain },
    accountId: hot.key.id,
    change: null,
    inputs: [{ ...sender, amount, script: hot.script, chain: 1, index: HOT_INDEX }],
    payoutIds: payout === null ? [] : [payout.id],
    atMs,
  });
  return (await readBatch<EvmCode>(sql, id, { lock: true })) as Batch<EvmCode>;
}
