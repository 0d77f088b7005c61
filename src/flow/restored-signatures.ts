// After a database was restored from a copy, it may not know of transactions that the signer has signed since. Each is written back as what it
// was, a batch with its inputs and entries, before anything new is formed: otherwise what has left would be paid a second time.
import { type UtxoCode, WATCHED_CODES } from '../core/currency.ts';
import type { SignedTransaction } from '../core/signer-wire.ts';
import { listKeys, type StoredKey } from '../store/chain/xpubs.ts';
import { tripBreaker } from '../store/ledger/breakers.ts';
import { isStored } from '../store/payouts/attempts.ts';
import { readBatch } from '../store/payouts/batch-rows.ts';
import { insertBatch, lockCoins } from '../store/payouts/batches.ts';
import { type PayoutChange, writePayoutChanges } from '../store/payouts/payout-changes.ts';
import { lockPayouts, type PayoutRow } from '../store/payouts/payouts.ts';
import type { Sql } from '../store/postgres/connect.ts';
import type { Context } from './context.ts';
import { addAttempt } from './payout-progress.ts';

export type Restored = 'known' | 'written_back' | 'unknown_payout';

/** Writes one signature back if it is not here. One for a payout that this database never knew stops all payouts: money has left that nobody here asked for. */
export function restoreSignature(ctx: Context, signed: SignedTransaction): Promise<Restored> {
  const { request } = signed;
  const currency = WATCHED_CODES.find((code) => code === request.currency);
  if (currency === undefined) throw new Error(`the signer has signed a transaction of ${request.currency}`);
  return ctx.db.transaction(async (sql): Promise<Restored> => {
    if (await isStored(sql, currency, signed.txid)) return 'known';
    await lockCoins(sql, currency);
    const payouts = await lockPayouts(
      sql,
      request.outputs.map((output) => output.payoutId),
    );
    if (payouts.length < request.outputs.length) {
      const there = new Set(payouts.map((payout) => payout.id));
      const missing = request.outputs.filter((output) => !there.has(output.payoutId)).map((output) => output.payoutId);
      await tripBreaker(sql, {
        name: 'payouts',
        by: ['INV-10'],
        findings: [`the signer has signed ${signed.txid} for ${missing.join(', ')}, which this database does not know`],
        atMs: ctx.ports.clock.now(),
      });
      return 'unknown_payout';
    }
    const batch =
      (await readBatch(sql, request.batchId, { lock: true })) ?? (await writeBatch(ctx, sql, { currency, signed, payouts }));
    await addAttempt(ctx, sql, batch, signed, { epoch: batch.leaseEpoch, feeRate: rateOf(signed) });
    return 'written_back';
  });
}

const rateOf = ({ fee, vbytes }: SignedTransaction): bigint => (BigInt(fee) * 1000n) / BigInt(vbytes);

type Lost = { readonly currency: UtxoCode; readonly signed: SignedTransaction; readonly payouts: readonly PayoutRow[] };

async function writeBatch(ctx: Context, sql: Sql, { currency, signed, payouts }: Lost) {
  const { request } = signed;
  const keys = await listKeys(sql);
  const key = keys.find((one) => one.currency === currency && one.xpub === request.inputs[0]?.xpub);
  if (key === undefined) throw new Error(`${signed.txid} spends coins of an account key that this database does not know`);
  const atMs = ctx.ports.clock.now();
  // what the copy still holds for a reason has left long ago
  const released = payouts.filter((payout) => payout.status === 'pending');
  const changes = released.map((payout): PayoutChange => ({ payout, from: ['pending', 'held'], event: 'hold_ended' }));
  await writePayoutChanges(sql, changes, atMs);
  await insertBatch(sql, {
    id: request.batchId,
    currency,
    feeRate: rateOf(signed),
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

function ownScript(ctx: Context, key: StoredKey, chain: 0 | 1, index: number): Uint8Array {
  const { addresses } = ctx.ports;
  return (chain === 0 ? addresses.of(key.currency, key.xpub) : addresses.ownOf(key.currency, key.xpub)).derive(index).script;
}
