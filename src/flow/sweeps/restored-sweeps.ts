// A sweep, or ether for the gas of one, that the signer has signed and a restored database does not know: it is written back as the batch that it
// was. It pays nobody, so nothing about payouts can speak against it.
import type { EvmCode } from '../../core/currency.ts';
import type { SignedTransaction } from '../../core/signer-wire.ts';
import type { StoredKey } from '../../store/chain/xpubs.ts';
import { type Batch, readBatch } from '../../store/payouts/batch-rows.ts';
import { batchesOfOutputs, freeInputs, giveUpBatch, insertBatch } from '../../store/payouts/batches.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { noteSwept } from '../../store/sweeps/addresses.ts';
import type { Context } from '../context.ts';
import { addEvmAttempt } from '../evm/progress.ts';

type LostSweep = { readonly currency: EvmCode; readonly signed: SignedTransaction; readonly key: StoredKey };

/** @param known its batch, which is locked; null where the database has none */
export async function writeSweepBack(
  ctx: Context,
  sql: Sql,
  { currency, signed, key }: LostSweep,
  known: Batch<EvmCode> | null,
): Promise<void> {
  const batch = known ?? (await writeBatch(ctx, sql, { currency, signed, key }));
  await addEvmAttempt(ctx, sql, batch, signed);
  const [input] = batch.inputs;
  if (batch.purpose === 'sweep' && input !== undefined) await noteSwept(sql, currency, input.script);
}

async function writeBatch(ctx: Context, sql: Sql, { currency, signed, key }: LostSweep): Promise<Batch<EvmCode>> {
  const { batchId, inputs, outputs, evm } = signed.request;
  const [input] = inputs;
  const [output] = outputs;
  if (input === undefined || output === undefined || evm?.purpose === undefined)
    throw new Error(`signature ${signed.sequence} is no sweep`);
  // whatever else the copy has at this nonce was given up, or was dead, when this was signed
  for (const id of await batchesOfOutputs(sql, currency, inputs)) {
    const other = await readBatch(sql, id, { lock: true });
    if (other === null) continue;
    if (other.attempts.length === 0) await giveUpBatch(sql, id, other.leaseEpoch);
    else await freeInputs(sql, currency, id, inputs);
  }
  const { addresses } = ctx.ports;
  const deriver = input.chain === 0 ? addresses.of(currency, key.xpub) : addresses.ownOf(currency, key.xpub);
  await insertBatch(sql, {
    id: batchId,
    currency,
    feeRate: BigInt(evm.maxFee),
    gas: { tip: BigInt(evm.tip), limit: evm.gas },
    sweep: { purpose: evm.purpose, target: Buffer.from(output.script, 'hex') },
    accountId: key.id,
    change: null,
    inputs: [
      {
        txid: input.txid,
        vout: input.vout,
        amount: BigInt(input.amount),
        script: Buffer.from(deriver.derive(input.index).script),
        chain: input.chain,
        index: input.index,
      },
    ],
    payoutIds: [],
    atMs: ctx.ports.clock.now(),
  });
  const batch = await readBatch<EvmCode>(sql, batchId, { lock: true });
  if (batch === null) throw new Error(`batch ${batchId} was not written`);
  return batch;
}
