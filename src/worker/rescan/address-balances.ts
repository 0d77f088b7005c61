// Compares what our addresses on Ethereum's chain hold with what is known here, after the last block of the second reading: what that reads are
// transactions, and a balance also shows what is none, or what a node without traces does not show.
import type { BlockRef } from '../../core/block-ref.ts';
import { evmAddressOf } from '../../core/currencies/evm.ts';
import { type CurrencyCode, ETHER, type EvmCode, isUtxo } from '../../core/currency.ts';
import { type EvmPort, MOST_ADDRESSES } from '../../core/evm/port.ts';
import { evmScripts } from '../../store/chain/watched.ts';
import { dropChecked } from '../../store/payouts/comparisons.ts';
import {
  balancesToCompare,
  type ComparedBalance,
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

/**
 * Does nothing while the second reading of one of the chain's currencies is behind.
 * @param currencies those that have a node
 * @returns why balances could not be read; null when they were, or when there are none
 */
export async function compareBalances(ctx: ChainContext, currencies: readonly CurrencyCode[]): Promise<string | null> {
  const codes = currencies.filter((code): code is EvmCode => !isUtxo(code));
  const block = codes.length === 0 ? null : await comparableBlock(ctx.db, codes);
  if (block === null) return null;
  /** A reorganisation meanwhile: what was known and what was read may be of different chains. */
  async function save(currency: EvmCode, compared: readonly ComparedBalance[]): Promise<boolean> {
    if ((await comparableBlock(ctx.db, codes)) === null) return false;
    const at = { height: (block as BlockRef).height, atMs: ctx.ports.clock.now() };
    await saveBalances(ctx.db, currency, at, compared);
    return true;
  }
  try {
    for (const currency of codes) {
      const port = portOf(ctx, currency) as EvmPort;
      const limit = currency === ETHER ? MOST_ADDRESSES : MOST_COMPARED;
      const known = await balancesToCompare(ctx.db, currency, { height: block.height, limit });
      const compared = (currency === ETHER ? await together(port, block, known) : null) ?? (await oneByOne(port, block, known));
      if (!(await save(currency, compared))) return null;
      if (currency !== ETHER) continue;
      for await (const more of withMore(ctx, port, block)) if (!(await save(currency, more))) return null;
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

async function oneByOne(port: EvmPort, { height }: BlockRef, known: readonly KnownBalance[]): Promise<ComparedBalance[]> {
  const compared: ComparedBalance[] = [];
  for (const one of known.slice(0, MOST_COMPARED))
    compared.push({ ...one, found: (await port.account(addressOf(one.script), height)).units });
  return compared;
}

/** Null where the node cannot say so many at once. */
async function together(port: EvmPort, block: BlockRef, known: readonly KnownBalance[]): Promise<ComparedBalance[] | null> {
  const held = await port.etherOf(
    known.map(({ script }) => addressOf(script)),
    block,
  );
  return held === null ? null : known.map((one, at) => ({ ...one, found: held[at] as bigint }));
}

/**
 * Of the addresses of all transactions, paid or not, those that hold more ether than is known: what a contract sent there is seen in no other
 * way at a node without traces, where the watcher has not looked at that address in its block.
 */
async function* withMore(ctx: ChainContext, port: EvmPort, block: BlockRef): AsyncGenerator<readonly ComparedBalance[]> {
  for (let before: string | null = null, page = 0; page < MOST_PAGES; page++) {
    const { scripts, before: next } = await evmScripts(ctx.db, { before, limit: MOST_ADDRESSES });
    const held = await port.etherOf(scripts.map(addressOf), block);
    if (held === null) return;
    const found = new Map<string, bigint>(
      scripts.flatMap((script, at) => ((held[at] as bigint) > 0n ? [[script.toString('hex'), held[at] as bigint]] : [])),
    );
    const all = [...found.keys()].map((script) => Buffer.from(script, 'hex'));
    const known = await knownBalances(ctx.db, ETHER, { height: block.height, scripts: all });
    const compared = known.map((one) => ({ ...one, found: found.get(one.script.toString('hex')) as bigint }));
    yield compared.filter((one) => one.found > one.known);
    if (next === null) return;
    before = next;
  }
}
