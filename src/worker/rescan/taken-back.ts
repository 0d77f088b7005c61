// What a rescan makes of what nodes show otherwise than it is recorded, on Ethereum's chain, where what a block pays is a node's word: what none
// shows any more is taken back; what was taken back at our own addresses is brought back where they show it again. Payments that are shown again
// are found as any that was missed.
import { type CurrencyCode, ETHER, isUtxo } from '../../core/currency.ts';
import type { BlockFacts, ChainPort } from '../../core/ports.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import { asRecorded, isInnerPlace, type RecordedPlace } from '../../store/chain/inner-ether.ts';
import { withoutOwnSends } from '../../store/chain/own-senders.ts';
import { recordedAt, scriptsPaidIn } from '../../store/chain/unconfirmed-blocks.ts';
import { goneAmong } from '../../store/payouts/own-outputs.ts';
import type { ChainContext } from '../chain/context.ts';
import { notShown, scriptsOf } from '../chain/unconfirmed-blocks.ts';
import { watchOnly } from '../chain/watch-list.ts';
import { type KnownBlock, recordAgain } from './rescan.ts';

/** An output that is recorded in a block and not shown there, or was not. `amount`: in minor units. */
export type Unshown = { readonly outpoint: string; readonly height: number; readonly amount: bigint };
/** `reason`: why it may be there all the same; null: it is taken back. */
export type UnshownWhy = Unshown & { readonly reason: string | null };

/** So many of several nodes must say that something is not there. */
const ENOUGH_NODES = 2;

/**
 * Takes back what is recorded of a block and what no node shows in it any more (of several two must be asked): one had shown what never was, and
 * nothing else ends that, since the block stays.
 */
export async function takeBackUnshown(ctx: ChainContext, port: ChainPort, block: KnownBlock): Promise<readonly UnshownWhy[]> {
  const { currency } = port;
  // in Bitcoin's family the bytes of a block prove what is in it
  const names = isUtxo(currency) ? [] : await scriptsPaidIn(ctx.db, currency, block);
  if (names.length === 0) return [];
  const scripts = names.map((script) => Buffer.from(script, 'hex'));
  const facts = await (port.readByAll ?? port.readBlock)(block.hash, watchOnly(scripts));
  const recorded = await recordedAt(ctx.db, currency, { ...block, scripts });
  const reasonAt = whyDoubted(currency, recorded, facts);
  const unshown = notShown(currency, recorded, facts).map((one) => ({ ...one, reason: reasonAt(one.script) }));
  const gone = unshown.filter(({ reason }) => reason === null);
  const atMs = (await readCursor(ctx.db, currency))?.caughtUpAtMs;
  if (gone.length > 0 && atMs !== undefined) {
    const at = scriptsOf(gone);
    const insteadOf = { block: { ...block, isDenied: false, scripts: at }, gone: at, atMs };
    await recordAgain(ctx, port, block, { ...facts, insteadOf });
  }
  return unshown.map(({ txid, vout, amountMinor, reason }) => ({
    outpoint: `${txid}:${vout}`,
    height: block.height,
    amount: amountMinor,
    reason,
  }));
}

/**
 * Why what is not shown at a script may be there all the same; null: it is not. All of a script is taken back together, so ether that contracts
 * sent there must be seen too, of several nodes by two.
 */
function whyDoubted(
  currency: CurrencyCode,
  recorded: readonly RecordedPlace[],
  { unconfirmed, inner, innerSeenBy = ENOUGH_NODES }: BlockFacts,
): (script: string) => string | null {
  const blind = inner === 'unseen' ? 'the node that is read shows' : innerSeenBy < ENOUGH_NODES ? 'all nodes but one show' : null;
  const inside = new Set(recorded.filter(({ vout }) => currency === ETHER && isInnerPlace(vout)).map(({ script }) => script));
  return (script) => {
    if (unconfirmed !== undefined) return unconfirmed.reason;
    return blind === null || !inside.has(script) ? null : `${blind} neither calls nor balances of then`;
  };
}

/**
 * Records again what a block pays to our own addresses in transactions of which something was taken back there.
 * @param of `gone`: the addresses; `paid`: what the block pays, as far as its calls are shown
 */
export async function bringBackCapital(
  ctx: ChainContext,
  port: ChainPort,
  block: KnownBlock,
  { gone, paid }: { readonly gone: readonly Buffer[]; readonly paid: Iterable<Uint8Array> },
): Promise<readonly Unshown[]> {
  if (gone.length === 0) return [];
  const wanted = new Set(gone.map((script) => script.toString('hex')));
  const isPaid = [...paid].some((script) => wanted.has(Buffer.from(script).toString('hex')));
  if (!isPaid && block.facts.inner === undefined) return [];
  const { currency } = port;
  const read = await port.readBlock(block.hash, watchOnly(gone));
  const fromOthers = await withoutOwnSends(ctx.db, currency, read.touched, block);
  const { facts } = await asRecorded(ctx.db, currency, block.hash, fromOthers);
  const outputs = facts.flatMap(({ txid, outputs: all }) => all.map((output) => ({ txid, ...output })));
  const missing = await goneAmong(ctx.db, currency, outputs);
  if (missing.length === 0) return [];
  const txids = new Set(missing.map(({ txid }) => txid));
  await recordAgain(ctx, port, block, { ...read, touched: facts.filter(({ txid }) => txids.has(txid)) });
  return missing.map(({ txid, vout, amountMinor }) => ({
    outpoint: `${txid}:${vout}`,
    height: block.height,
    amount: amountMinor,
  }));
}
