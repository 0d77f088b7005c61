// Finds the block that holds a transaction of ours, or one that spends the same outputs, among blocks that were read before anybody looked for it.
import { isDeepStrictEqual } from 'node:util';
import { utxoRow } from '../../../core/currency.ts';
import { minus } from '../../../core/money.ts';
import type { PayingPort, TransactionFacts } from '../../../core/ports.ts';
import type { Context } from '../../../flow/context.ts';
import { recordUnknown } from '../../../flow/payouts/after-restore/unknown-movements.ts';
import { blocksSince, hashesDown, isInChain } from '../../../store/chain/blocks.ts';
import { insertTwin } from '../../../store/payouts/attempts.ts';
import type { Batch } from '../../../store/payouts/batch-rows.ts';
import { recordOutgoing } from '../../../store/payouts/outgoing-facts.ts';
import { paysPayout } from '../../../store/payouts/unknown-movements.ts';
import type { ChainContext } from '../../chain/context.ts';
import { createOutpointSet, EVERYTHING, watchOnly } from '../../chain/watch-list.ts';

/** A block's own date may be up to two hours before the time at which it was mined. */
const EARLIER_MS = 2 * 3_600_000;

/** Reads the blocks since the batch was made once more, and records what spends its inputs and what came back as change. */
export async function searchSpends(ctx: ChainContext, port: PayingPort, batch: Batch): Promise<void> {
  const watch = { ...watchOnly(batch.changeScript === null ? [] : [batch.changeScript]), ...createOutpointSet(batch.inputs) };
  const sinceMs = Math.min(batch.createdAtMs, ...batch.attempts.map((attempt) => attempt.signedAtMs)) - EARLIER_MS;
  for (const block of await blocksSince(ctx.db, port.currency, sinceMs)) {
    const { touched } = await port.readBlock(block.hash, watch);
    if (touched.length > 0) await record(ctx, port, block, touched);
  }
}

async function record(
  ctx: ChainContext,
  { currency }: PayingPort,
  block: { readonly height: number; readonly hash: string },
  touched: readonly TransactionFacts[],
): Promise<void> {
  await ctx.db.transaction(async (sql) => {
    if (await isInChain(sql, currency, block)) await recordOutgoing(sql, currency, block, touched, new Set());
  });
}

/**
 * Whether a transaction that nobody here knows spends inputs of a batch and pays its payees: a replacement that database and signer have both
 * forgotten. It is recorded, and nothing follows for the payouts before an operator has decided: they are paid, and must not fail.
 */
export async function isForgotten(ctx: Context, port: PayingPort, batch: Batch): Promise<boolean> {
  const { currency } = port;
  const ours = new Set(batch.attempts.map(({ txid }) => txid));
  const taken = batch.inputs.find(({ spentBy }) => spentBy !== null && !ours.has(spentBy));
  if (taken === undefined || taken.spentHeight === null) return false;
  const [block] = await hashesDown(ctx.db, currency, taken.spentHeight, 1);
  if (block === undefined || (await isTwin(ctx, port, batch, { txid: taken.spentBy as string, block }))) return false;
  const watch = { ...watchOnly(batch.payouts.map(({ script }) => script)), ...createOutpointSet(batch.inputs) };
  const { touched } = await port.readBlock(block.hash, watch);
  const { outputs, spends } = touched.find(({ txid }) => txid === taken.spentBy) ?? { outputs: [], spends: [] };
  const paid = batch.payouts.filter(({ id, script, amount, feeMax, reimburses }) => {
    const least = reimburses === null ? amount : minus(amount, feeMax);
    const payout = { id, script: script.toString('hex'), amount, least, reimburses };
    return outputs.some((output) => paysPayout(output, payout));
  });
  if (paid.length === 0) return false;
  const finding = `transaction ${taken.spentBy} spends outputs of ours and pays ${paid.map(({ id }) => id).join(', ')}, and was not signed here`;
  // a reorganisation may put one of the batch's own in its place for good
  const movement = { currency, txid: taken.spentBy, blockHash: block.hash, finding, spends };
  await recordUnknown(ctx, currency, { movements: [movement], payoutIds: [] });
  return true;
}

type Mined = { readonly txid: string; readonly block: { readonly height: number; readonly hash: string } };

/**
 * Whether a transaction that has taken inputs of a batch is one of the batch's own whose signatures somebody has written in another way: without
 * segwit they are part of the txid, and whoever mines it can do that. It is recorded as a transaction of the batch.
 */
async function isTwin(ctx: Context, port: PayingPort, batch: Batch, { txid, block }: Mined): Promise<boolean> {
  const { currency } = port;
  if (utxoRow(currency).utxo.addressKind === 'p2wpkh') return false;
  const raw = (await port.minedTransactions(block.hash, new Set([txid]))).get(txid);
  const facts = raw === undefined ? null : port.readRaw(raw, EVERYTHING);
  if (raw === undefined || facts === null) return false;
  const attempt = batch.attempts.find((one) => {
    const signed = port.readRaw(one.raw, EVERYTHING);
    return signed !== null && doesTheSame(signed, facts);
  });
  if (attempt === undefined) return false;
  await ctx.db.transaction(async (sql) => {
    if (!(await isInChain(sql, currency, block))) return;
    await insertTwin(sql, attempt.id, { txid, raw: Buffer.from(raw) });
    await recordOutgoing(sql, currency, block, [{ ...facts, spends: facts.inputs }], new Set());
  });
  return true;
}

/** The same inputs and the same outputs, each in its place. */
function doesTheSame(one: TransactionFacts, other: TransactionFacts): boolean {
  const told = ({ inputs, outputs, tokenOutputs = [], unprotectedOutputs = [] }: TransactionFacts) =>
    [inputs, outputs, tokenOutputs, unprotectedOutputs] as const;
  return isDeepStrictEqual(told(one), told(other));
}
