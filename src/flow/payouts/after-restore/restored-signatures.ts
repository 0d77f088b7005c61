// After a database was restored from a copy, it may not know of transactions that the signer has signed since. Each is written back as what it
// was, a batch with its inputs and entries, before anything new is formed: otherwise what has left would be paid a second time.
import { CURRENCY_CODES, type CurrencyCode, type EvmCode, isUtxo } from '../../../core/currency.ts';
import { formatAmount, minus, plus } from '../../../core/money.ts';
import { holdAgainEntry } from '../../../core/payouts/postings.ts';
import type { SignedTransaction } from '../../../core/signer-wire.ts';
import { listKeys, type StoredKey } from '../../../store/chain/xpubs.ts';
import { tripBreaker } from '../../../store/ledger/breakers.ts';
import { lockBalances, postEntries } from '../../../store/ledger/ledger.ts';
import { isEmptied } from '../../../store/payouts/after-restore/emptied-batches.ts';
import { dropWaiting, insertWaiting } from '../../../store/payouts/after-restore/waiting-signatures.ts';
import { isStored } from '../../../store/payouts/attempts.ts';
import { type Batch, readBatch } from '../../../store/payouts/batch-rows.ts';
import { batchesOfOutputs, freeInputs, giveUpBatch, insertBatch, lockOutputs } from '../../../store/payouts/batches.ts';
import { lockPayouts, type PayoutRow, paidFrom } from '../../../store/payouts/payouts.ts';
import { writePayoutChanges } from '../../../store/payouts/status-changes.ts';
import { movementOf, recordMovements, resolveMovement } from '../../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../../store/postgres/connect.ts';
import type { Context } from '../../context.ts';
import { addEvmAttempt } from '../../evm/progress.ts';
import { writeSweepBack } from '../../sweeps/restored-sweeps.ts';
import { addAttempt } from '../progress.ts';
import { leave, leaveWhatIsPaid, type Unstored, whyPaidHere } from './never-sent.ts';

/**
 * `waits`: nobody has stored it here, and nobody has compared outputs yet. `left`: it is never sent, because something else has paid what it pays, or may
 * have.
 */
export type Restored = 'known' | 'written_back' | 'waits' | 'left' | 'unknown_payout';
/** What is known of what has left: a worker begins, outputs were compared with the chain, or a node shows that this one has left. */
export type Compared = 'starting' | 'compared' | 'seen';

/**
 * Writes one signature back if it is not here. One that this database cannot have asked for (it does not know the payout, or knows that
 * something else has paid it) and that has left, as far as anybody can tell, stops all payouts, and is named until an operator has it booked.
 */
export function restoreSignature(ctx: Context, signed: SignedTransaction, compared: Compared = 'compared'): Promise<Restored> {
  const currency = CURRENCY_CODES.find((code) => code === signed.request.currency);
  if (currency === undefined) throw new Error(`the signer has signed a transaction of ${signed.request.currency}`);
  const { txid, sequence } = signed;
  return ctx.db.transaction(async (sql): Promise<Restored> => {
    const restored = await restore(ctx, sql, { currency, signed, compared });
    if (restored === 'waits') await insertWaiting(sql, { currency, txid }, sequence);
    else await dropWaiting(sql, { currency, txid });
    return restored;
  });
}

type Restoring = { readonly currency: CurrencyCode; readonly signed: SignedTransaction; readonly compared: Compared };

