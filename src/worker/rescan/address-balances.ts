// Compares what our addresses on Ethereum's chain hold with what is known here, after the last block of the second reading: what that reads are
// transactions, and a balance also shows what is none, or what a node without traces does not show.
import { evmAddressOf } from '../../core/currencies/evm.ts';
import { type CurrencyCode, type EvmCode, isUtxo } from '../../core/currency.ts';
import type { EvmPort } from '../../core/evm/port.ts';
import { balancesToCompare, type ComparedBalance, comparableHeight, saveBalances } from '../../store/sweeps/balances.ts';
import { type ChainContext, portOf } from '../chain/context.ts';
import { troubleOf } from '../chain/pass-result.ts';

/** Each asks the node three things. */
const MOST_COMPARED = 200;

/**
 * Does nothing while the second reading of one of the chain's currencies is behind.
 * @param currencies those that have a node
 * @returns why balances could not be read; null when they were, or when there are none
 */
export async function compareBalances(ctx: ChainContext, currencies: readonly CurrencyCode[]): Promise<string | null> {
  const codes = currencies.filter((code): code is EvmCode => !isUtxo(code));
  const height = codes.length === 0 ? null : await comparableHeight(ctx.db, codes);
  if (height === null) return null;
  try {
    for (const currency of codes) {
      const port = portOf(ctx, currency) as EvmPort;
      const compared: ComparedBalance[] = [];
      for (const { script, known } of await balancesToCompare(ctx.db, currency, { height, limit: MOST_COMPARED }))
        compared.push({ script, known, found: (await port.account(evmAddressOf(script.toString('hex')), height)).units });
      // a reorganisation meanwhile: what was known and what was read may be of different chains
      if ((await comparableHeight(ctx.db, codes)) === null) return null;
      await saveBalances(ctx.db, currency, { height, atMs: ctx.ports.clock.now() }, compared);
    }
    return null;
  } catch (error) {
    const trouble = troubleOf(error);
    if (trouble === null) throw error;
    return trouble.reason;
  }
}
