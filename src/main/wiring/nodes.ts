// The nodes and price sources, for processes that ask them: the worker, and the commands that read a chain. Separate from wire.ts, so that
// the others do not load the clients.
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import type { Clock, Ports } from '../../core/ports.ts';
import type { RateFeed } from '../../core/rate-feed.ts';
import type { Context } from '../../flow/context.ts';
import { fixedFeed, rateFeeds } from '../../outside/rates/feeds.ts';
import { RATE_SOURCES, type RateSourceName } from '../../outside/rates/sources.ts';
import { createChainNodes } from '../../outside/utxo/by-currency.ts';
import { configuredNodes, tokenContractAtNodes } from '../config/configured-nodes.ts';
import type { Config } from '../config/variables.ts';
import { type SandboxEndpoint, sandboxEndpoint, sandboxNodeUrl, sandboxRateUrl } from '../sandbox/paths.ts';
import { type Wired, type WireOptions, wireBooks } from './wire.ts';

/** How long to wait for a sandbox that is being created. */
type NodeOptions = WireOptions & { readonly sandboxWithinMs?: number };

/** The whole context. `config.databaseUrl` must be given; in the sandbox, waits until its nodes' address is known. */
export async function wire(config: Config, { sandboxWithinMs, ...options }: NodeOptions): Promise<Wired<Context>> {
  const sandbox = await endpointOf(config, sandboxWithinMs);
  const books = wireBooks(config, options);
  const { clock } = books.ctx.ports;
  const nodes = createChainNodes({
    network: config.network,
    clock,
    urls: nodeUrls(config, sandbox),
    tokenContract: tokenContractAtNodes(config),
    headUrls: headUrls(config),
  });
  const ports = { ...books.ctx.ports, chains: nodes.chains, rateFeeds: pricing(config, clock, sandbox) };
  return {
    ctx: { ...books.ctx, ports },
    async close() {
      await nodes.close();
      await books.close();
    },
  };
}

/** The nodes of this configuration and nothing else; in the sandbox only while it runs. */
export async function openNodes(config: Config, clock: Clock): Promise<Pick<Ports, 'chains'> & { close(): Promise<void> }> {
  const urls = nodeUrls(config, await endpointOf(config, 0));
  return createChainNodes({ network: config.network, clock, urls, tokenContract: tokenContractAtNodes(config) });
}

/** The price sources of this configuration; in the sandbox, waits until its exchanges' address is known. */
export async function priceSources(config: Config, clock: Clock): Promise<readonly RateFeed[]> {
  return pricing(config, clock, await endpointOf(config));
}

async function endpointOf(config: Config, withinMs?: number): Promise<SandboxEndpoint | null> {
  return config.network === 'sandbox' ? sandboxEndpoint(config.dataFolder, withinMs) : null;
}

function nodeUrls(config: Config, sandbox: SandboxEndpoint | null): ReadonlyMap<CurrencyCode, readonly string[]> {
  if (sandbox !== null) return new Map(CURRENCY_CODES.map((currency) => [currency, [sandboxNodeUrl(sandbox, currency)]]));
  return configuredNodes(config);
}

/** Where Ethereum's nodes announce blocks; the sandbox's own chain is polled. */
function headUrls({ network, ethWsUrl }: Config): readonly string[] {
  return network === 'sandbox' ? [] : (ethWsUrl ?? []);
}

/** In the sandbox its own exchanges, otherwise the configured ones, or prices that the operator has fixed. */
export function pricing({ rateSources, fixedRates }: Config, clock: Clock, sandbox: SandboxEndpoint | null): readonly RateFeed[] {
  const names = Object.keys(RATE_SOURCES) as RateSourceName[];
  const at = (url: (name: RateSourceName) => string) => Object.fromEntries(names.map((name) => [name, url(name)]));
  if (sandbox !== null) return rateFeeds({ clock, urls: at((name) => sandboxRateUrl(sandbox, name)), tradesAll: true });
  if (fixedRates !== null) return [fixedFeed(clock, fixedRates)];
  return rateFeeds({ clock, urls: rateSources ?? at((name) => RATE_SOURCES[name].url) });
}