async function restore(ctx: Context, sql: Sql, { currency, signed, compared }: Restoring): Promise<Restored> {
  const { request } = signed;
  if (await isStored(sql, currency, signed.txid)) return 'known';
  await lockOutputs(sql, currency);
  const payouts = await lockPayouts(
    sql,
    request.outputs.map((output) => output.payoutId),
  );
  const known = await readBatch(sql, request.batchId, { lock: true });
  // whoever asked for it has stored it since
  if (known?.attempts.some(({ txid }) => txid === signed.txid)) return 'known';
  if (known !== null && isEmptied(known)) {
    await leave(ctx, sql, known, payouts);
    return 'left';
  }
  const movement = known === null ? await movementOf(sql, currency, signed.txid) : null;
  // an operator has had it booked, or it can be mined no more
  if (movement === 'resolved') return 'known';
  // on Ethereum's chain only one of all that have a nonce can be mined
  const isNowhere = known === null ? isUtxo(currency) && movement === null : isUnstored(known);
  if (isNowhere && isUtxo(currency) && compared === 'starting') return 'waits';
  const key = (await listKeys(sql)).find((one) => one.currency === currency && one.xpub === request.inputs[0]?.xpub);
  const unstored: Unstored = { currency, signed, payouts, key, feeRate: rateOf(signed) };
  if (isNowhere && compared === 'compared' && (await leaveWhatIsPaid(ctx, sql, unstored, known))) return 'left';
  if (request.evm?.purpose !== undefined && key !== undefined) {
    await writeSweepBack(ctx, sql, { currency: currency as EvmCode, signed, key }, known as Batch<EvmCode> | null);
    return 'written_back';
  }
  const why = await whyNot(sql, unstored, known);
  if (why !== null) {
    await recordSignature(ctx, sql, unstored, why);
    return 'unknown_payout';
  }
  const batch = known ?? (await writeBatch(ctx, sql, { ...unstored, key: key as StoredKey }));
  if (request.evm !== undefined) await addEvmAttempt(ctx, sql, batch as unknown as Batch<EvmCode>, signed);
  else await addAttempt(ctx, sql, batch, signed, { epoch: batch.leaseEpoch, feeRate: unstored.feeRate });
  // a look may have found it in a block before it was written back
  const atMs = ctx.ports.clock.now();
  if (movement === 'open')
    await resolveMovement(sql, { currency, txid: signed.txid }, { by: 'a later look', text: 'it was signed here', atMs });
  return 'written_back';
}

/** Whether a batch of payouts is here, and none of what the signer may have signed for it: no worker has sent that, unless this database is a copy. */
const isUnstored = ({ purpose, payouts, attempts }: Batch): boolean =>
  purpose === 'payout' && payouts.length > 0 && attempts.length === 0;

const rateOf = ({ fee, vbytes, request: { evm } }: SignedTransaction): bigint =>
  evm === undefined ? (BigInt(fee) * 1000n) / BigInt(vbytes) : BigInt(evm.maxFee);

/** Why a signature cannot be written back as a batch of this database's payouts; null = it can. */
async function whyNot(sql: Sql, { signed: { request }, payouts, key }: Unstored, known: Batch | null): Promise<string | null> {
  const there = new Set(payouts.map((payout) => payout.id));
  const missing = request.outputs.filter((output) => !there.has(output.payoutId)).map((output) => output.payoutId);
  if (missing.length > 0) return `for ${missing.join(', ')}, which this database does not know`;
  if (known !== null)
    return isOf(known, request) ? null : `as number ${request.number} of batch ${known.id}, which is another here`;
  if (key === undefined) return 'with a key that this database does not know';
  for (const payout of payouts) {
    const why = await whyPaidHere(sql, payout);
    if (why !== null) return why;
  }
  return null;
}

const isOf = ({ payouts, attempts }: Batch, { outputs, number }: SignedTransaction['request']): boolean =>
  payouts.length === outputs.length &&
  outputs.every(({ payoutId }) => payouts.some(({ id }) => id === payoutId)) &&
  !attempts.some((attempt) => attempt.number === number);

async function recordSignature(ctx: Context, sql: Sql, { currency, signed }: Unstored, why: string): Promise<void> {
  const { txid, request } = signed;
  const finding = `the signer has signed ${txid} ${why}`;
  const atMs = ctx.ports.clock.now();
  const spends = request.inputs.map((input) => ({ txid: input.txid, vout: input.vout }));
  await recordMovements(sql, [{ currency, txid, blockHash: null, finding, spends }], atMs);
  await tripBreaker(sql, { name: 'payouts', by: ['INV-10'], findings: [finding], atMs });
}

