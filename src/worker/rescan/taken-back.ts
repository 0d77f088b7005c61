// What a rescan makes of what nodes show otherwise than it is recorded, on Ethereum's chain, where what a block pays is a node's word: what none
// shows any more is taken back; what was taken back at our own addresses is brought back where they show it again. Payments that are shown again
// are found as any that was missed.
import type { BlockRef } from '../../core/block-ref.ts';
import { evmAddressOf } from '../../core/currencies/evm.ts';
import { type CurrencyCode, ETHER, EVM_CODES, type EvmCode, isUtxo } from '../../core/currency.ts';
import type { EvmPort } from '../../core/evm/port.ts';
import { least, minus, sum } from '../../core/money.ts';
import type { BlockFacts, ChainPort } from '../../core/ports.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import { asRecorded, isInnerPlace, type RecordedPlace } from '../../store/chain/inner-ether.ts';
import { withoutOwnSends } from '../../store/chain/own-senders.ts';
import { recordedAt, scriptsPaidIn } from '../../store/chain/unconfirmed-blocks.ts';
import { lockOutputs } from '../../store/payouts/batches.ts';
import { goneAmong, goneOwnScripts, unrecordedAmong } from '../../store/payouts/own-outputs.ts';
import { comparableBlock, knownBalances, type MoreAtOwn, moreAtOwn, ownKnownAnew } from '../../store/sweeps/balances.ts';
import { type ChainContext, portOf } from '../chain/context.ts';
import { troubleOf } from '../chain/pass-result.ts';
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

/** Where capital is looked for: addresses of our own at which something was taken back, and those that hold more than is known. */
export type CapitalSought = { readonly gone: readonly Buffer[]; readonly more: MoreAtOwn[] };
/** An address of our own that holds more than is known, where none of it is looked for, and why. */
export type NotSought = { readonly address: string; readonly reason: string };

/** What is known at our own addresses on Ethereum's chain counts as a rescan has left it, and not as it was when they were compared. */
export async function knowOwnAnew(ctx: ChainContext, currency: CurrencyCode): Promise<void> {
  if (isUtxo(currency)) return;
  await ctx.db.transaction(async (sql) => {
    // whoever books changes what is known of all currencies of an address
    for (const code of EVM_CODES) await lockOutputs(sql, code);
    await ownKnownAnew(sql, currency);
  });
}

/** Where a rescan of a chain looks for capital. */
export async function soughtCapital(
  ctx: ChainContext,
  currency: CurrencyCode,
): Promise<CapitalSought & { readonly notSought: readonly NotSought[] }> {
  if (isUtxo(currency)) return { gone: [], more: [], notSought: [] };
  // another rescan may have found some since
  await knowOwnAnew(ctx, currency);
  const gone = await goneOwnScripts(ctx.db, currency);
  const codes = EVM_CODES.filter((code) => ctx.ports.chains.has(code));
  const block = await comparableBlock(ctx.db, codes);
  if (block === null) return { gone, more: [], notSought: [] };
  const said = await Promise.all((await moreAtOwn(ctx.db, currency)).map((one) => saidByAll(ctx, currency, one, block)));
  return {
    gone,
    more: said.flatMap((one) => ('reason' in one || one.amount <= 0n ? [] : [one])),
    notSought: said.flatMap((one) => ('reason' in one ? [one] : [])),
  };
}

/**
 * No more than each node says that the address holds after this block beyond what is known: when addresses are compared, the most that one says counts, and
 * that one may be wrong. Nothing, where they cannot be asked.
 */
