// What the comparison of our outputs with the chain looks for, and which of what it finds nobody here has signed.
import { setImmediate } from 'node:timers/promises';
import type { UtxoCode } from '../../core/currency.ts';
import type { ChainPort, Outpoint, TransactionFacts, WatchList } from '../../core/ports.ts';
import type { Context } from '../../flow/context.ts';
import { ownership } from '../../flow/payouts/unpayable.ts';
import type { SpendingKey } from '../../store/chain/xpubs.ts';
import { knownOwnScripts, ungivenOwnIndexes } from '../../store/payouts/own-outputs.ts';
import {
  believedUnspent,
  paysPayout,
  signedHere,
  UNEXPLAINED,
  type UnknownMovement,
  type UnsignedPayout,
  unsignedPayouts,
} from '../../store/payouts/unknown-movements.ts';
import { createOutpointSet, watchOnly } from '../chain/watch-list.ts';

/** Outputs that are compared, the largest first: batches spend large ones before small ones. */
const MOST_OUTPUTS = 5_000;
/** Each is derived again, which takes 0.05 ms. */
const DERIVED_AT_ONCE = 200;
const IN_MEMPOOL_AT_ONCE = 2_000;

export type Wanted = {
  readonly outputs: readonly Outpoint[];
  readonly payouts: readonly UnsignedPayout[];
  /** Scripts (hex) of our own that were not given out. */
  readonly next: ReadonlySet<string>;
  readonly watch: WatchList;
};

/** What is looked for now. */
export async function wantedOf(ctx: Context, key: SpendingKey): Promise<Wanted> {
  const { currency, xpub } = key;
  const outputs = await outputsOfKey(ctx, key);
  const payouts = await unsignedPayouts(ctx.db, currency);
  const deriver = ctx.ports.addresses.ownOf(currency, xpub);
  const ungiven = await ungivenOwnIndexes(ctx.db, key.id);
  const next = ungiven.map((index) => Buffer.from(deriver.derive(index).script));
  const scripts = [...next, ...payouts.map(({ script }) => Buffer.from(script, 'hex'))];
  return {
    outputs,
    payouts,
    next: new Set(next.map((script) => script.toString('hex'))),
    watch: { ...watchOnly(scripts), ...createOutpointSet(outputs) },
  };
}

/** The outputs whose key really is the signer's: those of an imported key are spent by whoever has it. */
async function outputsOfKey(ctx: Context, key: SpendingKey): Promise<Outpoint[]> {
  const all = await believedUnspent(ctx.db, key.currency, MOST_OUTPUTS);
  const isOurs = ownership(ctx, key);
  const outputs: Outpoint[] = [];
  for (let at = 0; at < all.length; at += DERIVED_AT_ONCE) {
    outputs.push(...all.slice(at, at + DERIVED_AT_ONCE).filter(isOurs));
    await setImmediate();
  }
  return outputs;
}

/** `blockHash` null: in no block. */
export type Found = { readonly facts: TransactionFacts; readonly blockHash: string | null };

/** What waits for a block at a node. */
export async function inMempool(port: ChainPort, watch: WatchList): Promise<readonly Found[]> {
  const listed = await port.mempool();
  const found: Found[] = [];
  for (let at = 0; at < listed.length; at += IN_MEMPOOL_AT_ONCE) {
    const { touched } = await port.readMempoolTransactions(listed.slice(at, at + IN_MEMPOOL_AT_ONCE), watch);
    found.push(...touched.map((facts) => ({ facts, blockHash: null })));
  }
  return found;
}

type Evidence = {
  readonly currency: UtxoCode;
  readonly wanted: Wanted;
  readonly spent: readonly Outpoint[];
  readonly found: readonly Found[];
};

/** What of all this nobody here has signed. Read again is what may have been written since the look began. */
export async function judge(ctx: Context, { currency, wanted, spent, found }: Evidence) {
  const ours = await signedHere(ctx.db, currency, [...new Set(found.map(({ facts }) => facts.txid))]);
  const givenOut = await knownOwnScripts(ctx.db, currency, [...wanted.next]);
  const movements: UnknownMovement[] = [];
  const payoutIds = new Set<string>();
  const explained = new Set<string>();
  for (const { facts, blockHash } of found) {
    const { txid, spends, outputs } = facts;
    for (const { txid: from, vout } of spends) explained.add(`${from}:${vout}`);
    if (ours.has(txid)) continue;
    const paid = wanted.payouts.filter((payout) => outputs.some((output) => paysPayout(output, payout)));
    for (const { id } of paid) payoutIds.add(id);
    const hasChange = outputs.some(({ script }) => wanted.next.has(script) && !givenOut.has(script));
    // whoever pays the destination of a payout himself holds up that payout only
    if (spends.length === 0 && !hasChange) continue;
    const what = spends.length > 0 ? 'spends outputs of ours' : 'pays an address of ours that was never given out';
    const pays = paid.length === 0 ? '' : ` and pays what ${paid.map(({ id }) => id).join(', ')} ask for`;
    movements.push({ currency, txid, blockHash, spends, finding: `transaction ${txid} ${what}${pays}, and was not signed here` });
  }
  const nobody = spent.filter(({ txid, vout }) => !explained.has(`${txid}:${vout}`));
  const still = new Set((await believedUnspent(ctx.db, currency, MOST_OUTPUTS)).map(({ txid, vout }) => `${txid}:${vout}`));
  for (const output of nobody.map(({ txid, vout }) => `${txid}:${vout}`).filter((output) => still.has(output)))
    movements.push({
      currency,
      txid: null,
      blockHash: null,
      finding: `output ${output} ${UNEXPLAINED}`,
    });
  return { movements, payoutIds: [...payoutIds] };
}