async function writeBatch(
  ctx: Context,
  sql: Sql,
  { currency, signed, payouts, key, feeRate }: Unstored & { readonly key: StoredKey },
) {
  const { request } = signed;
  await freePlaces(sql, currency, { payouts, inputs: request.inputs });
  const atMs = ctx.ports.clock.now();
  for (const payout of payouts) if (payout.status === 'failed') await reopen(ctx, sql, payout, signed.txid);
  // what the copy still holds for a reason has left long ago
  const released = payouts.filter((payout) => payout.status === 'pending');
  await writePayoutChanges(
    sql,
    released.map((payout) => ({ payout, from: ['pending', 'held'], event: 'hold_ended' })),
    atMs,
  );
  await insertBatch(sql, {
    id: request.batchId,
    currency,
    feeRate,
    ...(request.evm === undefined ? {} : { gas: { tip: BigInt(request.evm.tip), limit: request.evm.gas } }),
    accountId: key.id,
    change:
      request.change === null ? null : { index: request.change.index, script: ownScript(ctx, key, 1, request.change.index) },
    inputs: request.inputs.map((input) => ({
      txid: input.txid,
      vout: input.vout,
      amount: BigInt(input.amount),
      script: Buffer.from(ownScript(ctx, key, input.chain, input.index)),
      chain: input.chain,
      index: input.index,
    })),
    payoutIds: request.outputs.map((output) => output.payoutId),
    atMs,
  });
  const batch = await readBatch(sql, request.batchId, { lock: true });
  if (batch === null) throw new Error(`batch ${request.batchId} was not written`);
  return batch;
}

type Places = { readonly payouts: readonly PayoutRow[]; readonly inputs: SignedTransaction['request']['inputs'] };

/**
 * Other batches of the copy that have these payouts or outputs: one without a signature was given up since, or the signer would not have signed;
 * one with a signature was dead by then, and its outputs free again.
 */
async function freePlaces(sql: Sql, currency: CurrencyCode, { payouts, inputs }: Places): Promise<void> {
  const ids = new Set([
    ...payouts.map(({ batchId }) => batchId).filter((id) => id !== null),
    ...(await batchesOfOutputs(sql, currency, inputs)),
  ]);
  for (const id of [...ids].sort()) {
    const batch = await readBatch(sql, id, { lock: true });
    if (batch === null) continue;
    if (batch.attempts.length === 0) await giveUpBatch(sql, id, batch.leaseEpoch);
    else await freeInputs(sql, currency, id, inputs);
  }
}

/**
 * A payout that was cancelled in the copy, although a transaction for it had been signed, or that a person found unpaid and was paid: it goes on. What of its hold
 * the merchant has spent since he owes.
 */
export async function reopen(
  ctx: Context,
  sql: Sql,
  payout: PayoutRow,
  txid: string,
  event: 'signed_before_cancel' | 'found_paid' = 'signed_before_cancel',
): Promise<void> {
  const currency = paidFrom(payout);
  const atMs = ctx.ports.clock.now();
  const there = (await lockBalances(sql, payout.merchantId, [currency])).get(currency)?.available ?? 0n;
  const entry = holdAgainEntry({ ...payout, currency }, there);
  await postEntries(sql, [{ entry, transactionId: null, payoutId: payout.id, atMs }]);
  await writePayoutChanges(sql, [{ payout, from: ['failed', 'ended'], event }], atMs);
  const short = minus(plus(payout.amount, payout.feeMax), there);
  if (short <= 0n) return;
  const findings = [
    `${payout.id} had failed and is paid by ${txid}: its merchant owes ${formatAmount(short, currency)} ${currency}`,
  ];
  await tripBreaker(sql, { name: 'payouts', by: ['INV-10'], findings, atMs });
}

function ownScript(ctx: Context, key: StoredKey, chain: 0 | 1, index: number): Uint8Array {
  const { addresses } = ctx.ports;
  return (chain === 0 ? addresses.of(key.currency, key.xpub) : addresses.ownOf(key.currency, key.xpub)).derive(index).script;
}
