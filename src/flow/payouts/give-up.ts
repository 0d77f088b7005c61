// An operator gives up a batch that spends what a reorganisation has taken out of every block, where nothing shows what became of it: its payer's
// payer has spent something elsewhere (what others spend is not followed two steps back), or it came from Dash's credit pool.
import { finalDepth } from '../../core/confirmations.ts';
import { isUtxo, type UtxoCode } from '../../core/currency.ts';
import { Refusal } from '../../core/refusal.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import { type Batch, readBatch } from '../../store/payouts/batch-rows.ts';
import { batchOfPayout, setGivenUp } from '../../store/payouts/given-up.ts';
import { wakeDriver } from '../../store/payouts/outgoing-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';

export type GivenUp = {
  readonly batchId: string;
  readonly currency: UtxoCode;
  readonly payoutIds: readonly string[];
  /** What is gone, as `txid:vout`. */
  readonly outputs: readonly string[];
  /** The block with which it fails, once two of our nodes hold it. */
  readonly decidedBy: number;
};

const refused = (message: string): Refusal => new Refusal('not_resolvable', { message });
/** What no block has, and of which nothing tells whether it can be mined. */
const unexplained = ({ inputs }: Batch) => inputs.filter((input) => input.isNowhere && input.goneHeight === null);

/**
 * The bytes that would be sent again of a payout, which the node is to refuse before it is given up.
 * @throws Refusal payout_not_found; not_resolvable where nothing that its batch spends has vanished, or the chain itself decides
 */
export async function newestToGiveUp(
  ctx: Context,
  payoutId: string,
): Promise<{ readonly currency: UtxoCode; readonly raw: Uint8Array }> {
  return ctx.db.transaction(async (sql) => {
    const batch = await lockToGiveUp(sql, payoutId);
    const newest = batch.attempts.at(-1);
    if (newest === undefined) throw refused('Nothing was signed for it: it is paid from other outputs.');
    return { currency: batch.currency, raw: newest.raw };
  });
}

/**
 * Notes an operator's word that what the batch of a payout spends can be mined no more. Its payouts fail, and are given back, when the chain has
 * stood that long without it as makes anything final; if a block has it until then, the word is void.
 * @throws Refusal as `newestToGiveUp`
 */
export async function giveUpPayout(
  ctx: Context,
  { payoutId, by, evidence }: { readonly payoutId: string; readonly by: string; readonly evidence: string },
): Promise<GivenUp> {
  return ctx.db.transaction(async (sql) => {
    const batch = await lockToGiveUp(sql, payoutId);
    const { id: batchId, currency } = batch;
    const height = (await readCursor(sql, currency))?.height ?? 0;
    const outputs = unexplained(batch);
    await setGivenUp(sql, batchId, outputs, { height, text: `${by}: ${evidence}` });
    await wakeDriver(sql);
    return {
      batchId,
      currency,
      payoutIds: batch.payouts.map(({ id }) => id),
      outputs: outputs.map(({ txid, vout }) => `${txid}:${vout}`),
      decidedBy: height + finalDepth(currency).depth - 1,
    };
  });
}

async function lockToGiveUp(sql: Sql, payoutId: string): Promise<Batch> {
  const payout = await batchOfPayout(sql, payoutId);
  if (payout === null) throw new Refusal('payout_not_found', { param: 'payout_id' });
  const batch = payout.batchId === null ? null : await readBatch(sql, payout.batchId, { lock: true });
  if (batch === null || !isUtxo(batch.currency)) throw refused('It was paid from no output of ours that could vanish.');
  if (batch.state === 'dead') throw refused(`Batch ${batch.id} has failed already.`);
  if (batch.attempts.some(({ height }) => height !== null)) throw refused('A block has its transaction.');
  if (unexplained(batch).length === 0) throw refused(whyNot(batch));
  return batch;
}

function whyNot({ id, inputs }: Batch): string {
  const gone = inputs.find(({ spentBy, goneHeight }) => spentBy !== null || goneHeight !== null);
  return gone === undefined
    ? `Nothing that batch ${id} spends has vanished: the same bytes are sent again until a block has them.`
    : `It is known what became of ${gone.txid}:${gone.vout}: batch ${id} fails by itself once that is final at two of our nodes.`;
}
