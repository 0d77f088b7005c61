// Which currencies have nodes, and their URLs.
import { type UtxoCode, WATCHED_CODES } from '../../core/currency.ts';
import { type Config, nodeUrlName } from './table.ts';

/** The RPC URLs of the configured nodes, the preferred one first; the sandbox uses its own nodes instead. */
export function configuredNodes(config: Config): ReadonlyMap<UtxoCode, readonly string[]> {
  return new Map(
    WATCHED_CODES.flatMap((currency) => {
      const urls = config[nodeUrlName(currency)];
      return urls === null ? [] : [[currency, urls] as const];
    }),
  );
}

/** The currencies that have a node. */
export function configuredCurrencies(config: Config): readonly UtxoCode[] {
  return config.network === 'sandbox' ? WATCHED_CODES : [...configuredNodes(config).keys()];
}
