// Batches of payouts without a signer or a node: formed, leased, signed with bytes of the test's own, and mined in the simulated chain.
import { randomBytes } from 'node:crypto';
import type { SignedTransaction } from '../../src/core/signer-wire.ts';
import { formBatch, priced, signingRequest } from '../../src/flow/payouts/batches.ts';
import { requestPayout } from '../../src/flow/payouts/bitcoin-request.ts';
import { storeSigned } from '../../src/flow/payouts/progress.ts';
import { type Batch, leaseBatch, readBatch } from '../../src/store/payouts/batch-rows.ts';
import { OUTSIDE } from './funded.ts';
import type { ServiceOnDatabase } from './service-on-database.ts';

export const RATE = 1_000n;

export function batchesOf(service: ServiceOnDatabase) {
  const { ctx } = service;
  let signatures = 0;

  /** A customer pays the shop: final outputs that can be spent, 1,000,000 satoshi each unless told otherwise. */
  async function earn(times = 1, minor = 1_000_000n): Promise<void> {
    for (let n = 0; n < times; n++) {
      const { transactionId } = await service.create(minor / 10n);
      await service.pay(transactionId, minor);
    }
    await service.mine(6);
    await service.judge();
  }

  const request = async (amount = '0.002', merchantId = service.merchantId): Promise<string> =>
    (await requestPayout(ctx, { merchantId, amount, destination: OUTSIDE })).id;

  async function leased(id: string): Promise<Batch> {
    await service.admin.query(`update outgoing_batches set due_at = '-infinity', lease_until = null where id = $1`, [id]);
    const nowMs = ctx.ports.clock.now();
    const found = await leaseBatch(ctx.db, { owner: 'test', currency: 'BTC', nowMs, untilMs: nowMs + 1_000, not: [] });
    if (found !== id) throw new Error(`batch ${found} was leased instead of ${id}`);
    return (await readBatch(ctx.db, id, { lock: false })) as Batch;
  }

  async function formed(rate = RATE): Promise<Batch> {
    const outcome = await formBatch(ctx, 'BTC', rate);
    if (outcome.outcome !== 'formed') throw new Error(outcome.outcome);
    return leased(outcome.batchId);
  }

  /** What the signer would answer. */
  function signedOf(batch: Batch, number = 1, rate = RATE): SignedTransaction {
    const selection = priced(batch, rate);
    if (selection === null) throw new Error('it cannot be paid at this rate');
    signatures += 1;
    return {
      sequence: signatures,
      request: signingRequest(batch, number, selection),
      txid: randomBytes(32).toString('hex'),
      raw: '00',
      fee: selection.fee.toString(),
      vbytes: selection.vbytes,
      signedAtMs: ctx.ports.clock.now(),
    };
  }

  async function signed(batch: Batch, number = 1, rate = RATE): Promise<SignedTransaction> {
    const transaction = signedOf(batch, number, rate);
    if (!(await storeSigned(ctx, transaction, { epoch: batch.leaseEpoch, feeRate: rate }))) throw new Error('it was not stored');
    return transaction;
  }

  /** A block holds this transaction: its inputs are spent, its change is ours. */
  async function mined(batch: Batch, { txid, request: { change, outputs } }: SignedTransaction, blocks = 1): Promise<void> {
    const script = batch.changeScript?.toString('hex') ?? '';
    const back = change === null ? [] : [{ vout: outputs.length, script, amountMinor: BigInt(change.amount) }];
    service.spend(txid, batch.inputs, back);
    await service.mine(blocks);
  }

  return {
    earn,
    request,
    leased,
    formed,
    signedOf,
    signed,
    mined,
    row: async (id: string) => (await service.admin.query('select * from payouts where id = $1', [id])).rows[0],
    held: () => service.balance(`merchant:${service.merchantId}:held:BTC`),
    /** The database is put back to before anything was batched: payouts, holds and outputs are as they were. */
    async forgetBatches(): Promise<void> {
      await service.admin.query(`
        set session_replication_role = replica;
        delete from outgoing_shares; delete from outgoing_attempts; delete from outgoing_inputs; delete from own_addresses;
        update payouts set step = 'queued', batch_id = null; delete from outgoing_batches; update payments set spent = false;
        delete from ledger.posting where entry_id in (select id from ledger.entry where kind = 'payout_signed');
        delete from ledger.unrolled where entry_id in (select id from ledger.entry where kind = 'payout_signed');
        delete from ledger.entry where kind = 'payout_signed';
        set session_replication_role = origin`);
    },
  };
}
