// Which coins have nodes, and where.
import { type UtxoCode, WATCHED_CODES } from '../../core/currency.ts';
import type { Config } from './table.ts';

/** The RPC URLs of the configured nodes, the preferred one first; the sandbox has its own and reads none of these. */
export function configuredNodes(config: Config): ReadonlyMap<UtxoCode, readonly string[]> {
  const given: Record<UtxoCode, readonly string[] | null> = {
    BTC: config.btcRpcUrl,
    LTC: config.ltcRpcUrl,
    BCH: config.bchRpcUrl,
    DASH: config.dashRpcUrl,
    DOGE: config.dogeRpcUrl,
  };
  return new Map(WATCHED_CODES.flatMap((currency) => (given[currency] === null ? [] : [[currency, given[currency]] as const])));
}

/** The coins that have a node. */
export function configuredCoins(config: Config): readonly UtxoCode[] {
  return config.network === 'sandbox' ? WATCHED_CODES : [...configuredNodes(config).keys()];
}