async function saidByAll(
  ctx: ChainContext,
  currency: CurrencyCode,
  one: MoreAtOwn,
  { height }: BlockRef,
): Promise<MoreAtOwn | NotSought> {
  const [now] = await knownBalances(ctx.db, currency as EvmCode, { height, scripts: [one.script] });
  const address = evmAddressOf(one.script.toString('hex'));
  if (now === undefined) return { address, reason: 'it has sent something that has not ended yet, or is not booked' };
  const held = await heldOrTrouble(() => (portOf(ctx, currency) as EvmPort).leastUnits(address, height));
  if (typeof held !== 'bigint') return { address, reason: held.reason };
  return { ...one, amount: least(one.amount, held - (now.known - one.writtenOff) - one.gone) };
}

async function heldOrTrouble(asked: () => Promise<bigint>): Promise<bigint | { readonly reason: string }> {
  try {
    return await asked();
  } catch (error) {
    const trouble = troubleOf(error);
    if (trouble === null) throw error;
    return { reason: trouble.reason ?? trouble.state };
  }
}

/**
 * Records what a block pays to our own addresses in transactions of which something was taken back there, and what a node had not shown as far as the
 * address holds more than is known: what it had before this database began has long been spent.
 * @param paid what the block pays, as far as its calls are shown
 */
export async function bringBackCapital(
  ctx: ChainContext,
  port: ChainPort,
  block: KnownBlock,
  { gone, more, paid }: CapitalSought & { readonly paid: Iterable<Uint8Array> },
): Promise<readonly Unshown[]> {
  const scripts = [...gone, ...more.map(({ script }) => script)];
  if (scripts.length === 0) return [];
  const wanted = new Set(scripts.map((script) => script.toString('hex')));
  const isPaid = [...paid].some((script) => wanted.has(Buffer.from(script).toString('hex')));
  if (!isPaid && block.facts.inner === undefined) return [];
  const { currency } = port;
  const read = await port.readBlock(block.hash, watchOnly(scripts));
  const fromOthers = await withoutOwnSends(ctx.db, currency, read.touched, block);
  const { facts } = await asRecorded(ctx.db, currency, block.hash, fromOthers);
  const outputs = facts.flatMap(({ txid, outputs: all }) => all.map((output) => ({ txid, ...output })));
  const back = await goneAmong(ctx.db, currency, outputs);
  const { held, left } = heldThere(block, await unrecordedAmong(ctx.db, currency, outputs), { back, more });
  const missing = [...back, ...held];
  if (missing.length === 0) return [];
  const txids = new Set(missing.map(({ txid }) => txid));
  await recordAgain(ctx, port, block, { ...read, touched: facts.filter(({ txid }) => txids.has(txid)) });
  more.splice(0, more.length, ...left);
  return missing.map(({ txid, vout, amountMinor }) => ({
    outpoint: `${txid}:${vout}`,
    height: block.height,
    amount: amountMinor,
  }));
}

type Output = { readonly txid: string; readonly script: string; readonly amountMinor: bigint };

/**
 * Which of these outputs their addresses hold: of a transaction all or none, since they are recorded together. `left`: how much more they hold than is
 * known with these.
 */
function heldThere<T extends Output>(
  { height }: KnownBlock,
  unrecorded: readonly T[],
  { back, more }: { readonly back: readonly Output[]; readonly more: readonly MoreAtOwn[] },
): { readonly held: readonly T[]; readonly left: readonly MoreAtOwn[] } {
  const isBack = new Set(back.map(({ txid }) => txid));
  const held: T[] = [];
  let left = more;
  for (const [txid, all] of Map.groupBy(unrecorded, (one) => one.txid)) {
    const isHeld = all.every(({ script }) => more.some((one) => one.script.toString('hex') === script && one.height >= height));
    const then = left.map((one) => ({ ...one, amount: minus(one.amount, paidAt(all, one.script.toString('hex'))) }));
    if (isBack.has(txid) || !isHeld || then.some(({ amount }) => amount < 0n)) continue;
    left = then;
    held.push(...all);
  }
  return { held, left };
}
const paidAt = (all: readonly Output[], script: string): bigint =>
  sum(all.filter((one) => one.script === script).map(({ amountMinor }) => amountMinor));
