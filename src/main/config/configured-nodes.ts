// Which currencies have nodes, their URLs, and the contract of the token.
import { CURRENCIES, CURRENCY_CODES, type CurrencyCode, chainNetwork, EVM_CODES, evmRow } from '../../core/currency.ts';
import { checksummed } from '../../outside/evm/address.ts';
import { type Config, nodeUrlName } from './variables.ts';

/** The RPC URLs of the configured nodes, the preferred one first; the sandbox uses its own nodes instead. */
export function configuredNodes(config: Config): ReadonlyMap<CurrencyCode, readonly string[]> {
  return new Map(
    CURRENCY_CODES.flatMap((currency) => {
      const urls = config[nodeUrlName(currency)];
      const isUnknown = CURRENCIES[currency].evm?.token && tokenContract(config) === null;
      return urls === null || isUnknown ? [] : [[currency, urls] as const];
    }),
  );
}

/** The currencies that have a node. */
export function configuredCurrencies(config: Config): readonly CurrencyCode[] {
  return config.network === 'sandbox' ? CURRENCY_CODES : [...configuredNodes(config).keys()];
}

/** The contract of the token on mainnet, lower case: no other is the token there. */
export function pinnedContract(): string | null {
  return EVM_CODES.map((code) => evmRow(code).evm.token).find((one) => one !== null)?.contract.mainnet ?? null;
}

/** The contract of the token with its checksum: the configured one, or that of mainnet and the sandbox; null where there is none. */
export function tokenContract({ network, tokenContract: configured }: Config): string | null {
  const token = EVM_CODES.map((code) => evmRow(code).evm.token).find((one) => one !== null);
  const usual = network === 'regtest' ? null : token?.contract[chainNetwork(network)];
  const contract = network === 'sandbox' ? usual : (configured ?? usual);
  return contract === null || contract === undefined ? null : checksummed(contract);
}

/** That contract as nodes write addresses, in lower case. */
export function tokenContractAtNodes(config: Config): string | null {
  return tokenContract(config)?.toLowerCase() ?? null;
}
