// Transactions that a database which was put back has forgotten, as a look finds them in a block.
import { randomBytes } from 'node:crypto';
import type { TransactionFacts } from '../../../src/core/ports.ts';
import { recoverTransaction } from '../../../src/flow/payouts/after-restore/recover-utxo.ts';
import { recordUnknown } from '../../../src/flow/payouts/after-restore/unknown-movements.ts';
import { spendingKey } from '../../../src/store/chain/xpubs.ts';
import { nextOwnIndex } from '../../../src/store/payouts/own-outputs.ts';
import { batches, ctx, service } from './batch-service.ts';

export type Output = { readonly txid: string; readonly vout: number };
export const unknownOutput = (): Output => ({ txid: randomBytes(32).toString('hex'), vout: 0 });
export async function knownOutput(): Promise<Output> {
  const { rows } = await service.admin.query('select txid, vout from payments where part_key is not null and not spent limit 1');
  return rows[0];
}
/** An output of ours that no batch spends. */
export async function freeOutput(): Promise<Output> {
  const { rows } = await service.admin.query(
    'select txid, vout from payments p where part_key is not null and not spent and not exists (select from outgoing_inputs i where i.txid = p.txid) limit 1',
  );
  return rows[0];
}
/** An address of our own after the last that this database has given out; 0 = the next. */
export async function nextOwn(after = 0): Promise<string> {
  const key = (await spendingKey(ctx.db, 'BTC')) as NonNullable<Awaited<ReturnType<typeof spendingKey>>>;
  const index = (await nextOwnIndex(ctx.db, key.id)) + after;
  return Buffer.from(ctx.ports.addresses.ownOf('BTC', key.xpub).derive(index).script).toString('hex');
}
export async function scriptOf(payoutId: string): Promise<string> {
  return (await batches.row(payoutId)).script.toString('hex');
}
/** A transaction in a block that nobody here has signed, as a look finds it. */
export async function found(
  inputs: readonly Output[],
  outputs: readonly { script: string; amountMinor: bigint }[],
  payoutIds: readonly string[],
) {
  const txid = randomBytes(32).toString('hex');
  const facts: TransactionFacts = {
    txid,
    coinbase: false,
    inputs,
    spends: [],
    outputs: outputs.map((one, vout) => ({ vout, ...one })),
  };
  await service.mine(1);
  const { rows } = await service.admin.query(
    `select height, hash from blocks where currency = 'BTC' order by height desc limit 1`,
  );
  const block = rows[0] as { height: number; hash: string };
  const finding = `transaction ${txid} was not signed here`;
  await recordUnknown(ctx, 'BTC', { movements: [{ currency: 'BTC', txid, blockHash: block.hash, finding }], payoutIds });
  return {
    txid,
    recover: (acceptsLoss = true) =>
      recoverTransaction(ctx, { currency: 'BTC', block, facts, raw: new Uint8Array(100), by: 'ann', acceptsLoss }),
  };
}
