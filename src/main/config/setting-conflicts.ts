// Settings that contradict each other and so end a start, and settings that have no effect.
import { TOKEN } from '../../core/currency.ts';
import { checksummed } from '../../outside/evm/address.ts';
import { RATE_SOURCES, type RateSourceName } from '../../outside/rates/sources.ts';
import { configuredNodes, pinnedContract } from './configured-nodes.ts';
import { type Config, TABLE } from './variables.ts';

const LEAST_SOURCES = 3;

/**
 * One line for each impossible combination. On networks whose currencies are worth money a price comes from three or more live exchanges,
 * never from a setting.
 */
export function contradictions(config: Config): string[] {
  const { network, rateSources, fixedRates } = config;
  const found: string[] = [];
  if (fixedRates !== null && (network === 'mainnet' || network === 'sandbox')) {
    const instead =
      network === 'mainnet' ? 'on mainnet a price comes from live exchanges' : 'in the sandbox POST /sandbox/rates sets prices';
    found.push(`BURSAR_FIXED_RATES is accepted on regtest and testnet only: ${instead}`);
  } else if (fixedRates !== null && rateSources !== null) {
    found.push('BURSAR_FIXED_RATES and BURSAR_RATE_SOURCES are both set: set one of them');
  }
  if (network === 'mainnet' && rateSources !== null) {
    const sources = Object.entries(rateSources) as [RateSourceName, string][];
    for (const code of configuredNodes(config).keys()) {
      const trading = sources.filter(([name]) => RATE_SOURCES[name].trades.includes(code));
      if (trading.length >= LEAST_SOURCES) continue;
      const accepted = `accepted on mainnet are ${LEAST_SOURCES} or more for each currency`;
      found.push(`BURSAR_RATE_SOURCES: ${code} is traded by ${trading.length} of them only; ${accepted}`);
    }
    for (const [name, url] of sources.filter(([, one]) => !isSafe(new URL(one))))
      found.push(`BURSAR_RATE_SOURCES: ${name}=${url} is not accepted on mainnet; accepted is https, or http on this machine`);
  }
  const bank = { BURSAR_BANK_DIR: config.bankFolder, BURSAR_BANK_ORIGIN: config.bankOrigin, BURSAR_BANK_KEY: config.bankKey };
  const missing = Object.entries(bank).filter(([, value]) => value === null);
  if (network !== 'sandbox' && missing.length > 0 && missing.length < 3)
    found.push(
      `${missing.map(([name]) => name).join(' and ')} must be set too: a bank needs all of ${Object.keys(bank).join(', ')}`,
    );
  const pinned = network === 'mainnet' ? pinnedContract() : null;
  if (pinned !== null && config.tokenContract !== null && config.tokenContract.toLowerCase() !== pinned)
    found.push(`BURSAR_${TOKEN}_CONTRACT is not accepted on mainnet; accepted is ${checksummed(pinned)}, or nothing`);
  if (network !== 'sandbox' && (config.lndUrl === null) !== (config.lndMacaroon === null))
    found.push('BURSAR_LND_URL and BURSAR_LND_MACAROON go together: set both, or none for a server without Lightning');
  if (network === 'mainnet' && config.lndUrl !== null && !isSafe(new URL(config.lndUrl)))
    found.push('BURSAR_LND_URL is not accepted on mainnet; accepted is https, or http on this machine');
  return found;
}

const isSafe = ({ protocol, hostname }: URL): boolean =>
  protocol === 'https:' || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);

/** One line for each variable that is set and that nothing reads yet. @param place where it was set, as the end of a message */
export function unreadSettings(isSet: (name: string) => boolean, place: (name: string) => string): string[] {
  return TABLE.flatMap(({ name, unused, secret }) =>
    (secret ? [name, `${name}_FILE`] : [name])
      .filter((one) => unused !== null && isSet(one))
      .map((one) => `${one} is set, and nothing reads it: ${unused}; remove it${place(one)}`),
  );
}

/** One line for each variable that is set and has no effect on this network. */
export function unusedSettings(isSet: (name: string) => boolean, { network, rateSources }: Config): string[] {
  const lines: string[] = [];
  if (network === 'sandbox' && rateSources !== null)
    lines.push('BURSAR_RATE_SOURCES is set and not used: the sandbox has exchanges of its own');
  if (network === 'sandbox')
    for (const name of ['BURSAR_BANK_DIR', 'BURSAR_BANK_ORIGIN', 'BURSAR_BANK_KEY'])
      if (isSet(name)) lines.push(`${name} is set and not used: the sandbox has a bank of its own`);
  if (network === 'sandbox')
    for (const name of ['URL', 'CERT', 'MACAROON', 'MACAROON_FILE', 'PAY_MACAROON', 'PAY_MACAROON_FILE'].map(
      (end) => `BURSAR_LND_${end}`,
    ))
      if (isSet(name)) lines.push(`${name} is set and not used: the sandbox has a Lightning node of its own`);
  return lines;
}
