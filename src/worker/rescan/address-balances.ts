// Compares what our addresses on Ethereum's chain hold with what is known here, after the last block of the second reading: what that reads are
// transactions, and a balance also shows what is none, or what a node without traces does not show.
import type { BlockRef } from '../../core/block-ref.ts';
import { evmAddressOf } from '../../core/currencies/evm.ts';
import { type CurrencyCode, ETHER, EVM_CODES, type EvmCode } from '../../core/currency.ts';
import { type EvmPort, MOST_ADDRESSES, type SaidToHold } from '../../core/evm/port.ts';
import { isInChain } from '../../store/chain/blocks.ts';
import { evmScripts } from '../../store/chain/watched.ts';
import { lockOutputs } from '../../store/payouts/batches.ts';
import { dropChecked } from '../../store/payouts/comparisons.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import {
  balancesToCompare,
  comparableBlock,
  isMissingAtOwn,
  type KnownBalance,
  knownBalances,
  saveBalances,
} from '../../store/sweeps/balances.ts';
import { type ChainContext, portOf } from '../chain/context.ts';
import { troubleOf } from '../chain/pass-result.ts';

/** Where a node says only one at a time: each asks three things. */
const MOST_COMPARED = 200;
/** Some million addresses, the newest: 1,500 calls an hour. */
const MOST_PAGES = 250;
const REPLACED = 'the block after which they were asked for was replaced meanwhile';

/** What nodes say that an address holds. */
type Found = { readonly script: Buffer; readonly said: SaidToHold };

/**
 * Does nothing while the second reading of one of the chain's currencies is behind.
 * @param currencies those that have a node
 * @returns why balances could not be read; null when they were, or when there are none
 */
export async function compareBalances(ctx: ChainContext, currencies: readonly CurrencyCode[]): Promise<string | null> {
  // in one order, whoever asks: their locks are taken in it
  const codes = EVM_CODES.filter((code) => currencies.includes(code));
  const block = codes.length === 0 ? null : await comparableBlock(ctx.db, codes);
  if (block === null) return null;
  const save = async (port: EvmPort, currency: EvmCode, found: readonly Found[]): Promise<boolean> =>
    // asked by its height, and not by the same node each time
    (await port.hashAt(block.height)) === block.hash &&
    ctx.db.transaction((sql) => saveFound(sql, { codes, currency, block, atMs: ctx.ports.clock.now() }, found));
  try {
    for (const currency of codes) {
      const port = portOf(ctx, currency) as EvmPort;
      const limit = currency === ETHER ? MOST_ADDRESSES : MOST_COMPARED;
      const known = await balancesToCompare(ctx.db, currency, { height: block.height, limit });
      const found = (currency === ETHER ? await together(port, block, known) : null) ?? (await oneByOne(port, block, known));
      if (!(await save(port, currency, found))) return REPLACED;
      if (currency !== ETHER) continue;
      for await (const more of withMore(ctx, port, block)) if (!(await save(port, currency, more))) return REPLACED;
    }
    // whoever pays next compares what has left
    if (await isMissingAtOwn(ctx.db)) for (const currency of codes) await dropChecked(ctx.db, currency);
    return null;
  } catch (error) {
    const trouble = troubleOf(error);
    if (trouble === null) throw error;
    return trouble.reason;
  }
}

const addressOf = (script: Buffer): string => evmAddressOf(script.toString('hex'));

type At = { readonly codes: readonly EvmCode[]; readonly currency: EvmCode; readonly block: BlockRef; readonly atMs: number };

/**
 * Stores what a node has said of addresses after a block, with what is known there by now: what has left may have been booked since it was asked.
 * @returns false: the block is not of the best chain any more
 */
async function saveFound(sql: Sql, { codes, currency, block, atMs }: At, found: readonly Found[]): Promise<boolean> {
  // whoever books changes what is known of all currencies of an address
  for (const code of codes) await lockOutputs(sql, code);
  for (const code of codes) if (!(await isInChain(sql, code, block))) return false;
  const said = new Map(found.map((one) => [one.script.toString('hex'), one.said]));
  const scripts = found.map(({ script }) => script);
  const known = await knownBalances(sql, currency, { height: block.height, scripts });
  const compared = known.map((one) => ({ ...one, said: said.get(one.script.toString('hex')) as SaidToHold }));
  await saveBalances(sql, currency, { height: block.height, atMs }, compared);
  return true;
}

async function oneByOne(port: EvmPort, { height }: BlockRef, known: readonly KnownBalance[]): Promise<Found[]> {
  const found: Found[] = [];
  // any of them may be wrong: what one shows is held, and that another one does not is told
  for (const { script } of known.slice(0, MOST_COMPARED))
    found.push({ script, said: await port.unitsOf(addressOf(script), height) });
  return found;
}

/** Null where the node cannot say so many at once. */
async function together(port: EvmPort, block: BlockRef, known: readonly KnownBalance[]): Promise<Found[] | null> {
  const held = await port.etherOf(
    known.map(({ script }) => addressOf(script)),
    block,
  );
  return held === null ? null : known.map(({ script }, at) => ({ script, said: held[at] as SaidToHold }));
}

/**
 * Of the addresses of all transactions, paid or not, those that hold more ether than is known: what a contract sent there is seen in no other
 * way at a node without traces, where the watcher has not looked at that address in its block.
 */
async function* withMore(ctx: ChainContext, port: EvmPort, block: BlockRef): AsyncGenerator<readonly Found[]> {
  for (let before: string | null = null, page = 0; page < MOST_PAGES; page++) {
    const { scripts, before: next } = await evmScripts(ctx.db, { before, limit: MOST_ADDRESSES });
    const held = await port.etherOf(scripts.map(addressOf), block);
    if (held === null) return;
    const found = new Map(scripts.map((script, at) => [script.toString('hex'), held[at] as SaidToHold]));
    for (const [script, { most }] of found) if (most === 0n) found.delete(script);
    const all = [...found.keys()].map((script) => Buffer.from(script, 'hex'));
    const known = await knownBalances(ctx.db, ETHER, { height: block.height, scripts: all });
    const compared = known.map((one) => ({ ...one, said: found.get(one.script.toString('hex')) as SaidToHold }));
    yield compared.filter((one) => one.said.most > one.known);
    if (next === null) return;
    before = next;
  }
}
